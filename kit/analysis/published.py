"""What the published systems would keep, beside LRU and the optimum: every figure with its interval, losses included.

Systems: SAECache-style with each of its predictors, LPC by turn count and with an oracle, SGLang's segmented LRU, both
readings of prefix-biased eviction, LFU. Ablations follow the SAECache paper: one learner at a time kept at its start.
Parameters fitted on one mix and run on another: `kit.analysis.mismatch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import polars as pl

from kit import numbers
from kit.analysis.display import Sentence, Table
from kit.analysis.store import Analysis
from kit.intervals import REPLICATES, paired_ratio
from kit.policies import named
from kit.policies.next_turn import ALWAYS, LEARNED, NEVER, ORACLE, PRIOR
from kit.prefix import Paths
from kit.replay import Setting, Tally, default_capacity, knee, lru_curve, miniature, optimal, replay

BASE, SYSTEM, ABLATION, BOUND = "base", "system", "ablation", "bound"
MAIN = "SAECache-style, prior by type"
LPC = "LPC by turn count"
WORKERS = 2
SIMPLE = ("lru", "lfu", "sglang_slru")
NOTHING = (
    f"**Not compared here: the log has no prefix identity, or over {miniature.AGAIN_TOUCHES:,} block touches "
    "(then run bench/bench_published.py on it).**"
)
AS_MUCH = 0.00005  # share of input tokens: what prints as 0.00 points


@dataclass(frozen=True)
class Contestant:
    """A policy with parameters under the name a table gives it."""

    title: str
    policy: str
    group: str = SYSTEM
    parameters: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


def _sae(title: str, group: str = SYSTEM, **parameters: float) -> Contestant:
    return Contestant(f"SAECache-style, {title}", "saecache", group, {"predictor": float(PRIOR), **parameters})


SYSTEMS = (
    Contestant("LRU", "lru", BASE),
    Contestant("LFU", "lfu"),
    Contestant("segmented LRU (SGLang)", "sglang_slru"),
    Contestant(LPC, "lpc_turns"),
    Contestant("LPC, oracle", "lpc_turns", parameters={"oracle": 1.0}),
    Contestant("prefix-biased, depth", "prefix_biased_depth"),
    Contestant("prefix-biased, fan-out", "prefix_biased_fanout"),
    _sae("prior by type"),
    _sae("learned predictor", predictor=float(LEARNED)),
    _sae("oracle", predictor=float(ORACLE)),
    _sae("always", predictor=float(ALWAYS)),
    _sae("never", predictor=float(NEVER)),
)
TOLD = tuple(one for one in SYSTEMS if one.policy in SIMPLE or one.title in (LPC, MAIN))
VARIANTS = (
    _sae("token types not learned", ABLATION, fixed_types=1.0),
    _sae("queue weights not learned", ABLATION, fixed_queues=1.0),
    _sae("timing not learned", ABLATION, fixed_timing=1.0),
    _sae("position decay not learned", ABLATION, fixed_decay=1.0),
)


def budgets_around_the_knee(paths: Paths, count: int = 5, setting: Setting | None = None) -> list[int]:
    """`count` budgets in tokens, each twice the one before, the middle one where LRU reaches 80 % of its ceiling.

    Where nothing ever hits, the middle is twice the longest prefix. Raises ValueError below one budget.
    """
    if count < 1:
        raise ValueError(f"budgets must be 1 or more, got {count}")
    rules = setting or Setting()
    bend = knee(*lru_curve(paths, rules.ttl_seconds, rules.minimum_tokens))
    middle = bend or default_capacity(paths, rules.ttl_seconds, rules.minimum_tokens)[0]
    lowest = max(middle / 2 ** (count // 2), paths.block_tokens)
    return [round(lowest * 2**step) for step in range(count)]


def compare_published(
    paths: Paths,
    budgets: int | Sequence[int] = 5,
    setting: Setting | None = None,
    variants: bool = True,
    replicates: int = REPLICATES,
    seed: int = 1,
    systems: Sequence[Contestant] = SYSTEMS,
) -> list[dict[str, Any]]:
    """Hit-token ratio of every published system at every budget, with its paired interval against LRU.

    `budgets` are tokens, or how many to take around LRU's knee. Rows, by budget: {budget_tokens, system, policy, group,
    hit_tokens, hit_token_ratio, against_lru {value, low, high, level, basis, units} or None, note}. Ablations
    (`variants`) run at the middle budget. The optimum has no interval: it is a bound on the whole log. All
    requests count (no warm-up is left out). Raises ValueError for a budget under one block.
    """
    rules = setting or Setting()
    tokens = budgets_around_the_knee(paths, budgets, rules) if isinstance(budgets, int) else sorted(set(budgets))
    if not tokens:
        raise ValueError("budgets must name at least one number of tokens, got none")
    middle = tokens[len(tokens) // 2]
    cells = [(one, budget) for budget in tokens
             for one in (*systems, *(VARIANTS if variants and budget == middle else ()))]  # fmt: skip
    tallies = _run(paths, cells, rules)
    base = {budget: tally for (one, budget), tally in zip(cells, tallies, strict=True) if one.group == BASE}
    rows = [_row(one, tally, base[budget], replicates, seed)
            for (one, budget), tally in zip(cells, tallies, strict=True)]  # fmt: skip
    rows += [_bound(paths, budget, rules) for budget in tokens]
    return sorted(rows, key=lambda row: row["budget_tokens"])


def _run(paths: Paths, cells: Iterable[tuple[Contestant, int]], setting: Setting) -> list[Tally]:
    """Every cell replayed, two at a time; the order of the cells is kept."""

    def one(cell: tuple[Contestant, int]) -> Tally:
        who, budget = cell
        return replay(paths, who.policy, capacity_tokens=budget, setting=setting, parameters=dict(who.parameters))

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(one, cells))


def _row(who: Contestant, tally: Tally, lru: Tally, replicates: int, seed: int) -> dict[str, Any]:
    hits, asked, lru_hits, lru_asked = (
        one.blocks(name).sum(axis=0) for one in (tally, lru) for name in ("hit_tokens", "input_tokens")
    )
    interval = paired_ratio(hits, asked, lru_hits, lru_asked, replicates, seed) if who.group != BASE else None
    return {
        "budget_tokens": tally.capacity_tokens,
        "system": who.title,
        "policy": who.policy,
        "group": who.group,
        "hit_tokens": tally.total()["hit_tokens"],
        "hit_token_ratio": tally.hit_token_ratio(),
        "against_lru": interval.as_dict() if interval else None,
        "note": settings_of(who),
    }


def _bound(paths: Paths, budget: int, setting: Setting) -> dict[str, Any]:
    best = optimal(paths, budget, setting.ttl_seconds, setting.minimum_tokens)
    return {
        "budget_tokens": budget,
        "system": "optimum" if best.exact else "optimum (upper bound)",
        "policy": best.method,
        "group": BOUND,
        "hit_tokens": best.hit_tokens,
        "hit_token_ratio": best.hit_token_ratio,
        "against_lru": None,
        "note": "exact" if best.exact else "no policy can pass it, perhaps none reaches it",
    }


def settings_of(who: Contestant) -> str:
    """The parameters a contestant ran with, as `name value`, those it does not set at their defaults."""
    given = {**named(who.policy).parameters, **who.parameters}
    return ", ".join(f"{name} {value:g}" for name, value in given.items())


def verdict_of(row: Mapping[str, Any]) -> str:
    """What the interval says of a row against LRU: "more", "less", "as much" (nothing to the hundredth of a point),
    "cannot tell" (the interval holds zero); "-" where there is no interval."""
    found = row["against_lru"]
    if found is None:
        return numbers.ABSENT
    if abs(found["value"]) < AS_MUCH:
        return "as much"
    return "more" if found["low"] > 0 else "less" if found["high"] < 0 else "cannot tell"


def difference(row: Mapping[str, Any]) -> str:
    """The difference to LRU in points of input tokens with its 95 % interval, `+0.25 [+0.13, +0.37]`."""
    found = row["against_lru"]
    if found is None:
        return numbers.ABSENT
    value, low, high = (numbers.signed(100 * found[end], 2) for end in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def as_table(rows: Sequence[Mapping[str, Any]], caption: str = "Published systems against LRU") -> Table:
    """The rows for reading: systems down, budgets across, `69.4% +0.25 [+0.13, +0.37]` in a cell; the caption says with
    which constants SAECache-style ran."""
    names, lines = _grid(rows)
    note = next((f". SAECache-style ran with {row['note']}" for row in rows if row["system"] == MAIN), "")
    return Table(pl.DataFrame(lines, schema=names, orient="row"), f"{caption}{note}")


def as_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The same as a Markdown table."""
    names, lines = _grid(rows)
    table = [names, ["---", *["---:"] * (len(names) - 1)], *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in table)


