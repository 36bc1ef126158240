"""What the decision table reads: every measured input of every row, for one log under one assumption.

None means the log cannot tell. Shares run from 0 to 1, tokens and requests are counts. Nothing here decides anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from kit.intervals import Interval, Standing

COST = "cost_per_request"
HITS = "hit_token_ratio"


@dataclass(frozen=True)
class Contrast:
    """One policy against another on the same requests at one budget: what has to hold for "better".

    `interval` is the policy minus the baseline: of cost per request (money, or input-token equivalents where `currency`
    is None) when `measure` is "cost_per_request", of the hit-token ratio when it is "hit_token_ratio" (engine mode).
    `base_value` and `base_hit_ratio` are the baseline's own measure and hit-token ratio.
    `chosen_on` and `checked_on` are the same difference on the first five and the last two days of a week, None where
    the log is shorter: a policy that does not win on both is refused.
    """

    policy: str
    baseline: str
    interval: Interval | None
    measure: str = COST
    currency: str | None = None
    capacity_tokens: int | None = None
    hit_ratio_change: float | None = None
    m_eq_now: float | None = None
    m_eq_proposed: float | None = None
    requests: int | None = None
    input_tokens: int | None = None
    title: str | None = None
    chosen_on: float | None = None
    checked_on: float | None = None
    base_value: float | None = None
    base_hit_ratio: float | None = None

    @property
    def same(self) -> bool:
        """Whether the policy finds exactly what the baseline finds, in every draw."""
        found = self.interval
        return found is not None and found.low == found.high == 0 and self.hit_ratio_change == 0

    @property
    def m_eq_falls(self) -> bool | None:
        """Whether billed equivalents per hit request fall; True in engine mode (not asked); None if unknown."""
        if self.measure == HITS:
            return True
        if self.m_eq_now is None or self.m_eq_proposed is None:
            return None if self.m_eq_proposed is None else True
        return self.m_eq_proposed < self.m_eq_now

    @property
    def lead(self) -> float | None:
        """How far the interval clears zero on the good side, in half-widths of the interval; positive clears it."""
        if self.interval is None:
            return None
        near = self.interval.low if self.measure == HITS else -self.interval.high
        half = self.interval.width / 2
        if half > 0:
            return near / half
        return 0.0 if near == 0 else math.copysign(1.0, near)

    @property
    def gain(self) -> float | None:
        """The advantage on the measure, positive is good: a fall in cost per request, a rise in the hit ratio."""
        if self.interval is None:
            return None
        return self.interval.value if self.measure == HITS else -self.interval.value

    @property
    def gain_chosen_on(self) -> float | None:
        """The advantage on the first five days alone, positive is good; on all days where there are too few."""
        return self.gain if self.chosen_on is None else self.chosen_on * (1 if self.measure == HITS else -1)

    @property
    def wins_on(self) -> tuple[bool, bool]:
        """Whether it wins on the days it is chosen on and on those it is checked on; True with too few days."""
        sign = 1 if self.measure == HITS else -1
        first, last = (part is None or sign * part > 0 for part in (self.chosen_on, self.checked_on))
        return first, last

    @property
    def better(self) -> bool | None:
        """The table's "better": the interval excludes zero on the good side, M_eq falls, the hit-token ratio holds.

        Where the log has a week of days, it must also win on the first five and on the last two.
        """
        holds = None if self.hit_ratio_change is None else self.hit_ratio_change >= 0
        clears = None if self.lead is None else self.lead > 0
        return all_of((clears, self.m_eq_falls, holds, *self.wins_on))

    @property
    def name(self) -> str:
        """What a reader calls the policy."""
        return self.title or self.policy


def all_of(parts: tuple[bool | None, ...]) -> bool | None:
    """Conjunction where unknown stays unknown unless something is known to be false."""
    if any(part is False for part in parts):
        return False
    return None if any(part is None for part in parts) else True


def any_of(parts: tuple[bool | None, ...]) -> bool | None:
    """Disjunction where unknown stays unknown unless something is known to be true."""
    if any(part is True for part in parts):
        return True
    return None if any(part is None for part in parts) else False


@dataclass(frozen=True)
class Evidence:
    """All measured inputs of the decision table under one assumption; None = not measurable on this log."""

    # The log (row 0).
    days: int | None = None
    requests: int | None = None
    reused_keys: int | None = None
    rejected_share: float | None = None
    missing_fields: tuple[str, ...] = ()
    # The scene.
    assumption: str = "neutral"
    tier_mode: str | None = None
    capacity_tokens: int | None = None
    observed_seconds: float | None = None
    # Hit tokens at the budget, at double, of the best online policy and without limit (rows 1, 3, 4).
    input_tokens: int | None = None
    ceiling_hit_tokens: int | None = None
    lru_hit_tokens: int | None = None
    lru_double_hit_tokens: int | None = None
    best_online: str | None = None
    best_online_hit_tokens: int | None = None
    # Token-weighted share of reuse gaps longer than the TTL; None for the TTL means that nothing expires (row 2).
    ttl_seconds: float | None = None
    gaps_beyond_ttl_share: float | None = None
    # Session types, gap fits and reuse by token type (row 5).
    second_session_type_share: float | None = None
    multi_turn_share: float | None = None
    fewest_gaps: int | None = None
    worst_gap_ks: float | None = None
    log_normal_best: bool | None = None
    type_reuse_factor: float | None = None
    saecache: Contrast | None = None
    # Concentration and rotation (rows 6 and 10).
    top_fraction: float = 0.05
    top_key_request_share: float | None = None
    day_overlap: float | None = None
    # First-seen one-shot keys (row 7): the worst hour with at least the median's tokens, the median hour (where it has
    # as many they are no scan but the traffic itself), and what they cost LRU over the log.
    scan_token_share: float | None = None
    scan_usual_share: float | None = None
    scan_lru_loss: float | None = None
    # Length against reuse; None system keys means that there are no keys (row 8).
    flat_keys: bool | None = None
    spearman_length_count: float | None = None
    longest_one_shot_share: float | None = None
    longest_request_share: float | None = None
    longest_system_keys: int | None = None
    length_checks: tuple[Contrast, ...] = ()
    # Every online candidate against LRU at the budget (rows 6, 7 and 9).
    online: tuple[Contrast, ...] = ()
    # P(best) and regret of LRU and every online candidate at the budget (no row reads them; the verdict quotes them).
    standings: tuple[Standing, ...] = ()
    # LRU at double the budget against LRU at the budget: what room is worth; bytes of key-value memory per token.
    doubling: Contrast | None = None
    kv_bytes_per_token: float | None = None

    def against_lru(self, policy: str) -> Contrast | None:
        """The contrast of an online candidate against LRU at the budget, or None where it was not replayed."""
        return next((contrast for contrast in self.online if contrast.policy == policy), None)

    @property
    def runs_engine(self) -> bool | None:
        """True when the model is served by the reader's own engine."""
        return None if self.tier_mode is None else self.tier_mode == "engine"

    @property
    def absent_fields(self) -> tuple[str, ...]:
        """Needed fields the log lacks, with the needed measures that could not be taken."""
        needed = {
            "calendar days": self.days,
            "requests": self.requests,
            "reused keys": self.reused_keys,
            "rejected rows": self.rejected_share,
            "ceiling": self.ceiling_hit_tokens,
            "LRU replay at the budget": self.lru_hit_tokens,
        }
        return (*self.missing_fields, *(name for name, value in needed.items() if value is None))

    @property
    def absent_count(self) -> int:
        """Number of needed fields that are absent."""
        return len(self.absent_fields)

    @property
    def ceiling_ratio(self) -> float | None:
        """Hit-token ratio of a cache without limit."""
        return _ratio(self.ceiling_hit_tokens, self.input_tokens)

    @property
    def lru_of_ceiling(self) -> float | None:
        """Hit tokens of LRU at the budget over those of the ceiling; None where even the ceiling has none."""
        return _ratio(self.lru_hit_tokens, self.ceiling_hit_tokens)

    @property
    def room_lift(self) -> float | None:
        """Hit tokens of LRU at double the budget over those at the budget; infinite when it rises from nothing."""
        now, double = self.lru_hit_tokens, self.lru_double_hit_tokens
        if now is None or double is None:
            return None
        return double / now if now else (math.inf if double else 1.0)

    @property
    def policy_gain_of_room(self) -> float | None:
        """What the best online policy gains over LRU, as a share of what doubling the budget gains."""
        if self.lru_hit_tokens is None or self.lru_double_hit_tokens is None or self.best_online_hit_tokens is None:
            return None
        gain = max(self.best_online_hit_tokens - self.lru_hit_tokens, 0)
        room = self.lru_double_hit_tokens - self.lru_hit_tokens
        return gain / room if room > 0 else (math.inf if gain else 0.0)

    @property
    def expiring_gap_share(self) -> float | None:
        """Token-weighted share of reuse gaps longer than the TTL; 0 where reuse is measured and nothing expires."""
        if self.ttl_seconds is not None:
            return self.gaps_beyond_ttl_share
        return None if self.ceiling_hit_tokens is None else 0.0

    @property
    def lfu_decay(self) -> Contrast | None:
        """Decayed LFU against LRU at the budget."""
        return self.against_lru("lfu_decay")

    @property
    def system_keys_among_longest(self) -> int | None:
        """System or tool-schema keys in the longest tenth (0 and 1: none and at least one); None without keys."""
        return self.longest_system_keys

    @property
    def saecache_gain(self) -> float | None:
        """Hit-token ratio of the SAECache-style policy minus that of the best simple policy."""
        return None if self.saecache is None else self.saecache.hit_ratio_change

    @property
    def length_worst(self) -> Contrast | None:
        """The contrast in which Length does worst among those row 8 asks for; None where none was replayed."""
        unknown = [contrast for contrast in self.length_checks if contrast.better is None]
        known = [contrast for contrast in self.length_checks if contrast.better is not None]
        failing = [contrast for contrast in known if not contrast.better]
        worst = failing or unknown or known
        return min(worst, key=lambda contrast: -math.inf if contrast.lead is None else contrast.lead, default=None)

    def challenger(self, gain_points: float) -> Contrast | None:
        """The candidate row 9 speaks of: among those better by enough the one that gains most, else the nearest.

        Most on the first five days of a week: the last two are there to check the choice, not to make it. The nearest
        is the one that loses least over all days; one that finds exactly what LRU finds is named only where all do.
        """
        others = [contrast for contrast in self.online if contrast.policy != "lru"]
        rivals = [contrast for contrast in others if not contrast.same] or others
        better = [contrast for contrast in rivals if contrast.better]
        enough = [contrast for contrast in better if (contrast.hit_ratio_change or 0.0) >= gain_points]
        if not better:
            return max(rivals, key=_nearness, default=None)
        return max(enough or better, key=_promise)


