"""Curves on axes of powers of ten, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 720, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 190, 40, 40
_COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#17becf")
_LABEL_PIXELS = 13


@dataclass(frozen=True)
class Line:
    """A curve: its name, and points with both coordinates greater than 0."""

    name: str
    points: Sequence[tuple[float, float]]


def plot(title: str, lines: Sequence[Line]) -> str:
    """Return a picture of some curves, each labelled where it ends."""
    across = _Axis([x for line in lines for x, _ in line.points], _LEFT, _WIDTH - _RIGHT)
    up = _Axis([y for line in lines for _, y in line.points], _HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">',
        "<style>text { font: 12px sans-serif }</style>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22">{escape(title)}</text>',
    ]
    for power in across.powers:
        x = across.place(10**power)
        parts.append(_stroke([(x, _TOP), (x, _HEIGHT - _BOTTOM)], "#ddd"))
        at = f'x="{x:.0f}" y="{_HEIGHT - 20}" text-anchor="middle"'
        parts.append(f"<text {at}>{10**power:,}</text>")
    for power in up.powers:
        y = up.place(10**power)
        parts.append(_stroke([(_LEFT, y), (_WIDTH - _RIGHT, y)], "#ddd"))
        at = f'x="{_LEFT - 8}" y="{y + 4:.0f}" text-anchor="end"'
        parts.append(f"<text {at}>{10**power:g}</text>")
    below = -math.inf
    for number, line in enumerate(sorted(lines, key=lambda one: -one.points[-1][1])):
        color = _COLORS[number % len(_COLORS)]
        places = [(across.place(x), up.place(y)) for x, y in line.points]
        parts.append(_stroke(places, color, 2))
        # labels do not lie on one another
        below = max(places[-1][1] + 4, below + _LABEL_PIXELS)
        parts.append(
            f'<text x="{places[-1][0] + 8:.0f}" y="{below:.0f}" fill="{color}">'
            f"{escape(line.name)}</text>"
        )
    return "\n".join([*parts, "</svg>", ""])


class _Axis:
    """An axis of powers of ten between two places of the picture."""

    def __init__(self, values: Sequence[float], begin: int, end: int) -> None:
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        self.powers = range(low, max(high, low + 1) + 1)
        self._begin, self._end = begin, end

    def place(self, value: float) -> float:
        """Where a value lies."""
        share = (math.log10(value) - self.powers[0]) / (self.powers[-1] - self.powers[0])
        return self._begin + share * (self._end - self._begin)


def _stroke(points: Sequence[tuple[float, float]], color: str, width: int = 1) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"/>'