def _grid(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """(head, lines): systems in the order they are compared in, budgets (tokens) rising."""
    budgets = sorted({row["budget_tokens"] for row in rows})
    order = {one.title: at for at, one in enumerate((*SYSTEMS, *VARIANTS))}
    systems = sorted({row["system"] for row in rows}, key=lambda name: order.get(name, len(order)))
    cell = {(row["system"], row["budget_tokens"]): _cell(row) for row in rows}
    head = ["budget, tokens", *map(numbers.count, budgets)]
    return head, [[name, *(cell.get((name, budget), "") for budget in budgets)] for name in systems]


def side_by_side(logs: Mapping[str, Sequence[Mapping[str, Any]]]) -> Table:
    """Several logs, each by its own budgets (around its knee, doubling): the simple policies, LPC by turn count,
    SAECache-style with the prior by type, and the optimum, with the paired interval against LRU."""
    told = {one.title for one in TOLD}
    lines: list[list[str]] = []
    for name, rows in logs.items():
        head, grid = _grid([row for row in rows if row["system"] in told or row["group"] == BOUND])
        lines += [[name, *line] for line in (head, *grid) if rows]
    schema = ["log", "system", "a quarter of the knee", "half the knee", "the knee", "twice the knee",
              "four times the knee"]  # fmt: skip
    caption = "Hit-token ratio, and its difference to LRU in points [95 %]"
    return Table(pl.DataFrame(lines, schema=schema, orient="row"), caption)


def _cell(row: Mapping[str, Any]) -> str:
    ratio = numbers.percent(row["hit_token_ratio"], 1)
    return ratio if row["against_lru"] is None else f"{ratio} {difference(row)}"


def where_it_loses(rows: Sequence[Mapping[str, Any]]) -> Sentence:
    """One sentence on SAECache-style against LRU: where it wins, where it loses, and what leads at the middle."""
    if not rows:
        return Sentence(NOTHING)
    own = [(row, verdict_of(row)) for row in rows if row["system"] == MAIN]
    won, lost = ([row for row, verdict in own if verdict == wanted] for wanted in ("more", "less"))
    said = (f"**SAECache-style keeps more than LRU at {len(won)} of {len(own)} budgets, less at {len(lost)}, and as "
            f"much or not to be told apart at {len(own) - len(won) - len(lost)}")  # fmt: skip
    if lost:
        worst = min(lost, key=lambda row: row["against_lru"]["value"])
        said += (f"; it loses most at {numbers.count(worst['budget_tokens'])} tokens "
                 f"({difference(worst)} points of input tokens)")  # fmt: skip
    return Sentence(f"{said}.** {_simple(rows)} {_best(rows)}")


def _simple(rows: Sequence[Mapping[str, Any]]) -> str:
    """At how many budgets the best of the simple policies keeps more than SAECache-style (on the log as it is)."""
    own = {row["budget_tokens"]: row["hit_token_ratio"] or 0.0 for row in rows if row["system"] == MAIN}
    simple = [row for row in rows if row["policy"] in SIMPLE]
    ahead = {row["budget_tokens"] for row in simple
             if (row["hit_token_ratio"] or 0.0) - own[row["budget_tokens"]] >= AS_MUCH}  # fmt: skip
    return f"LRU, LFU or segmented LRU keeps more than it does at {len(ahead)} of {len(own)}."


def _best(rows: Sequence[Mapping[str, Any]]) -> str:
    """Which system that needs no oracle keeps most at the middle budget."""
    budgets = sorted({row["budget_tokens"] for row in rows})
    middle = budgets[len(budgets) // 2]
    real = [row for row in rows if row["budget_tokens"] == middle and row["group"] in (BASE, SYSTEM)
            and "oracle" not in row["system"]]  # fmt: skip
    top = max(real, key=lambda row: row["hit_tokens"])
    bound = next(row for row in rows if row["budget_tokens"] == middle and row["group"] == BOUND)
    return (f"At {numbers.count(middle)} tokens {top['system']} keeps most "
            f"({numbers.percent(top['hit_token_ratio'])}; {bound['system']} {numbers.percent(bound['hit_token_ratio'])}"
            ").")  # fmt: skip


def learners_worth(rows: Sequence[Mapping[str, Any]]) -> Sentence:
    """What the predictor and each learner are worth at the middle budget, in points."""
    varied = [row for row in rows if row["group"] == ABLATION]
    if not varied:
        return Sentence("The ablations were left out.")
    here = [row for row in rows if row["budget_tokens"] == varied[0]["budget_tokens"]]
    at = {row["system"]: row["hit_token_ratio"] or 0.0 for row in here}
    ways = {row["system"]: at[row["system"]] for row in here if row["policy"] == "saecache" and row["group"] == SYSTEM}
    parts = [f"{_short(row['system'])} {numbers.signed(100 * (at[row['system']] - at[MAIN]), 2)}" for row in varied]
    others = [f"{_short(name)} {numbers.signed(100 * (ratio - at[MAIN]), 2)}" for name, ratio in ways.items()
              if name != MAIN]  # fmt: skip
    spread = numbers.decimal(100 * (max(ways.values()) - min(ways.values())), 2)
    return Sentence(
        f"The choice of predictor is worth {spread} points of input tokens (against the prior by type: "
        f"{'; '.join(others)}); a learner switched off, against the system as it is, in points: {'; '.join(parts)}."
    )


def _short(system: str) -> str:
    return system.split(", ", 1)[1]


def in_notebook(week: Analysis, budgets: int = 5) -> list[dict[str, Any]]:
    """The comparison on an analysed log under its neutral setting (so local eviction and the provider's expiry both
    apply); nothing where the log has no prefix identity, or is too large to wait for (`miniature.touches`)."""
    if not week.results["bounds"]["optimal"]:
        return []
    paths, setting = week.paths_and_setting()
    if miniature.touches(paths) > miniature.AGAIN_TOUCHES:
        return []
    return compare_published(paths, budgets, setting, seed=week.results["parameters"]["seed"])


def h2o_note(heavy_ratio: float = 0.1, recent_ratio: float = 0.1) -> dict[str, Any]:
    """H2O: the share of a sequence's cache that stays resident, and why there is no hit ratio.

    It keeps the tokens with the most attention so far and the most recent ones, both as shares of the sequence (the
    defaults are its published run scripts'). Comes back: {system, resident_memory_fraction, hit_token_ratio (None),
    why}. Raises ValueError for a ratio outside 0 to 1.
    """
    for name, ratio in (("heavy_ratio", heavy_ratio), ("recent_ratio", recent_ratio)):
        if not 0.0 <= ratio <= 1.0:
            raise ValueError(f"{name} is a share of the sequence between 0 and 1, got {ratio}")
    return {
        "system": "H2O",
        "resident_memory_fraction": min(1.0, heavy_ratio + recent_ratio),
        "hit_token_ratio": None,
        "why": "it drops tokens inside one request by the attention they drew, differently in every head and for good: "
        "what is left is no exact prefix that another request could hit, and a request log holds no attention",
    }


def cannot_be_replayed() -> Sentence:
    """What a request log cannot feed: H2O, and the text model of LPC."""
    note = h2o_note()
    return Sentence(
        f"H2O keeps {numbers.percent(note['resident_memory_fraction'])} of a sequence in memory at its published "
        f"settings and has no hit ratio: {note['why']}. A log that does hold it, one number per block in a column "
        "`path_attention`, can run the same rule on whole blocks (`kit.analysis.own_columns.with_attention`), which is "
        "another policy: H2O-style. LPC's own predictor reads the text of the last prompts, which "
        "the log does not hold; counting turns stands in for it."
    )
