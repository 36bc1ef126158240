"""The verdict as one picture, an SVG without script: its sentence over the figure that carries it."""

from __future__ import annotations

import re
import textwrap
from html import escape
from typing import Any

from kit import charts
from kit.charts.theme import BLUE, FONT, INK, MUTED
from kit.report.verdict import at_budget

WIDTH = 640
MARGIN = 20
LINE_HEIGHT = 24


def _text(lines: list[str], top: int, size: int, colour: str, weight: str) -> str:
    spans = "".join(f'<tspan x="{MARGIN}" dy="{LINE_HEIGHT}">{escape(line)}</tspan>' for line in lines)
    look = f'font-family="{FONT}" font-size="{size}" fill="{colour}" font-weight="{weight}"'
    return f'<text y="{top}" {look}>{spans}</text>'


def _drawn(results: dict[str, Any], top: int) -> tuple[str, str, int]:
    """The figure at its place, its finding with its numbers, and its height; empty where no figure can be drawn."""
    figure = charts.policy_change(results) or charts.capacity_curve(results)
    if figure is None:
        return "", "", 0
    svg = figure.svg()
    sized = re.search(r'width="([\d.]+)" height="([\d.]+)"', svg)
    if sized is None:
        raise ValueError("the drawn figure has no size")
    caption = _text([figure.finding], top, 15, INK, "bold")
    moved = svg.replace("<svg ", f'<svg x="{MARGIN}" y="{top + 2 * LINE_HEIGHT}" ', 1)
    return caption + moved, f" {figure.finding}. {figure.alt}", round(float(sized[2])) + 3 * LINE_HEIGHT


def picture(results: dict[str, Any]) -> str:
    """An SVG with the verdict sentence, the verdict on the time to live, and the change of each policy against LRU."""
    verdict, retention = results["decision"]["sentence"], (results.get("ttl_verdict") or {}).get("sentence") or ""
    budget = at_budget(results)
    retention = f"Decided {budget}. {retention}".strip() if budget else retention
    heading, below = textwrap.wrap(verdict, 62), textwrap.wrap(retention, 84)
    below_top = MARGIN + LINE_HEIGHT * len(heading) + 4
    figure_top = below_top + LINE_HEIGHT * (len(below) + 1)
    figure, told, figure_height = _drawn(results, figure_top)
    height = figure_top + figure_height + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="{WIDTH}" '
        f'height="{height}" viewBox="0 0 {WIDTH} {height}" role="img"><title>{escape(verdict)}</title>'
        f"<desc>{escape(f'{verdict} {retention}{told}'.strip())}</desc>"
        f'<rect width="{WIDTH}" height="{height}" fill="white"/><rect width="6" height="{height}" fill="{BLUE}"/>'
        f"{_text(heading, MARGIN, 18, INK, 'bold')}{_text(below, below_top, 14, MUTED, 'normal')}{figure}</svg>\n"
    )
