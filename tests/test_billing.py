"""The bill: hand-worked counts in three tier modes, the metric's edge cases, the accept rule, arithmetic on paper."""

from __future__ import annotations

from math import erf, log, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit import log as logs
from kit.billing import AVOIDABLE, CAUSES, BillingError, accept, arithmetic, bill
from kit.intervals import paired_ratio
from kit.prefix import load_paths
from kit.prices import Rate, Rates, parse_overlay, rate_table
from kit.prices.book import LOCK_DATE
from kit.replay import Setting, ceiling
from kit.replay.loop import FIELDS
from tests.conftest import shared_data

INTERVAL = SimpleNamespace


def rates_of(*prices, currency="USD"):
    """Rates from (input, read, write_short, write_long) tuples; None = not found."""
    rows = tuple(
        Rate(n, "p", f"m{n}", input=p[0], read=p[1], write_short=p[2], write_long=p[3]) if p else Rate(n, "p", f"m{n}")
        for n, p in enumerate(prices)
    )
    return Rates(rows, np.zeros(0, np.int32), 1.0, "test 1", LOCK_DATE, (), currency, "LIST")


ONE = rates_of((1.0, 0.1, 1.25, 2.0))
MILLION = 1_000_000


def tally_of(*requests, blocks=1, rates=1):
    """A tally from requests given as dicts of FIELDS plus block, rate and warm; checks its own conservation."""
    counts = np.zeros((2, rates, blocks, len(FIELDS)), np.int64)
    for n, request in enumerate(requests):
        row = dict.fromkeys(FIELDS, 0) | {"requests": 1}
        row |= {name: value for name, value in request.items() if name in FIELDS}
        row["input_tokens"] = row["hit_tokens"] + row["write_tokens"] + row["uncached_tokens"]
        missed = sum(row[f"missed_{cause}"] for cause in CAUSES)
        row["missed_cold"] += row["write_tokens"] + row["uncached_tokens"] - missed
        assert row["input_tokens"] == row["hit_tokens"] + sum(row[f"missed_{cause}"] for cause in CAUSES)
        where = (int(request.get("warm", True)), request.get("rate", 0), request.get("block", n % blocks))
        counts[where] += np.array([row[name] for name in FIELDS])
    return SimpleNamespace(by_block=counts, resident_token_seconds=3600.0 * MILLION)


def hit(tokens, uncached=0, **more):
    return {"hits": 1, "hit_tokens": tokens, "uncached_tokens": uncached, **more}


def miss(tokens, uncached=0, local=False, **more):
    return {"hits": int(local), "write_tokens": tokens, "uncached_tokens": uncached, **more}


def test_mirror_bill_by_hand():
    """Two requests at 1.00 / 0.10 / 1.25 per million: 900 read, 100 written, 60 uncached.

    Money: 900 x 0.10 + 100 x 1.25 + 60 x 1.00 = 90 + 125 + 60 = 275 per million = 0.000275; one hit, two requests.
    """
    drawn = bill(tally_of(hit(900, 40), miss(100, 20)), ONE)
    assert (drawn.read_tokens, drawn.write_tokens, drawn.write_long_tokens, drawn.uncached_tokens) == (900, 100, 0, 60)
    assert drawn.cost == pytest.approx(0.000275, abs=1e-18)
    assert drawn.cost_per_request == pytest.approx(0.0001375, abs=1e-18)
    assert drawn.m_raw == 1060 and drawn.m_parts == {"read": 900, "write": 100, "uncached": 60}
    assert drawn.m_eq == pytest.approx(275) and drawn.m_money == pytest.approx(0.000275)
    assert drawn.hit_token_ratio == 900 / 1060 and drawn.hit_request_ratio == 0.5
    assert (drawn.priced_token_share, drawn.currency, drawn.label) == (1.0, "USD", "LIST")


