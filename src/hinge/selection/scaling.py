"""Columns on a common scale, so that one penalty suits them all.

Tables: x → (x − mean)/σ, column by column. Pictures: x → (x − mean)/√(σ² + σ̄²/10) with σ̄² the mean variance of all
pixels, which share one unit: a pixel at the border that hardly ever changes is not blown up to the size of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.typing import Array

DAMPING = 0.1
BLOCK_VALUES = 1 << 22


@dataclass(frozen=True)
class Scaling:
    """x → (x − shift)/scale, per column."""

    shift: Array
    scale: Array
    description: str

    @classmethod
    def of(cls, X: Array, *, pictures: bool) -> Scaling:
        """Measure the rows of `X`; a column that never changes is only shifted."""
        mean, variance, unit = _moments(X, one_unit=pictures)
        if pictures:
            variance = variance + DAMPING * variance.mean()
        deviation = np.sqrt(variance)
        scale = np.where(deviation > 1e-7, deviation, 1.0) * unit
        description = (
            "each pixel to mean 0 and about standard deviation 1, damped where it hardly changes"
            if pictures
            else "each column to mean 0 and standard deviation 1"
        )
        return cls((mean * unit).astype(X.dtype), scale.astype(X.dtype), description)

    def apply(self, X: Array) -> Array:
        """Return scaled rows."""
        scaled: Array = X / self.scale
        scaled -= self.shift / self.scale
        return scaled

    def fold_into(self, model: Any) -> None:
        """Change a model of scaled rows into the same model of raw rows."""
        coef = model.coef_.astype(np.float64) / self.scale
        intercept = model.intercept_ - coef @ self.shift.astype(np.float64)
        model.coef_ = coef.astype(model.coef_.dtype)
        model.intercept_ = intercept.astype(model.intercept_.dtype)


def _moments(X: Array, *, one_unit: bool) -> tuple[Array, Array, Array]:
    """Return each column's mean and variance in units of its largest value, or of the largest of all, and these units.

    In two passes over blocks of rows, in float64; the unit keeps squares of values like 1e300 finite.
    """
    rows = max(1, BLOCK_VALUES // X.shape[1])
    blocks = [X[start : start + rows] for start in range(0, X.shape[0], rows)]
    largest = np.max([np.abs(block).max(axis=0) for block in blocks], axis=0).astype(np.float64)
    if one_unit:
        largest[:] = largest.max()
    unit = np.where(largest > 0, largest, 1.0)
    mean = np.sum([(block / unit).sum(axis=0) for block in blocks], axis=0) / X.shape[0]
    variance = np.sum([np.square(block / unit - mean).sum(axis=0) for block in blocks], axis=0) / X.shape[0]
    return mean, variance, unit
