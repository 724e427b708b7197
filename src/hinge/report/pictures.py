"""Arrays as small PNG pictures inside the page."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import Any

import numpy as np

from hinge.typing import Array

LARGEST_SIDE = 96
"""Templates with longer sides are averaged down: a page shows them no larger."""


def png(pixels: Array) -> str:
    """Return RGB or RGBA pixels (height, width, 3 or 4), uint8, as a data address."""
    import matplotlib.image

    buffer = io.BytesIO()
    unsigned: dict[str, Any] = {"Software": None}  # a page names no version of what drew it
    matplotlib.image.imsave(buffer, pixels, format="png", metadata=unsigned)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def template_png(template: Array) -> str | None:
    """Return signed weights in [−1, 1], shape (h, w) or (h, w, 3), as a picture; None for other shapes.

    One channel is red below zero, white at zero and blue above; three are colours, grey at zero.
    """
    import matplotlib

    if template.ndim == 3 and template.shape[2] == 1:
        template = template[:, :, 0]
    if template.size == 0 or not (template.ndim == 2 or (template.ndim == 3 and template.shape[2] == 3)):
        return None
    shares = (np.clip(np.nan_to_num(reduce_mean(template)), -1.0, 1.0) + 1.0) / 2.0
    colours = shares if shares.ndim == 3 else matplotlib.colormaps["RdBu"](shares)[:, :, :3]
    return png(np.round(colours * 255).astype(np.uint8))


def reduce_mean(image: Array, side: int = LARGEST_SIDE) -> Array:
    """Return the image averaged over square blocks so that no side is longer than `side`."""
    return _reduce(image, side, np.nanmean)


def reduce_max(image: Array, side: int) -> Array:
    """Return the largest entry of each square block, so that no lone entry is lost."""
    return _reduce(image, side, np.nanmax)


def _reduce(image: Array, side: int, combine: Callable[..., Array]) -> Array:
    factor = -(-max(image.shape[:2]) // side)
    if factor <= 1:
        return image
    padding = [(0, -n % factor) for n in image.shape[:2]] + [(0, 0)] * (image.ndim - 2)
    padded = np.pad(image, padding, mode="edge")
    height, width = padded.shape[0] // factor, padded.shape[1] // factor
    blocks = padded.reshape(height, factor, width, factor, *image.shape[2:])
    result: Array = combine(blocks, axis=(1, 3))
    return result