def test_long_writes_pay_the_long_price():
    """100 written at 2.00 instead of 1.25: 90 + 200 + 60 = 350."""
    drawn = bill(tally_of(hit(900, 40), miss(100, 20)), ONE, write_class="long")
    assert (drawn.write_tokens, drawn.write_long_tokens) == (0, 100)
    assert drawn.cost == pytest.approx(0.000350, abs=1e-18)


def test_absorb_bills_only_what_leaves_the_house():
    """A local hit never reaches the provider: 900 tokens stay, 100 + 60 are plain input: 160 per million."""
    drawn = bill(tally_of(hit(900, 40), miss(100, 20)), ONE, "absorb")
    assert drawn.billed_tokens == 160 and drawn.cost == pytest.approx(0.000160, abs=1e-18)
    assert drawn.m_raw == 160 and drawn.m_parts["read"] == 0 and drawn.m_eq == 160


def test_engine_has_no_money_only_prefill_tokens():
    drawn = bill(tally_of(hit(900, 40), miss(100, 20)), ONE, "engine")
    assert (
        drawn.cost is None and drawn.cost_per_request is None and drawn.missed_cost is None and drawn.currency is None
    )
    assert drawn.equivalents == 160 and drawn.equivalents_per_request == 80
    assert bill(tally_of(hit(900, 40)), None, "engine").equivalents == 40


@pytest.mark.parametrize("mode", ["mirror", "absorb", "engine"])
@given(
    requests=st.lists(
        st.tuples(st.integers(0, 5000), st.integers(0, 5000), st.integers(0, 500), st.integers(0, 1), st.booleans()),
        max_size=25,
    )
)
def test_bill_classes_always_add_up(mode, requests):
    """read + write + write_long + uncached = input tokens; causes add up to the missed tokens' cost."""
    tally = tally_of(
        *({"hits": int(h > 0), "hit_tokens": h, "write_tokens": w, "uncached_tokens": u, "rate": r, "warm": warm}
          for h, w, u, r, warm in requests),
        blocks=3, rates=2,
    )  # fmt: skip
    rates = rates_of((1.0, 0.1, 1.25, 2.0), (3.0, 0.3, 3.75, 6.0))
    for window in ("cold", "warm"):
        drawn = bill(tally, rates, mode, window=window)
        classes = drawn.read_tokens + drawn.write_tokens + drawn.write_long_tokens + drawn.uncached_tokens
        assert classes == drawn.input_tokens
        if mode != "engine":
            assert drawn.cost_by_block.sum() == pytest.approx(drawn.cost, rel=1e-12, abs=1e-18)
            reads = sum(
                tally.by_block.sum(0)[r, :, FIELDS.index("hit_tokens")].sum() * rates.rows[r].read for r in (0, 1)
            )
            if window == "cold":
                paid_for_reads = reads / 1e6 if mode == "mirror" else 0.0
                assert sum(drawn.missed_cost.values()) == pytest.approx(
                    drawn.cost - paid_for_reads, rel=1e-9, abs=1e-15
                )


def test_raw_billed_tokens_say_nothing_about_the_bill_when_every_request_is_sent():
    """100 requests of 10,000 tokens, 50 local hits. Provider reads 90 or 10 of them: m_raw 20,000 both times.

    warm: 90 x 1,000 + 10 x 12,500 = 215,000 equivalents / 50 = 4,300; cold: 10 x 1,000 + 90 x 12,500 = 1,135,000,
    22,700 per hit; the bill differs 5.279 times.
    """
    warm = bill(
        tally_of(*({**(hit(10_000) if n < 90 else miss(10_000)), "hits": int(n < 50)} for n in range(100))), ONE
    )
    cold = bill(
        tally_of(*({**(hit(10_000) if n < 10 else miss(10_000)), "hits": int(n < 50)} for n in range(100))), ONE
    )
    assert warm.m_raw == cold.m_raw == 20_000
    assert (warm.m_eq, cold.m_eq) == (pytest.approx(4_300), pytest.approx(22_700))
    assert warm.m_parts == {"read": 18_000, "write": 2_000, "uncached": 0}
    assert cold.cost / warm.cost == pytest.approx(5.279, abs=5e-4)


