"""Rows drawn in proportion to what they bend the objective, and the sums over them that model its Hessian.

The Hessian of the mean loss is Σᵢ cᵢ Dᵢ ⊗ xᵢxᵢᵀ with Dᵢ (C×C) the second derivative of row i's loss in its scores. On
data that a model has mostly learnt, a few thousand rows near the boundaries hold nearly all of it: drawn in
proportion to vᵢ·trace Dᵢ, they estimate the sum far better than rows drawn blindly.

Paper: Xu, Yang, Roosta-Khorasani, Ré & Mahoney, NeurIPS 2016 (block-norm sampling).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from hinge.ops import vectorized
from hinge.ops.vectorized import CurvatureFactors
from hinge.problems.objective import LinearObjective
from hinge.typing import Array, FloatArray

UNIFORM_SHARE = 0.1  # of the draws that ignore curvature, so that no row's weight explodes
PRODUCT_ROWS = 2048  # whose products exist at a time


def draw_rows(row_curvature: FloatArray, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return about `count` rows and by how much each stands for others; all rows if there are no more.

    Systematic: each row comes as often as its share says, rounded up or down.
    """
    N = len(row_curvature)
    if count >= N:
        return np.arange(N), np.ones(N)
    total = float(row_curvature.sum(dtype=np.float64))
    share = np.full(N, UNIFORM_SHARE / N)
    share += (1 - UNIFORM_SHARE) * (row_curvature / total if total > 0 else 1 / N)
    ends = np.cumsum(share)
    points = (np.arange(count) + rng.random()) / count * ends[-1]
    rows, times = np.unique(np.searchsorted(ends, points), return_counts=True)
    return rows, times / (count * share[rows])


def take_rows(objective: LinearObjective, weights: FloatArray, rows: Array, drawn: Array) -> RowSample:
    """Return these rows with the curvature of their losses at `weights`."""
    X, y, v = objective.passes.rows(rows)
    S = X @ weights[:, : X.shape[1]].T
    if objective.intercept:
        S = S + weights[:, X.shape[1]]
    factors = vectorized.FACTORS[objective.loss.kind](S, y, objective.loss)
    weight = (drawn * v / objective.total_weight).astype(S.dtype)
    return RowSample(X, weight, factors, objective.intercept)


def class_hessians(
    objective: LinearObjective, weights: FloatArray, rows: Array, drawn: Array, pool: ThreadPoolExecutor
) -> list[Array]:
    """Return Σ cᵢ d_ic xᵢxᵢᵀ of each class c, its lower triangle: the losses' Hessian where classes do not meet."""
    pieces = [slice(start, start + PRODUCT_ROWS) for start in range(0, len(rows), PRODUCT_ROWS)]
    samples = pool.map(lambda piece: take_rows(objective, weights, rows[piece], drawn[piece]).diagonal(), pieces)
    bend = np.concatenate(list(samples))
    D, intercept = objective.passes.n_features, objective.intercept
    syrk = linalg.get_blas_funcs("syrk", dtype=weights.dtype)

    def one_class(c: int) -> Array:
        H: Array = np.zeros((D + intercept, D + intercept), dtype=weights.dtype, order="F")
        active = np.flatnonzero(bend[:, c])
        for start in range(0, len(active), PRODUCT_ROWS):
            part = active[start : start + PRODUCT_ROWS]
            X = objective.passes.rows(rows[part])[0]
            scaled = np.ones((len(part), D + intercept), dtype=weights.dtype)
            scaled[:, :D] = X.toarray() if sparse.issparse(X) else X
            scaled *= np.sqrt(bend[part, c])[:, None]
            H = syrk(1.0, scaled.T, beta=1.0, c=H, lower=1, overwrite_c=1)
        return H

    return list(pool.map(one_class, range(bend.shape[1])))


@dataclass(frozen=True)
class RowSample:
    """Drawn rows, the weights cᵢ, and Dᵢ in factors. A column of ones follows with intercepts."""

    X: Any
    weight: Array
    factors: CurvatureFactors
    intercept: bool

    def times(self, M: Array) -> Array:
        """Return the rows, with their column of ones if there are intercepts, times M."""
        product: Array = self.X @ M[: self.X.shape[1]]
        return product + M[-1] if self.intercept else product

    def bends(self) -> Array:
        """Return cᵢ·trace Dᵢ."""
        bends: Array = np.maximum(self.factors.trace(), 0) * self.weight
        return bends

    def diagonal(self) -> Array:
        """Return cᵢ·d_ic, rows × C."""
        diagonal: Array = self.weight[:, None] * self.factors.diagonal
        return diagonal

    def second_moment(self) -> Array:
        """Return Σ cᵢ·trace(Dᵢ)·xᵢxᵢᵀ."""
        share = self.bends().astype(self.X.dtype)
        N, D = self.X.shape
        A = np.zeros((D + self.intercept, D + self.intercept), dtype=self.X.dtype)
        for start in range(0, N, PRODUCT_ROWS):
            X, part = self.X[start : start + PRODUCT_ROWS], share[start : start + PRODUCT_ROWS]
            X = X.toarray() if sparse.issparse(X) else X
            A[:D, :D] += _square(X * np.sqrt(part)[:, None])
            if self.intercept:
                A[D, :D] += part @ X
        if self.intercept:
            A[:D, D] = A[D, :D]
            A[D, D] = share.sum()
        return A

    def squares(self) -> Array:
        """Return the diagonal of the second moment."""
        squares = self.X.power(2) if sparse.issparse(self.X) else np.square(self.X)
        share = self.bends()
        diagonal = np.asarray(squares.T @ share, dtype=np.float64).ravel()
        return np.append(diagonal, share.sum()) if self.intercept else diagonal

    def class_curvature(self) -> Array:
        """Return Σ cᵢ Dᵢ."""
        weight = self.weight[:, None]
        G = np.diag((weight * self.factors.diagonal).sum(axis=0, dtype=np.float64))
        for sign, factor in self.factors.squares():
            G += sign * (factor.T @ (weight * factor))
        return G

    def hessian(self, U: Array) -> Array:
        """Return Σ cᵢ Dᵢ ⊗ zᵢzᵢᵀ for the coordinates zᵢ = Uᵀxᵢ."""
        C, k = self.factors.diagonal.shape[1], U.shape[1]
        Z = self.times(U) * np.sqrt(self.weight).astype(U.dtype)[:, None]
        H = np.zeros((C * k, C * k), dtype=Z.dtype)
        for sign, factor in self.factors.squares():
            for start in range(0, len(Z), PRODUCT_ROWS):
                part = slice(start, start + PRODUCT_ROWS)
                H += sign * _square((factor[part, :, None] * Z[part, None, :]).reshape(-1, C * k))
        for c in range(C):
            own = slice(c * k, (c + 1) * k)
            H[own, own] += Z.T @ (self.factors.diagonal[:, c, None] * Z)
        return H


def _square(J: Array) -> Array:
    return J.T @ J
