"""A model M of the Hessian of P that is cheap to build from few rows and cheap to invert.

The Hessian is λI + Σᵢ cᵢ Dᵢ ⊗ xᵢxᵢᵀ, with Dᵢ (C×C) the second derivative of row i's loss in its scores. M joins

    two scales     In the eigenvectors U of A = Σ ωᵢ xᵢxᵢᵀ (ωᵢ ~ trace Dᵢ) the k leading directions of features carry
                   most of the curvature: there, k·C coordinates, M is the sampled Hessian itself, factored by Cholesky.
                   On all other directions it is the Kronecker product G ⊗ A + λI with G = Σ cᵢ Dᵢ, diagonal in the
                   eigenvectors of both.
    few rows       drawn in proportion to what they bend, vᵢ·trace Dᵢ: on data that a model has mostly learnt, a few
                   thousand rows near the boundaries hold nearly all curvature.

Cost      n rows of D features: n·D² for A, 25·D³ or so for U, n·(kC)² for the leading block; each application is two
          products with U. Where U costs more than it can save, the columns themselves serve as directions.

Papers: Martens & Grosse, ICML 2015 (Kronecker factors); Xu, Yang, Roosta-Khorasani, Ré & Mahoney, NeurIPS 2016 (rows
drawn by curvature). The two scales are domain decomposition's deflation: Nicolaides, SIAM J. Numer. Anal. 24 (1987).
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, final

import numpy as np
from scipy import linalg, sparse

from hinge.ops import vectorized
from hinge.ops.vectorized import CurvatureFactors
from hinge.problems.objective import LinearObjective
from hinge.typing import Array, FloatArray

SAMPLE_ROWS = 8192
LEADING_COORDINATES = 1024  # k·C at most
SMALL = 256  # coordinates that are always worth it
MOST_ROTATED = 4096  # features
PRODUCT_ROWS = 2048  # whose C·k products exist at a time
UNIFORM_SHARE = 0.1  # of the draws that ignore curvature, so that no row's weight explodes


@final
@dataclass(frozen=True)
class Preconditioner:
    """M in the coordinates K = V·(R∘scale)·U: directions of classes times directions of features."""

    scale: Array | None
    U: Array | None
    V: Array
    curvature: Array
    leading: tuple[Array, bool] | None
    n_leading: int

    def solve(self, R: Array) -> Array:
        """Return M⁻¹ of each matrix of R, B×C×(D + 1)."""
        B, C, D = R.shape
        T = R if self.scale is None else R * self.scale
        T = T if self.U is None else (T.reshape(B * C, D) @ self.U).reshape(R.shape)
        K: Array = self.V @ ((self.V.T @ T) / self.curvature)
        if self.leading is not None:
            k = self.n_leading
            solved = linalg.cho_solve(self.leading, T[:, :, :k].reshape(B, C * k).T, check_finite=False)
            K[:, :, :k] = solved.T.reshape(B, C, k)
        K = K if self.U is None else (K.reshape(B * C, D) @ self.U.T).reshape(R.shape)
        return K if self.scale is None else K * self.scale


@dataclass(frozen=True)
class _Sample:
    """Drawn rows, the weights cᵢ, and Dᵢ in factors. One thread's share of all that were drawn."""

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

    def second_moment(self) -> Array:
        """Return Σ cᵢ·trace(Dᵢ)·xᵢxᵢᵀ."""
        X = self.X.toarray() if sparse.issparse(self.X) else self.X
        D = X.shape[1]
        share = self.bends().astype(X.dtype)
        A = np.empty((D + self.intercept, D + self.intercept), dtype=X.dtype)
        A[:D, :D] = _square(X * np.sqrt(share)[:, None])
        if self.intercept:
            A[D, :D] = A[:D, D] = share @ X
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


@dataclass(frozen=True)
class _Basis:
    """Directions of features, the leading ones first: their curvature and the penalty along them."""

    scale: Array | None
    U: Array | None
    curvature: Array
    ridge: Array