def fooling_example():
    """Old: 50 hits of 9,000 + 1,000 uncached, 50 plain ones of 10,000. New: those 50 are written, 15 of them hit."""
    old = tally_of(*[hit(9_000, 1_000)] * 50, *[miss(0, 10_000)] * 50, blocks=10)
    new = tally_of(*[hit(9_000, 1_000)] * 50, *[miss(10_000, local=True)] * 15, *[miss(10_000)] * 35, blocks=10)
    return bill(old, ONE), bill(new, ONE)


def test_the_ratio_can_fall_and_hits_rise_while_the_bill_rises_and_must_be_refused():
    """m_eq 11,900 -> 11,076.9 (-6.9 %), hit requests .50 -> .65, cost per request 5,950 -> 7,200 (+21 %)."""
    old, new = fooling_example()
    assert (old.m_eq, new.m_eq) == (pytest.approx(11_900), pytest.approx(11_076.923, abs=1e-3))
    assert (old.hit_request_ratio, new.hit_request_ratio) == (0.5, 0.65)
    assert (old.equivalents_per_request, new.equivalents_per_request) == (pytest.approx(5_950), pytest.approx(7_200))
    interval = paired_ratio(new.cost_by_block, new.requests_by_block, old.cost_by_block, old.requests_by_block)
    verdict = accept(old, new, interval)
    assert not verdict.ok and verdict.verdict == "revert"
    assert verdict.reason == "cost per request rises by 21.0%"


def test_accept_needs_every_condition():
    before = bill(tally_of(*[hit(500, 100)] * 5, *[miss(1_000)] * 5), ONE)
    better = bill(tally_of(*[hit(500, 100)] * 6, *[miss(1_000)] * 4), ONE)
    sure, doubtful = INTERVAL(low=-2.0, high=-1.0), INTERVAL(low=-2.0, high=0.5)
    assert accept(before, better, sure).ok
    assert accept(before, better, doubtful).verdict == "inconclusive"
    assert accept(before, better, None).verdict == "inconclusive"
    assert accept(better, before, sure).reason == "fewer requests find their prefix"
    same = accept(before, before, INTERVAL(low=0.0, high=0.0))
    assert not same.ok and same.verdict == "inconclusive"


def test_fewer_resident_tokens_are_refused_even_when_as_many_requests_hit():
    before = bill(tally_of(hit(1_000), miss(1_000)), ONE)
    after = bill(tally_of(hit(400), miss(0, 200)), ONE)
    verdict = accept(before, bill(tally_of(hit(900), miss(1_000)), ONE), INTERVAL(low=-1.0, high=-0.5))
    assert verdict.verdict == "revert" and verdict.reason == "fewer tokens are found resident"
    assert after.hit_token_ratio > before.hit_token_ratio


def test_engine_mode_asks_prefill_tokens_and_not_billed_per_hit():
    """Prefill falls 1,200 -> 1,100 with the same one hit: accepted."""
    before = bill(tally_of(hit(500, 200), miss(1_000)), None, "engine")
    after = bill(tally_of(hit(600, 100), miss(1_000)), None, "engine")
    assert accept(before, after, INTERVAL(low=-60.0, high=-40.0)).ok


def test_nobody_hit_means_no_figure_per_hit_but_a_cost_per_request():
    """Three writes of 5,000: cost 3 x 6,250; m is None, and any hit beats none."""
    none = bill(tally_of(*[miss(5_000)] * 3), ONE)
    assert (none.m_raw, none.m_eq, none.m_money, none.m_parts) == (None, None, None, None)
    assert none.equivalents_per_request == 6_250 and none.hit_request_ratio == 0.0
    some = bill(tally_of(miss(5_000), miss(5_000), hit(5_000)), ONE)
    assert accept(none, some, INTERVAL(low=-2.0, high=-1.0)).ok
    assert not accept(some, none, INTERVAL(low=-2.0, high=-1.0)).ok


