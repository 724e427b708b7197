"""A model of P's Hessian on the weights that are not 0: one block a class, from few rows, one Cholesky factor each.

The Hessian's diagonal block of class c is λI + Σᵢ cᵢ d_ic xᵢxᵢᵀ, with d_ic the second derivative of row i's loss in
its c-th score. Rows are drawn once in proportion to what they bend in all (hinge.problems.row_sample) and for each
block again in proportion to d_ic, a few for each of its weights. Blocks between classes are left out: an L1 penalty
gives every class columns of its own, so that nothing simpler than a factor for each class fits.

Cost      8192 rows' scores, k³/3 and about 4·k³ for a class of k weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import linalg, sparse

from hinge.problems.objective import LinearObjective
from hinge.problems.row_sample import RowSample, draw_rows, take_rows
from hinge.typing import Array, FloatArray

SAMPLE_ROWS = 8192
ROWS_PER_WEIGHT, LEAST_ROWS = 4, 1024
LARGEST_BLOCK = 2048  # weights; a larger class gets its diagonal


@final
@dataclass(frozen=True)
class SupportBlocks:
    """For each class its weights' columns, and their block's factor or its diagonal."""

    columns: tuple[Array, ...]
    factors: tuple[tuple[Array, bool] | Array, ...]

    def solve(self, R: Array) -> Array:
        """Return the model's inverse times R, C×(D + 1); 0 where a weight is not among those modelled."""
        solved = np.zeros_like(R)
        for c, (columns, factor) in enumerate(zip(self.columns, self.factors, strict=True)):
            part = R[c, columns]
            whole = isinstance(factor, tuple)
            solved[c, columns] = linalg.cho_solve(factor, part, check_finite=False) if whole else part / factor
        return solved


@final
class BentRows:
    """Rows drawn by what they bend at some weights, and each class's second derivatives there."""

    def __init__(
        self, objective: LinearObjective, weights: FloatArray, row_curvature: FloatArray, rng: np.random.Generator
    ) -> None:
        rows, drawn = draw_rows(row_curvature, SAMPLE_ROWS, rng)
        sample: RowSample = take_rows(objective, weights, rows, drawn)
        bends = sample.factors.diagonal.copy()
        for sign, factor in sample.factors.squares():
            bends += sign * np.square(factor)
        self._objective, self._rng = objective, rng
        self._X = sample.X.tocsc() if sparse.issparse(sample.X) else sample.X
        self._bends: Array = np.maximum(bends, 0) * sample.weight[:, None]

    def diagonal(self) -> Array:
        """Return the sampled diagonal of the Hessian, C×(D + intercept), without λ."""
        squares = self._X.power(2) if sparse.issparse(self._X) else np.square(self._X)
        diagonal: Array = np.asarray(squares.T @ self._bends, dtype=np.float64).T
        return np.hstack([diagonal, self._bends.sum(axis=0)[:, None]]) if self._objective.intercept else diagonal

    def blocks(self, free: Array, ridge: Array) -> SupportBlocks:
        """Return the model of the weights that `free` marks, with `ridge` added to its diagonal."""
        columns = tuple(np.flatnonzero(marked) for marked in free)
        factors = tuple(self._factor(c, chosen, ridge[c, chosen]) for c, chosen in enumerate(columns))
        return SupportBlocks(columns, factors)

    def _factor(self, c: int, columns: Array, ridge: Array) -> tuple[Array, bool] | Array:
        D = self._X.shape[1]
        inner = columns[columns < D]
        count = max(ROWS_PER_WEIGHT * len(columns), LEAST_ROWS)
        rows, times = draw_rows(self._bends[:, c], count, self._rng)
        X = self._X[:, inner][rows] if sparse.issparse(self._X) else self._X[np.ix_(rows, inner)]
        X = X.toarray() if sparse.issparse(X) else X
        bend = self._bends[rows, c] * times
        scaled = np.hstack([X, np.ones((len(rows), len(columns) - len(inner)), dtype=X.dtype)])
        scaled *= np.sqrt(bend)[:, None].astype(X.dtype)
        if len(columns) <= LARGEST_BLOCK:
            H = (scaled.T @ scaled).astype(np.float64)
            H[np.diag_indices_from(H)] += ridge + 4 * np.finfo(X.dtype).eps * H.diagonal()
            try:
                factor: tuple[Array, bool] = linalg.cho_factor(H, lower=True, check_finite=False)
            except linalg.LinAlgError:
                return np.array(H.diagonal())
            return factor
        squares: Array = np.square(scaled, dtype=np.float64).sum(axis=0)
        return squares + ridge