@final
class PreconditionerBuilder:
    """Builds M for an objective, again and again as the weights move; keeps U, which moves little."""

    def __init__(self, objective: LinearObjective, seed: int) -> None:
        self._objective = objective
        self._rng = np.random.default_rng(seed)
        self._pass_flops = 4.0 * objective.passes.n_values * objective.passes.n_classes
        self._basis: _Basis | None = None

    def build(self, weights: FloatArray, row_curvature: FloatArray, budget: float) -> Preconditioner:
        """Return M at `weights`, spending about as much work as `budget` passes over the rows."""
        flops = budget * self._pass_flops
        with ThreadPoolExecutor(self._objective.passes.threads) as pool:
            rows, drawn = self._draw(row_curvature)
            parts = self._parts(len(rows))
            samples = list(pool.map(lambda part: self._sample(weights, rows[part], drawn[part]), parts))
            G = _sum(sample.class_curvature() for sample in samples)
            gamma, V = np.linalg.eigh(G)
            gamma = np.maximum(gamma, 0.0)
            if self._basis is None or (self._basis.U is None and self._rotation_pays(len(rows), flops)):
                self._basis = self._new_basis(samples, pool, float(gamma[-1]), self._rotation_pays(len(rows), flops))
            basis, dtype = self._basis, weights.dtype
            curvature = np.maximum(gamma[:, None] * basis.curvature + basis.ridge, np.finfo(dtype).tiny)
            model = Preconditioner(basis.scale, basis.U, V.astype(dtype), curvature.astype(dtype), None, 0)
            k = self._leading_directions(len(rows), flops)
            if basis.U is None or k == 0 or not gamma[-1] > 0 or not np.any(weights):
                return model
            U = basis.U[:, :k] if basis.scale is None else basis.scale[:, None] * basis.U[:, :k]
            H = _sum(pool.map(lambda sample: sample.hessian(U), samples))
        ridge = np.tile(basis.ridge[:k], len(gamma)) + np.finfo(dtype).eps * np.trace(H) / len(H)
        H[np.diag_indices_from(H)] += ridge
        try:
            leading = linalg.cho_factor(H.astype(dtype), lower=True, check_finite=False)
            return replace(model, leading=leading, n_leading=k)
        except linalg.LinAlgError:  # rounding swallowed λ: the Kronecker form is still positive
            return model

    def class_curvature(self, weights: FloatArray, row_curvature: FloatArray) -> Array:
        """Return G, the Hessian of P in the intercepts alone."""
        rows, drawn = self._draw(row_curvature)
        return self._sample(weights, rows, drawn).class_curvature()

    def _parts(self, n: int) -> list[slice]:
        threads = self._objective.passes.threads
        edges = [n * k // threads for k in range(threads + 1)]
        return [slice(a, b) for a, b in pairwise(edges) if b > a]

    def _draw(self, row_curvature: FloatArray) -> tuple[Array, Array]:
        """Draw rows by curvature, systematically: each comes as often as its share says, rounded up or down."""
        N = self._objective.passes.n_rows
        if N <= SAMPLE_ROWS:
            return np.arange(N), np.ones(N)
        total = float(row_curvature.sum(dtype=np.float64))
        share = np.full(N, UNIFORM_SHARE / N)
        share += (1 - UNIFORM_SHARE) * (row_curvature / total if total > 0 else 1 / N)
        ends = np.cumsum(share)
        points = (np.arange(SAMPLE_ROWS) + self._rng.random()) / SAMPLE_ROWS * ends[-1]
        rows, times = np.unique(np.searchsorted(ends, points), return_counts=True)
        return rows, times / (SAMPLE_ROWS * share[rows])

    def _sample(self, weights: FloatArray, rows: Array, drawn: Array) -> _Sample:
        objective = self._objective
        X, y, v = objective.passes.rows(rows)
        S = X @ weights[:, : X.shape[1]].T
        if objective.intercept:
            S = S + weights[:, X.shape[1]]
        factors = vectorized.FACTORS[objective.loss.kind](S, y, objective.loss)
        weight = (drawn * v / objective.total_weight).astype(S.dtype)
        return _Sample(X, weight, factors, objective.intercept)

    def _rotation_pays(self, n: int, flops: float) -> bool:
        D = self._objective.passes.n_features + self._objective.intercept
        return D <= SMALL or (25.0 * D**3 + 2.0 * n * D**2 <= 4 * flops and D <= MOST_ROTATED)

    def _leading_directions(self, n: int, flops: float) -> int:
        """Return k: as many as the budget allows."""
        passes = self._objective.passes
        coordinates = min(LEADING_COORDINATES, max(SMALL, (2 * flops / n) ** 0.5))
        return min(passes.n_features + self._objective.intercept, int(coordinates / passes.n_classes))

    def _new_basis(self, samples: list[_Sample], pool: ThreadPoolExecutor, gamma: float, rotated: bool) -> _Basis:
        l2 = self._objective.l2
        total = float(sum(sample.bends().sum(dtype=np.float64) for sample in samples)) or 1.0
        if not rotated:
            diagonal = _sum(sample.squares() for sample in samples) / total
            return _Basis(None, None, diagonal, np.full(len(diagonal), l2))
        A = _sum(pool.map(_Sample.second_moment, samples)) / total
        dtype = self._objective.passes.dtype
        scale = None
        ridge = np.full(len(A), l2)
        if gamma * A.diagonal().max() > 1e-2 / np.finfo(dtype).eps * l2:
            # Columns of very different sizes: bring the diagonal of M to 1 first, or rounding hides the small ones.
            scale = 1 / np.sqrt(gamma * A.diagonal() + l2)
            A *= scale[:, None] * scale
        values, U = linalg.eigh(A if scale is not None else A.astype(dtype), driver="evd", check_finite=False)
        values, U = np.maximum(values[::-1], 0).astype(np.float64), np.ascontiguousarray(U[:, ::-1])
        if scale is not None:
            ridge = np.square(U).T @ (l2 * scale**2)
            scale = scale.astype(dtype)
        return _Basis(scale, U.astype(dtype), values, ridge)


def _square(J: Array) -> Array:
    return J.T @ J


def _sum(parts: Iterable[Array]) -> Array:
    """Add up in float64, in order."""
    total, *rest = (part.astype(np.float64) for part in parts)
    for part in rest:
        total += part
    return total