def test_an_empty_window_is_all_none():
    empty = bill(tally_of(miss(5_000, warm=False)), ONE, window="warm")
    assert (empty.requests, empty.cost_per_request, empty.m_raw, empty.hit_token_ratio) == (0, None, None, None)
    assert empty.priced_token_share is None


def test_the_warm_window_leaves_out_what_was_written_before_it():
    tally = tally_of(miss(5_000, warm=False), hit(5_000))
    warm, cold = bill(tally, ONE, window="warm"), bill(tally, ONE)
    assert (warm.requests, warm.write_tokens, warm.read_tokens) == (1, 0, 5_000)
    assert (cold.requests, cold.write_tokens) == (2, 5_000)


def test_keep_alive_pings_are_billed_and_are_neither_requests_nor_hits():
    """215,000 equivalents over 100 requests and 50 hits; 20 pings of 10,000 read tokens add 20,000: 4,700 per hit."""
    requests = [{**(hit(10_000) if n < 90 else miss(10_000)), "hits": int(n < 50)} for n in range(100)]
    pings = [{"requests": 0, "hits": 0, "hit_tokens": 10_000}] * 20
    drawn = bill(tally_of(*requests, *pings), ONE)
    assert (drawn.requests, drawn.hits, drawn.m_raw, drawn.m_eq) == (100, 50, 24_000, pytest.approx(4_700))
    assert drawn.equivalents_per_request == pytest.approx(2_350)


def test_mixed_traffic_moves_the_pooled_figure_while_every_type_stays_the_same():
    """Chat: 90 % hits of 1,000; agents: 20 % hits of 50,000. Pooled m_eq 5,777.2 and 53,872.8 in two mixes."""
    chat = lambda n: [hit(1_000)] * (9 * n) + [miss(1_000)] * n  # noqa: E731
    agent = lambda n: [hit(50_000)] * n + [miss(50_000)] * (4 * n)  # noqa: E731
    per_type = [bill(tally_of(*part), ONE).m_eq for part in (chat(10), chat(5), agent(2), agent(12))]
    assert per_type == [pytest.approx(238.9, abs=0.05)] * 2 + [pytest.approx(255_000)] * 2
    assert bill(tally_of(*chat(10), *agent(2)), ONE).m_eq == pytest.approx(5_777.2, abs=0.05)
    assert bill(tally_of(*chat(5), *agent(12)), ONE).m_eq == pytest.approx(53_872.8, abs=0.05)


def test_mixed_models_are_compared_in_money():
    """The same hit on a model of 1.00 and one of 5.00: equivalents do not tell, money does."""
    rates = rates_of((1.0, 0.1, 1.25, 2.0), (5.0, 0.5, 6.25, 10.0))
    cheap = bill(tally_of(hit(1_000, rate=0), miss(1_000, rate=1), rates=2), rates)
    dear = bill(tally_of(hit(1_000, rate=1), miss(1_000, rate=0), rates=2), rates)
    assert cheap.m_eq == dear.m_eq == pytest.approx(1_350)
    assert (cheap.m_money, dear.m_money) == (pytest.approx(0.00635), pytest.approx(0.00175))


def test_a_model_without_a_price_stays_out_of_the_money_and_is_said():
    """Priced: 1,000 of 4,000 tokens and one of two requests; money is per priced request."""
    rates = rates_of((1.0, 0.1, 1.25, 2.0), None)
    drawn = bill(tally_of(hit(1_000, rate=0), hit(3_000, rate=1), rates=2), rates)
    assert drawn.priced_token_share == 0.25
    assert drawn.cost == pytest.approx(0.0001) and drawn.cost_per_request == pytest.approx(0.0001)
    assert drawn.requests_by_block.tolist() == [1.0]
    nothing = bill(tally_of(hit(1_000)), rates_of(None))
    assert (nothing.cost, nothing.m_eq, nothing.currency, nothing.priced_token_share) == (None, None, None, 0.0)


