"""Draws small charts as inline SVG, without a script or style. Numbers have fixed places, so the same run
gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from irdiff.report import escape
from irdiff.report.timing_summary import TimingRow


def _svg(width: float, height: float, body: str, label: str, attributes: str = "") -> Markup:
    return Markup(  # noqa: S704 - made of numbers, class names and escaped labels
        f'<svg viewBox="0 0 {_n(width)} {_n(height)}" role="img" aria-label="{escape.html(label)}"'
        f"{attributes}>{body}</svg>"
    )


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def stacked_bar(parts: Sequence[tuple[str, int]], label: str) -> Markup:
    """Draws 100 units. Each part has a class of its own."""
    total = sum(count for _, count in parts) or 1
    x, body = 0.0, ""
    for css_class, count in parts:
        width = 100 * count / total
        body += f'<rect class="{css_class}" x="{_n(x)}" width="{_n(width)}" height="8"/>'
        x += width
    return _svg(100, 8, body, label, ' class="bar" preserveAspectRatio="none"')


class Forest:
    """Timings on one logarithmic axis, symmetric around equal times."""

    def __init__(self, timings: Sequence[TimingRow]) -> None:
        measured = [timing.measured for timing in timings]
        noise = [1 + sign * timing.noise_floor for timing in measured for sign in (-1, 1)]
        ends = [*noise, *(end for timing in measured for end in (timing.ratio_low, timing.ratio_high))]
        far = max((abs(math.log(end)) for end in ends if end > 0), default=0.05)
        self.reach = min(3.0, far * 1.08) or 0.05

    def x(self, ratio: float) -> float:
        position = math.log(ratio) / self.reach if ratio > 0 else -1.0
        return 150 + 150 * max(-1.0, min(1.0, position))

    def axis(self) -> Markup:
        steps = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
        step = next((s for s in steps if math.log1p(s) * 2.2 >= self.reach), 0.5)
        body = ""
        for ratio, text in (
            (1 - step, f"-{100 * step:g} %"),
            (1.0, "same"),
            (1 + step, f"+{100 * step:g} %"),
        ):
            x = _n(self.x(ratio))
            body += f'<line class="c-axis" x1="{x}" x2="{x}" y1="14" y2="20"/>'
            body += f'<text x="{x}" y="10" text-anchor="middle">{escape.html(text)}</text>'
        label = "axis: head time against base time, left is faster"
        return _svg(300, 20, body, label, ' class="forest axis"')

    def row(self, timing: TimingRow) -> Markup:
        """The noise floor is a band, the interval a line, the estimate a square."""
        measured = timing.measured
        low, high, middle = map(self.x, (measured.ratio_low, measured.ratio_high, measured.ratio))
        left, right = self.x(max(1e-9, 1 - measured.noise_floor)), self.x(1 + measured.noise_floor)
        end = _n(max(high, low + 0.5))
        css_class = {"slower": "c-up", "faster": "c-down"}.get(measured.speed, "c-base")
        body = (
            f'<rect class="c-noise" x="{_n(left)}" y="0" width="{_n(max(0.5, right - left))}" height="20"/>'
            '<line class="c-axis" x1="150" x2="150" y1="0" y2="20"/>'
            f'<line class="{css_class} c-line" x1="{_n(low)}" x2="{end}" y1="10" y2="10"/>'
            f'<rect class="{css_class}" x="{_n(middle - 3)}" y="7" width="6" height="6"/>'
        )
        return _svg(300, 20, body, timing.words, ' class="forest"')
