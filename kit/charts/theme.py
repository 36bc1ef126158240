"""Colours, dashes and shapes: one look per policy in every figure, told apart in grey as well as in colour.

Palette: the categorical set of the UK Government Analysis Function. Neighbours differ by at least 3:1, but dark blue
and dark pink (and turquoise and orange) share a lightness, so a dash pattern and a direct label always go with colour.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

INK = "#0b0c0c"
MUTED = "#505a5f"
LINE = "#b1b4b6"
FAINT = "#e3e6e8"
BLUE, TURQUOISE, PINK, ORANGE, GREY, PURPLE = "#12436D", "#28A197", "#801650", "#F46A25", "#3D3D3D", "#A285D1"
COLOURS = (BLUE, TURQUOISE, PINK, ORANGE, GREY, PURPLE)
TEXT_ON_WHITE = {TURQUOISE: "#1b6f68", ORANGE: "#b04309", PURPLE: "#6f4fa8"}  # darker twins that pass 4.5:1 as text
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (8, 3), (2, 2), (10, 3, 2, 3), (4, 2), (14, 3), (5, 2, 1, 2, 1, 2))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


@dataclass(frozen=True)
class Look:
    """Colour, dash pattern and point shape of one series, and the colour its label is written in."""

    colour: str
    dash: tuple[int, ...]
    shape: str

    @property
    def label_colour(self) -> str:
        """The same hue, dark enough to read as text on white."""
        return TEXT_ON_WHITE.get(self.colour, self.colour)


# Fixed places, so that a policy looks the same in every report; a name missing here gets a place from its hash.
_ORDER = [
    "lru", "lfu_decay", "length", "gdsf", "fifo", "saecache",
    "fifo_flat", "lfu", "lfu_perfect", "w_tinylfu", "workload_aware", "s3fifo",
    "vllm_lru", "sglang_lfu", "sglang_slru", "tensorrt_priority", "sieve", "arc",
    "lruk", "lpc_turns", "prefix_biased_depth", "marconi", "tlru", "lecar",
    "sglang_lru", "twoq", "lfu_halving", "hyperbolic", "lhd", "dynamo_multilru",
    "redis_lru", "redis_lfu", "prefix_biased_fanout", "lmcache_lru", "mooncake_store",
    "sglang_priority",
]  # fmt: skip


def look_of(policy: str) -> Look:
    """The look of a policy: the same in every figure and every report. A name not listed gets one from its hash.

    Row r, column c of the order: colour c, shape c + r, dash c - r, of six colours and seven shapes and dashes. Seven
    is odd, so no two of the first 42 share shape and dash, colour and shape, or colour and dash: grey print loses none.
    """
    if policy in _ORDER:
        place = _ORDER.index(policy)
    else:
        place = int(hashlib.sha256(policy.encode()).hexdigest(), 16) % len(_ORDER)
    row, column = divmod(place, len(COLOURS))
    return Look(COLOURS[column], DASHES[(column - row) % len(DASHES)], SHAPES[(column + row) % len(SHAPES)])


def theme() -> dict:
    """The Vega-Lite configuration of every figure: dark text on white, light grid, no frame."""
    axis = {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelColor": INK,
        "titleColor": INK,
        "gridColor": FAINT,
        "domainColor": LINE,
        "tickColor": LINE,
        "labelFont": FONT,
        "titleFont": FONT,
        "titlePadding": 8,
        "labelOverlap": True,
    }
    return {
        "background": "white",
        "font": FONT,
        "mark": {"aria": False},
        "view": {"stroke": None},
        "axis": axis,
        "text": {"font": FONT, "fontSize": 12, "color": INK},
        "legend": {"disable": True},
        "line": {"strokeWidth": 2},
        "point": {"size": 55, "filled": True, "opacity": 1},
        "header": {"title": None},
    }