def test_an_unknown_long_price_makes_the_long_bill_not_found():
    drawn = bill(tally_of(miss(100)), rates_of((1.0, 0.1, 1.25, None)), write_class="long")
    assert drawn.cost is None and drawn.write_long_tokens == 100


def test_misses_are_paid_by_cause():
    """One request: 1,000 written (400 evicted, 600 expired) and 50 uncached below the block.

    evicted 400 x 1.25 = 500, expired 600 x 1.25 = 750, below 50 x 1 = 50 per million; a hit would have paid 0.10, so
    avoidable = 1,000 x 1.15 = 1,150.
    """
    request = miss(1_000, 50, missed_evicted=400, missed_expired=600, missed_below_minimum=50)
    drawn = bill(tally_of(request), ONE)
    costs = {cause: round(money * 1e6, 9) for cause, money in drawn.missed_cost.items()}
    assert costs == {"cold": 0, "evicted": 500, "expired": 750, "lost": 0, "below_minimum": 50, "in_flight": 0,
                     "oversize": 0}  # fmt: skip
    assert drawn.avoidable_cost * 1e6 == pytest.approx(1_150)
    assert set(AVOIDABLE) < set(CAUSES)


def test_storage_is_token_hours_times_price():
    """One million tokens held for one hour at 4.50."""
    assert bill(tally_of(hit(10)), ONE, storage_per_mtok_hour=4.5).storage_cost == pytest.approx(4.5)
    assert bill(tally_of(hit(10)), ONE).storage_cost is None
    assert bill(tally_of(hit(10)), ONE, window="warm", storage_per_mtok_hour=4.5).storage_cost is None


def test_wrong_words_are_refused():
    with pytest.raises(BillingError, match="accepted: mirror, absorb, engine"):
        bill(tally_of(hit(1)), ONE, "local")
    with pytest.raises(BillingError, match="accepted: short, long"):
        bill(tally_of(hit(1)), ONE, write_class="1h")
    with pytest.raises(BillingError, match="accepted: cold"):
        bill(tally_of(hit(1)), ONE, window="all")
    with pytest.raises(BillingError, match=r"rate=rates.rate_of_request"):
        bill(tally_of(hit(1), rates=2), ONE)


# Arithmetic on paper: the worked tables, to their printed digits.


@pytest.mark.parametrize(
    ("write", "read", "multiplier", "against_none", "against_write", "share_for_75"),
    [
        (1.25, 0.1, 0.27250, 72.75, 78.20, 86.96),
        (2.0, 0.1, 0.38500, 61.50, 80.75, 92.11),
        (1.0, 0.1, 0.23500, 76.50, 76.50, 83.33),
        (1.0, 0.5, 0.57500, 42.50, 42.50, None),
        (1.25, 0.05, 0.23000, 77.00, 81.60, 83.33),
        (1.25, 0.025, 0.20875, 79.125, 83.30, 81.63),
        (2.5, 0.1, 0.46000, 54.00, 81.60, 93.75),
    ],
)
def test_85_percent_reads_do_not_save_75_percent(write, read, multiplier, against_none, against_write, share_for_75):
    """The often quoted "over 75 %" at 0.85 is 72.75 % with writes at 1.25 and reads at 0.1."""
    mean = arithmetic.effective_multiplier(0.85, write, read)
    assert mean == pytest.approx(multiplier, abs=5e-6)
    assert 100 * arithmetic.saving(0.85, write, read) == pytest.approx(against_none, abs=5e-3)
    assert 100 * (1 - mean / write) == pytest.approx(against_write, abs=5e-3)
    needed = arithmetic.read_share_for_saving(0.75, write, read)
    assert needed is None if share_for_75 is None else 100 * needed == pytest.approx(share_for_75, abs=5e-3)


