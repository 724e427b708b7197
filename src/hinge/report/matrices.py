"""Confusion matrices as pictures: with numbers while they fit, as a map of shades beyond."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from hinge.inspection import Confusion
from hinge.report.pictures import reduce_max
from hinge.report.svg import INK, draw
from hinge.report.wording import columns, elide, percent
from hinge.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NUMBERED = 25
"""With more classes than these, cells are too small for numbers."""

MOST_CELLS = 250
"""A map of more classes shows the deepest cell of each block: a page has no more points a side."""

FOUND, MISTAKEN = (0x1F, 0x5F, 0xBF), (0xC2, 0x4A, 0x00)


def numbered(confusion: Confusion, names: Sequence[str], title: str, name: str) -> list[Markup]:
    """Draw the counts and the shares of each true class, a number in each cell that has rows."""
    counts, shares = confusion.counts, confusion.normalized
    number_of = np.vectorize(_short, otypes=[object])
    share_of = np.vectorize(lambda s: percent(float(s)).rstrip("%"), otypes=[object])
    label = f"{title}: confusion matrix,"
    unit = "per cent of the true class"
    return [
        _matrix(shares, number_of(counts), names, "rows", f"{name}-counts", f"{label} rows"),
        _matrix(shares, share_of(shares), names, unit, f"{name}-shares", f"{label} {unit}"),
    ]


def shaded(confusion: Confusion, names: Sequence[str], title: str, name: str) -> Markup:
    """Draw the shares of each true class as shades."""
    pixels = _pixels(reduce_max(confusion.normalized, MOST_CELLS))
    n_classes, step = len(names), -(-len(names) // 24)
    cell = n_classes / len(pixels)

    def paint(figure: Figure) -> None:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.imshow(pixels, interpolation="none")
        shown = range(0, n_classes, step)
        _label(axes, [elide(names[k], 14) for k in shown], [(k + 0.5) / cell - 0.5 for k in shown])
        axes.spines[:].set_alpha(0.35)

    return draw(paint, (5.6, 5.6), name, f"{title}: confusion matrix of {n_classes} classes as shades")


def _matrix(shares: Array, texts: Array, names: Sequence[str], unit: str, name: str, label: str) -> Markup:
    n_classes = len(names)
    side = 0.6 if n_classes <= 4 else 0.42 if n_classes <= 12 else 0.36
    longest = max(len(text) for text in texts.ravel())
    font_size = min(9.0, side * 72 * 0.9 / (0.6 * max(longest, 3)))
    pixels = _pixels(shares)

    def paint(figure: Figure) -> None:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.imshow(pixels, interpolation="none")
        for i, j in np.argwhere(shares > 0):
            colour = "white" if pixels[i, j, 3] > 0.78 * 255 else INK
            axes.text(j, i, texts[i, j], ha="center", va="center_baseline", fontsize=font_size, color=colour)
        edges = np.arange(n_classes + 1) - 0.5
        line: dict[str, Any] = {"color": INK, "alpha": 0.14, "linewidth": 0.5}
        axes.vlines(edges, -0.5, n_classes - 0.5, **line)
        axes.hlines(edges, -0.5, n_classes - 0.5, **line)
        _label(axes, [elide(n, 16) for n in names], range(n_classes))
        axes.spines[:].set_visible(False)
        axes.set_title(unit, fontsize=9, loc="left", pad=6)

    return draw(paint, (side * n_classes, side * n_classes), name, label)


def _label(axes: Axes, texts: Sequence[str], places: Sequence[float]) -> None:
    steep = max(map(columns, texts)) > 3
    turn: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if steep else {}
    axes.set_xticks(list(places), list(texts), **turn)
    axes.set_yticks(list(places), list(texts))
    axes.tick_params(length=0, pad=3)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")


def _pixels(shares: Array) -> Array:
    """Return colours whose opacity grows with the share, so that a cell without rows shows the page's ground.

    Errors grow with the square root: one row of a hundred mistaken shall be seen.
    """
    pixels = np.empty((*shares.shape, 4), dtype=np.uint8)
    pixels[..., :3] = MISTAKEN
    opacity = np.where(shares > 0, 0.12 + 0.88 * np.sqrt(shares), 0.0)
    diagonal = np.arange(len(shares))
    pixels[diagonal, diagonal, :3] = FOUND
    opacity[diagonal, diagonal] = np.diagonal(shares)
    pixels[..., 3] = np.round(255 * opacity)
    return pixels


def _short(rows: int) -> str:
    if rows < 100_000:
        return str(rows)
    return f"{rows / 1000:.0f}k" if rows < 100_000_000 else f"{rows / 1e6:.0f}M"
