"""Direct labels that do not collide: where each line's name goes so that any two are a line of text apart."""

from __future__ import annotations


def spread(wanted: list[float], gap: float, low: float, high: float) -> list[float]:
    """Positions as near as they can be to the wanted ones, at least `gap` apart and inside low..high if they fit.

    Same order out as in. One pass upward keeps the distance, one pass downward from `high` keeps the frame.
    """
    order = sorted(range(len(wanted)), key=lambda place: (wanted[place], place))
    placed = [0.0] * len(wanted)
    floor = low
    for place in order:
        placed[place] = max(wanted[place], floor)
        floor = placed[place] + gap
    roof = high
    for place in reversed(order):
        placed[place] = min(placed[place], roof)
        roof = placed[place] - gap
    return placed


def thin(points: list[dict], most: int) -> list[dict]:
    """At most `most` of the points, evenly chosen, always with the first and the last."""
    if len(points) <= most:
        return points
    step = (len(points) - 1) / (most - 1)
    return [points[round(index * step)] for index in range(most)]


def listed(words: list[str]) -> str:
    """Words as a reader would say them: ``a, b and c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
