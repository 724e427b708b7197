"""Is a gradient right? Compare it with differences of the loss itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.errors import UsageError
from hinge.typing import Array


@dataclass(frozen=True)
class GradientCheck:
    """The worst coordinate: its relative error, where it is, and the two values there.

    The relative error is |analytic − numeric| / max(|analytic|, |numeric|, 1e-3·largest gradient entry), so that
    entries which are tiny beside the others, and drown in rounding, cannot raise a false alarm.
    """

    worst_relative_error: float
    index: tuple[int, ...]
    analytic: float
    numeric: float
    n_checked: int

    def __str__(self) -> str:
        return (
            f"worst relative error {self.worst_relative_error:.3g} at W{list(self.index)}: "
            f"gradient {self.analytic:.8g}, by differences {self.numeric:.8g} ({self.n_checked} entries checked)"
        )


def check_gradient(
    loss: Callable[..., tuple[float, Array]],
    W: Array,
    *args: Any,
    step: float = 1e-5,
    n_checks: int | None = None,
    seed: int = 0,
    **kwargs: Any,
) -> GradientCheck:
    """Compare the gradient of `loss(W, *args, **kwargs)` with central differences and report the worst entry.

    Every entry of W is tried, or `n_checks` of them drawn with `seed`. Differences of two orders,
    (f(w+h) − f(w−h)) / 2h at h and at h/2, are combined (Richardson) to cancel the error of order h².
    Near a kink of a hinge, closer than `step` times a feature, no difference can be right: keep away from them.
    """
    if not 0 < step < 1:
        raise UsageError(f"step={step!r} is not between 0 and 1", remedy="Use for example step=1e-5.")
    W = np.array(W, dtype=np.float64)
    analytic = np.asarray(loss(W, *args, **kwargs)[1], dtype=np.float64)
    if analytic.shape != W.shape:
        raise UsageError(f"the gradient has shape {analytic.shape}, W has {W.shape}")
    entries = np.arange(W.size)
    if n_checks is not None and n_checks < W.size:
        entries = np.random.default_rng(seed).choice(W.size, n_checks, replace=False)

    def difference(index: tuple[int, ...], h: float) -> float:
        kept = W[index]
        W[index] = kept + h
        above = loss(W, *args, **kwargs)[0]
        W[index] = kept - h
        below = loss(W, *args, **kwargs)[0]
        W[index] = kept
        return float((above - below) / (2 * h))

    floor = 1e-3 * float(np.abs(analytic).max(initial=0.0))
    worst = GradientCheck(0.0, (0,) * W.ndim, 0.0, 0.0, len(entries))
    for entry in entries:
        index = tuple(int(k) for k in np.unravel_index(entry, W.shape))
        h = step * max(1.0, abs(float(W[index])))
        numeric = (4 * difference(index, h / 2) - difference(index, h)) / 3
        value = float(analytic[index])
        scale = max(abs(value), abs(numeric), floor)
        error = 0.0 if scale == 0 else abs(value - numeric) / scale
        if error > worst.worst_relative_error or not np.isfinite(error):
            worst = GradientCheck(error, index, value, numeric, len(entries))
    return worst