def test_with_output_tokens_the_whole_bill_saves_less():
    savings = [100 * arithmetic.saving(0.85, 1.25, 0.1, per) for per in (100, 50, 20, 10, 5)]
    assert [round(value, 1) for value in savings] == [69.3, 66.1, 58.2, 48.5, 36.4]


def test_the_formula_is_exact_only_when_nothing_is_uncached():
    """40 turns, 8,000 tokens of system, +1,500 a turn: prompts sum to 1,550,000 tokens."""
    prompts = [8_000 + 1_500 * turn for turn in range(1, 41)]
    reads = sum(prompts[:-1])
    writes = sum(prompts) - reads
    assert sum(prompts) == 1_550_000
    true = (1.25 * writes + 0.1 * reads) / sum(prompts)
    assert (
        true
        == pytest.approx(arithmetic.effective_multiplier(reads / sum(prompts), 1.25, 0.1))
        == pytest.approx(0.15045, abs=5e-6)
    )
    system_only = (1_230_000 + 1.25 * 8_000 + 0.1 * 312_000) / 1_550_000
    assert system_only == pytest.approx(0.82013, abs=5e-6)
    assert arithmetic.effective_multiplier(312_000 / 1_550_000, 1.25, 0.1) == pytest.approx(1.01852, abs=5e-6)


@pytest.mark.parametrize(
    ("write", "read", "reads", "share"),
    [(1.25, 0.1, 0.2778, 21.74), (2.0, 0.1, 1.1111, 52.63), (1.25, 0.05, 0.2632, 20.83), (2.0, 0.05, 1.0526, 51.28),
     (2.5, 0.1, 1.6667, 62.50), (2.5, 0.05, 1.5789, 61.22), (1.0, 0.1, 0.0, 0.0)],
)  # fmt: skip
def test_break_even(write, read, reads, share):
    assert arithmetic.break_even_reads(write, read) == pytest.approx(reads, abs=5e-5)
    assert 100 * arithmetic.break_even_read_share(write, read) == pytest.approx(share, abs=5e-3)


@pytest.mark.parametrize(("storage", "price", "reads"), [(4.5, 1.25, 4.0), (1.0, 0.30, 3.704), (0.5, 0.75, 0.741)])
def test_explicit_cache_storage_break_even(storage, price, reads):
    assert arithmetic.storage_break_even_reads_per_hour(storage, price, 0.1) == pytest.approx(reads, abs=5e-4)


def test_shared_prefix_under_random_arrivals():
    """Reads at 0.1: short pays above 2.94 requests an hour, long above 0.747, long beats short above 0.548."""
    assert arithmetic.arrivals_that_pay(1.25, 0.1, 300 / 3600) == pytest.approx(2.9415, abs=5e-5)
    assert arithmetic.arrivals_that_pay(2.0, 0.1, 1.0) == pytest.approx(0.7472, abs=5e-5)
    assert arithmetic.arrivals_where_long_wins(1.25, 2.0, 0.1, 300 / 3600, 1.0) == pytest.approx(0.5477, abs=5e-5)


@pytest.mark.parametrize(
    ("short", "long", "read", "factor"),
    [(1.25, 2, 0.1, 0.6522), (1.25, 2, 0.05, 0.6250), (1.25, 2, 0.025, 0.6122), (1.25, 2.5, 0.1, 1.0870),
     (1.25, 2.5, 0.05, 1.0417), (1, 2, 0.1, 1.1111)],
)  # fmt: skip
def test_long_factor(short, long, read, factor):
    assert arithmetic.long_factor(short, long, read) == pytest.approx(factor, abs=5e-5)


def lognormal(median, sigma):
    return lambda seconds: 0.5 * (1 + erf((log(seconds) - log(median)) / sigma / sqrt(2)))