def _promise(contrast: Contrast) -> tuple[float, float, str]:
    """Order of candidates: gain where they are chosen, then on hit tokens, then a fixed order by name."""
    gain = -math.inf if contrast.gain_chosen_on is None else contrast.gain_chosen_on
    return gain, contrast.hit_ratio_change or 0.0, contrast.policy


def _nearness(contrast: Contrast) -> tuple[float, float, str]:
    """Order of candidates that are not better: gain over all days, then on hit tokens, then a fixed order by name."""
    gain = -math.inf if contrast.gain is None else contrast.gain
    return gain, contrast.hit_ratio_change or 0.0, contrast.policy


def _ratio(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


def plain(value: Any) -> Any:
    """A measured value as JSON can hold it: contrasts become dicts, infinities None."""
    if isinstance(value, Contrast):
        interval = None if value.interval is None else value.interval.as_dict()
        return {
            "policy": value.policy,
            "baseline": value.baseline,
            "capacity_tokens": value.capacity_tokens,
            "measure": value.measure,
            "interval": interval,
            "hit_ratio_change": value.hit_ratio_change,
            "m_eq_now": value.m_eq_now,
            "m_eq_proposed": value.m_eq_proposed,
            "chosen_on": value.chosen_on,
            "checked_on": value.checked_on,
        }
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return list(value) if isinstance(value, tuple) else value
