"""Cost against iteration: how each classifier's fit went."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from hinge.report.svg import DASHES, INK, SERIES, draw
from hinge.report.wording import clean, elide

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from hinge.selection.study import Trained

MOST_POINTS = 600
"""Longer histories are thinned: a curve of a page's width shows no more."""


@dataclass(frozen=True)
class Series:
    """One line of a legend."""

    title: str
    colour: str
    dash: str = ""
    marker: str = ""


@dataclass(frozen=True)
class Chart:
    """A picture with its legend, which is text of the page and so wraps where the page is narrow."""

    svg: Markup
    legend: tuple[Series, ...] = ()
    log_iterations: bool = False


def series(position: int, title: str) -> Series:
    """Return the look of the curve at `position`: colours first, then line patterns."""
    dash = DASHES[position // len(SERIES) % len(DASHES)]
    return Series(elide(title, 60), SERIES[position % len(SERIES)], dash)


def cost_chart(classifiers: Sequence[Trained]) -> Chart | None:
    """Draw the objective of each classifier that kept a history; None if there is nothing to draw."""
    curves = []
    for position, trained in enumerate(classifiers):
        points = [(h.iteration, h.objective) for h in trained.history if math.isfinite(h.objective)]
        if points:
            curves.append((series(position, trained.title), _thin(points)))
    if not curves:
        return None
    lengths = [points[-1][0] for _, points in curves]
    far_apart = max(lengths) >= min(1000, 20 * max(1, min(lengths)))
    heights = [cost for _, points in curves for _, cost in points]

    def paint(figure: Figure) -> None:
        axes = figure.add_axes((0.1, 0.14, 0.88, 0.8))
        for look, points in curves:
            x, y = zip(*points, strict=True)
            pattern = (0, tuple(float(d) / 1.6 for d in look.dash.split())) if look.dash else "-"
            marker = "o" if len(points) <= 12 else ""
            axes.plot(x, y, color=look.colour, linewidth=1.8, linestyle=pattern, marker=marker, markersize=3.2)
        if far_apart:
            axes.set_xscale("symlog", linthresh=1)
            plain_ticks(axes.xaxis)
        else:
            whole_ticks(axes.xaxis)
        if min(heights) > 0 and max(heights) >= 20 * min(heights):
            axes.set_yscale("log")
            log_ticks(axes.yaxis, min(heights), max(heights))
        axes.set_xlabel("iteration")
        axes.set_ylabel("cost")
        tidy(axes)

    names = ", ".join(clean(look.title) for look, _ in curves)
    label = f"Line chart: cost against iteration for {names}"
    return Chart(draw(paint, (7.0, 3.4), "cost", label), tuple(look for look, _ in curves), far_apart)


def _thin(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Keep the ends and points spread evenly over the logarithm of the position: fits move most at first."""
    if len(points) <= MOST_POINTS:
        return points
    last = len(points) - 1
    kept = {round(math.expm1(math.log1p(last) * k / (MOST_POINTS - 1))) for k in range(MOST_POINTS)}
    kept |= {round(last * k / (MOST_POINTS // 2)) for k in range(MOST_POINTS // 2 + 1)}
    return [points[k] for k in sorted(kept)]


def tidy(axes: Axes, grid: str = "both") -> None:
    """Leave two thin axes and a faint grid."""
    axes.spines[["top", "right"]].set_visible(False)
    for spine in axes.spines.values():
        spine.set_alpha(0.45)
    axes.tick_params(length=3, width=0.6)
    axes.minorticks_off()
    axes.grid(True, axis=grid, color=INK, alpha=0.12, linewidth=0.6)  # type: ignore[arg-type]
    axes.set_axisbelow(True)


def number(x: float) -> str:
    """Return a tick's number: plain between a ten-thousandth and a million, else with its power of ten."""
    if x == 0 or 1e-4 <= abs(x) < 1e6:
        return f"{x:,.12g}".replace("-", "−")
    digits, _, power = f"{x:.3e}".partition("e")
    return f"{float(digits):g}e{int(power)}".replace("-", "−")


def plain_ticks(axis: Axis) -> None:
    """Write an axis' numbers as plain text, never as mathematics to be typeset."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda x, _: number(round(x, 12) if abs(x) > 1e-9 else x)))
    axis.set_minor_formatter(NullFormatter())


def whole_ticks(axis: Axis) -> None:
    """Mark whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(8, integer=True, steps=[1, 2, 5, 10]))
    plain_ticks(axis)


def log_ticks(axis: Axis, low: float, high: float) -> None:
    """Mark powers of ten, and 2 and 5 between them where the axis spans few."""
    from matplotlib.ticker import LogLocator

    steps = (1.0, 2.0, 5.0) if high < 1000 * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps, numticks=8))
    plain_ticks(axis)