@pytest.mark.parametrize(
    ("median", "sigma", "within_5m", "within_1h", "short", "long", "pinged", "pings"),
    [
        (12, 1.0, 0.99936, 1.0000, 0.02376, 0.02700, 0.02364, 39),
        (90, 1.2, 0.84214, 0.99894, 0.05630, 0.02736, 0.02890, 38),
        (480, 1.0, 0.31918, 0.97804, 0.16456, 0.03451, 0.06212, 37),
        (2400, 1.5, 0.08283, 0.60654, 0.21348, 0.16156, 0.20866, 3),
    ],
)
def test_retention_by_gap_law_worked_example(median, sigma, within_5m, within_1h, short, long, pinged, pings):
    """Sonnet 4.6 at 3.00 per million, 60,000 cached and 1,500 new tokens a turn: money per turn."""
    gaps, price = lognormal(median, sigma), 3e-6
    assert gaps(300) == pytest.approx(within_5m, abs=5e-6) and gaps(3600) == pytest.approx(within_1h, abs=5e-5)
    assert price * arithmetic.turn_cost(60_000, 1_500, gaps(300), 1.25, 0.1) == pytest.approx(short, abs=5e-6)
    assert price * arithmetic.turn_cost(60_000, 1_500, gaps(3600), 2.0, 0.1) == pytest.approx(long, abs=5e-6)
    best, cost = arithmetic.best_pings(
        lambda n: arithmetic.keep_alive_turn_cost(60_000, 1_500, gaps, 300, n, 1.25, 0.1)
    )
    assert best == pings and price * cost == pytest.approx(pinged, abs=5e-6)


def test_keep_alive_dies_with_abandoned_sessions():
    """When only 90 % of turns have a successor, the best number of pings falls to 0, 3, 7 and 1."""

    def best(gaps):
        return arithmetic.best_pings(
            lambda n: arithmetic.keep_alive_turn_cost(60_000, 1_500, gaps, 300, n, 1.25, 0.1, returns=0.9)
        )[0]

    laws = ((12, 1.0), (90, 1.2), (480, 1.0), (2400, 1.5))
    assert [best(lognormal(*law)) for law in laws] == [0, 3, 7, 1]
    assert [arithmetic.most_pings(1.25, read) for read in (0.1, 0.05, 0.025)] == [11, 24, 49]
    assert arithmetic.most_pings(1.0, 0.1) == 9


def test_mooncake_bill_under_the_stated_assumptions():
    """Infinite room, 512-token blocks, own prices of 3.00 input and 0.30 read; write at 1.25, 2.0 and 1.0 of input."""
    log = logs.load(shared_data("mooncake_conversation.jsonl"))
    expected = {
        (300, 3.75, "short"): (42_452_480, 99_110_912, 394.09),
        (3600, 6.0, "long"): (54_063_104, 87_500_288, 550.91),
        (300, 3.0, "short"): (42_452_480, 99_110_912, 319.76),
        (1800, 3.75, "short"): (53_632_000, 87_931_392, 355.52),
    }
    for (ttl, write, name), (read, written, money) in expected.items():
        key = "write_short" if name == "short" else "write_long"
        prices = {"input": 3.0, "read": 0.3, "output": 15.0, key: write}
        rates = rate_table(log, parse_overlay({"price": [prices]}, "own.toml"))
        paths = load_paths(log, block_tokens=512, rate=rates.rate_of_request)
        drawn = bill(ceiling(paths, Setting(ttl_seconds=ttl)), rates, "mirror", name)
        assert (drawn.read_tokens, drawn.write_tokens + drawn.write_long_tokens) == (read, written)
        assert drawn.uncached_tokens == 3_230_431 and round(drawn.cost, 2) == money
        assert drawn.label == "CONTRACT" and drawn.input_tokens == 144_793_823
    assert round(144_793_823 * 3 / 1e6, 2) == 434.38
