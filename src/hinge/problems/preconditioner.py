"""A model M of the Hessian of P that is cheap to build from few rows and cheap to invert.

The Hessian is λI + Σᵢ cᵢ Dᵢ ⊗ xᵢxᵢᵀ, with Dᵢ (C×C) the second derivative of row i's loss in its scores; the sum
runs over rows drawn by what they bend (hinge.problems.row_sample). M has one of two forms:

    two scales     In the eigenvectors U of A = Σ ωᵢ xᵢxᵢᵀ (ωᵢ ~ trace Dᵢ) the k leading directions of features carry
                   most of the curvature: there, k·C coordinates, M is the sampled Hessian itself, factored by Cholesky.
                   On all other directions it is the Kronecker product G ⊗ A + λI with G = Σ cᵢ Dᵢ, diagonal in the
                   eigenvectors of both.
    class blocks   Where the classes of a loss do not meet (one-vs-rest), the Hessian is C blocks of D×D, and M is they.

Cost      n rows of D features: n·D² for A, about 25·D³ for U, n·(kC)² for the leading block; each application is two
          products with U. Where U costs more than it can save, the columns themselves serve as directions.
Sharing   Only λI knows the penalty: what was summed for one λ serves every other one, at the price of a factorisation.

Papers: Martens & Grosse, ICML 2015 (Kronecker factors); Nicolaides, SIAM J. Numer. Anal. 24 (1987) (deflation, which
the two scales are).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol, final

import numpy as np
from scipy import linalg

from hinge.problems.objective import LinearObjective
from hinge.problems.row_sample import RowSample, class_hessians, draw_rows, take_rows
from hinge.typing import Array, FloatArray

SAMPLE_ROWS = 8192
INTERCEPT_ROWS = 1024
LEADING_COORDINATES = 1024  # k·C at most
SMALL = 256  # coordinates that are always worth it
MOST_ROTATED = 4096  # features
PAIRS_PER_UNKNOWN = 3  # rows drawn for each weight, where each class has a block of its own
MOST_BLOCK_VALUES = 1 << 25
PENALTIES_PER_E = 16  # for which a model is factored
ITERATION_FLOPS = 1e8  # what an iteration costs at least, for the little things around its pass
SETTLED = 1e-12  # of the largest eigenvalue: below, a direction of classes does not bend


class Preconditioner(Protocol):
    """M, and whether it is the Hessian itself rather than a model."""

    @property
    def exact(self) -> bool:
        """Whether nothing was left out."""
        ...

    def solve(self, R: Array) -> Array:
        """Return M⁻¹ of each matrix of R, B×C×(D + 1)."""
        ...


@final
@dataclass(frozen=True)
class TwoScales:
    """M in the coordinates K = V·(R∘scale)·U: directions of classes times directions of features."""

    scale: Array | None
    U: Array | None
    V: Array
    curvature: Array
    leading: tuple[Array, bool] | None = None
    n_leading: int = 0
    exact: bool = False

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


@final
@dataclass(frozen=True)
class ClassBlocks:
    """M as one Cholesky factor a class."""

    factors: tuple[tuple[Array, bool], ...]
    exact: bool

    def solve(self, R: Array) -> Array:
        """Return M⁻¹ of each matrix of R, B×C×(D + 1)."""
        solved = np.empty_like(R)
        for c, factor in enumerate(self.factors):
            solved[:, c] = linalg.cho_solve(factor, R[:, c].T, check_finite=False).T
        return solved


@dataclass(frozen=True)
class _Basis:
    """Directions of features, the leading ones first: their curvature, and ‖·‖² along them, which λ multiplies.

    `largest` is that of the Hessian's diagonal without the penalty.
    """

    scale: Array | None
    U: Array | None
    curvature: Array
    length: Array
    largest: float

    def resolves(self, l2: float, dtype: type) -> bool:
        """Return whether rounding leaves the penalty its say."""
        return self.scale is not None or self.U is None or self.largest <= 1e-2 / float(np.finfo(dtype).eps) * l2


class _Summed(Protocol):
    """The Hessian of the mean loss as it was summed, without a penalty."""

    def penalized(self, l2: float, dtype: type) -> Preconditioner | None:
        """Return M, or None where rounding swallows λ."""
        ...


@final
@dataclass(frozen=True)
class _SummedScales:
    basis: _Basis
    gamma: Array
    V: Array
    leading: Array | None = None
    lengths: Array | None = None
    whole: bool = False

    def penalized(self, l2: float, dtype: type) -> TwoScales:
        basis = self.basis
        ridge = l2 * basis.length
        curvature = np.maximum(self.gamma[:, None] * basis.curvature + ridge, np.finfo(dtype).tiny)
        model = TwoScales(basis.scale, basis.U, self.V.astype(dtype), curvature.astype(dtype))
        if self.leading is None or self.lengths is None:
            return model
        H, k = self.leading.copy(), len(self.lengths) // len(self.gamma)
        H += l2 * self.lengths
        H[np.diag_indices_from(H)] += np.finfo(dtype).eps * np.trace(H) / len(H)
        try:
            factor = linalg.cho_factor(H.astype(dtype), lower=True, check_finite=False)
        except linalg.LinAlgError:  # rounding swallowed λ: the Kronecker form is still positive
            return model
        return replace(model, leading=factor, n_leading=k, exact=self.whole and k == len(ridge))


@final
@dataclass(frozen=True)
class _SummedBlocks:
    blocks: list[Array]
    whole: bool

    def penalized(self, l2: float, dtype: type) -> ClassBlocks | None:
        factors = []
        for block in self.blocks:
            H = block.copy(order="K")
            H[np.diag_indices_from(H)] += l2
            try:
                factors.append(linalg.cho_factor(H, lower=True, overwrite_a=True, check_finite=False))
            except linalg.LinAlgError:
                return None
        return ClassBlocks(tuple(factors), self.whole)


@final
class PreconditionerBuilder:
    """Builds M for an objective, again and again as the weights move; keeps U, which moves little."""

    def __init__(self, objective: LinearObjective, seed: int, earlier: PreconditionerBuilder | None = None) -> None:
        """`earlier` built M for rows much like these, under whatever penalty: its U and its sums are taken over."""
        self._objective = objective
        self._rng = np.random.default_rng(seed)
        passes = objective.passes
        self._classes, self._columns = passes.n_classes, passes.n_features + objective.intercept
        self._pass_flops = max(4.0 * passes.n_values * passes.n_classes, ITERATION_FLOPS)
        self._basis: _Basis | None = None
        self._summed: _Summed | None = None
        self._standing: dict[int, Preconditioner | None] = {}
        self.cost = 0.0
        if earlier is not None and earlier._basis is not None and earlier._basis.resolves(objective.l2, passes.dtype):
            self._basis, self._summed, self.cost = earlier._basis, earlier._summed, earlier.cost
            self._standing = earlier._standing

    def build(self, weights: FloatArray, row_curvature: FloatArray, budget: float) -> Preconditioner:
        """Return M at `weights`, spending about as much work as `budget` passes over the rows.

        Afterwards `cost` says how many passes' work it was.
        """
        flops, self._standing = budget * self._pass_flops, {}
        l2, dtype = self._objective.l2, self._objective.passes.dtype
        with ThreadPoolExecutor(self._objective.passes.threads) as pool:
            if self._objective.loss.kind == "one_vs_rest" and np.any(weights):
                blocks = self._class_blocks(weights, row_curvature, flops, pool)
                model = None if blocks is None else blocks.penalized(l2, dtype)
                if model is not None:
                    self._summed = blocks
                    return model
            scales = self._two_scales(weights, row_curvature, flops, pool)
        self._summed = scales
        return scales.penalized(l2, dtype)

    def standing(self) -> Preconditioner | None:
        """Return M of the last sums, or None if there are none: at this objective's λ up to 3 per cent, such that folds
        can share it.
        """
        if self._summed is None:
            return None
        place = round(PENALTIES_PER_E * math.log(self._objective.l2))
        if place not in self._standing:
            l2 = math.exp(place / PENALTIES_PER_E)
            self._standing[place] = self._summed.penalized(l2, self._objective.passes.dtype)
        return self._standing[place]

    def class_curvature(self, weights: FloatArray, row_curvature: FloatArray) -> Array:
        """Return G, the Hessian of P in the intercepts alone."""
        rows, drawn = draw_rows(row_curvature, INTERCEPT_ROWS, self._rng)
        return take_rows(self._objective, weights, rows, drawn).class_curvature()

    def _two_scales(
        self, weights: FloatArray, row_curvature: FloatArray, flops: float, pool: ThreadPoolExecutor
    ) -> _SummedScales:
        rows, drawn = draw_rows(row_curvature, SAMPLE_ROWS, self._rng)
        n, whole = len(rows), len(rows) == len(row_curvature)
        parts = _parts(n, self._objective.passes.threads)
        samples = list(pool.map(lambda part: take_rows(self._objective, weights, rows[part], drawn[part]), parts))
        gamma, V = np.linalg.eigh(_sum(sample.class_curvature() for sample in samples))
        gamma = np.where(gamma > SETTLED * gamma[-1], gamma, 0.0)
        spent = 2.0 * n * self._columns * self._classes
        if self._basis is None or (self._basis.U is None and self._rotation_pays(n, flops)):
            self._basis = self._new_basis(samples, pool, float(gamma[-1]), self._rotation_pays(n, flops))
            spent += 25.0 * self._columns**3 + 2.0 * n * self._columns**2 if self._basis.U is not None else 0.0
        basis = self._basis
        k = self._leading_directions(n, flops)
        self.cost = spent / self._pass_flops
        if basis.U is None or k == 0 or not gamma[-1] > 0 or not np.any(weights):
            return _SummedScales(basis, gamma, V)
        self.cost += (n * (k * self._classes) ** 2 + (k * self._classes) ** 3 / 3) / self._pass_flops
        U = basis.U[:, :k] if basis.scale is None else basis.scale[:, None] * basis.U[:, :k]
        H = _sum(pool.map(lambda sample: sample.hessian(U), samples))
        return _SummedScales(basis, gamma, V, H, self._lengths(U), whole)

    def _lengths(self, U: Array) -> Array:
        """Return what the penalty bends, over λ, in the coordinates U of all classes.

        Free intercepts are no part of it, but for what all of them share, along which the loss may be flat.
        """
        U = U.astype(np.float64)
        C, D = self._classes, self._objective.penalized
        return np.kron(np.eye(C), U[:D].T @ U[:D]) + np.kron(np.full((C, C), 1 / C), U[D:].T @ U[D:])

    def _rotation_pays(self, n: int, flops: float) -> bool:
        D = self._columns
        return D <= SMALL or (25.0 * D**3 + 2.0 * n * D**2 <= 4 * flops and D <= MOST_ROTATED)

    def _leading_directions(self, n: int, flops: float) -> int:
        """Return k: as many as the budget allows."""
        coordinates = min(LEADING_COORDINATES, max(SMALL, (2 * flops / n) ** 0.5))
        return min(self._columns, int(coordinates / self._classes))

    def _new_basis(self, samples: list[RowSample], pool: ThreadPoolExecutor, gamma: float, rotated: bool) -> _Basis:
        l2 = self._objective.l2
        total = float(sum(sample.bends().sum(dtype=np.float64) for sample in samples)) or 1.0
        if not rotated:
            diagonal = _sum(sample.squares() for sample in samples) / total
            return _Basis(None, None, diagonal, np.ones(len(diagonal)), 0.0)
        A = _sum(pool.map(RowSample.second_moment, samples)) / total
        dtype = self._objective.passes.dtype
        scale, length = None, np.ones(len(A))
        largest = gamma * float(A.diagonal().max())
        if largest > 1e-2 / np.finfo(dtype).eps * l2:
            # Columns of very different sizes: bring the diagonal of M to 1 first, or rounding hides the small ones.
            scale = 1 / np.sqrt(gamma * A.diagonal() + l2)
            A *= scale[:, None] * scale
        values, U = linalg.eigh(A if scale is not None else A.astype(dtype), driver="evd", check_finite=False)
        values, U = np.maximum(values[::-1], 0).astype(np.float64), np.ascontiguousarray(U[:, ::-1])
        if scale is not None:
            length = np.square(U).T @ scale**2
            scale = scale.astype(dtype)
        return _Basis(scale, U.astype(dtype), values, length, largest)

    def _class_blocks(
        self, weights: FloatArray, row_curvature: FloatArray, flops: float, pool: ThreadPoolExecutor
    ) -> _SummedBlocks | None:
        """Return a block a class, or None where that costs more than the budget."""
        total = float(row_curvature.sum(dtype=np.float64))
        if not total > 0 or self._classes * self._columns**2 > MOST_BLOCK_VALUES:
            return None
        per_row = float(np.square(row_curvature, dtype=np.float64).sum()) / total / 2  # classes that a drawn row bends
        count = int(PAIRS_PER_UNKNOWN * self._classes * self._columns / max(per_row, 1.0))
        bent = np.flatnonzero(row_curvature)
        whole = len(bent) <= max(1.5 * count, SAMPLE_ROWS)
        rows, drawn = (bent, np.ones(len(bent))) if whole else draw_rows(row_curvature, count, self._rng)
        D = self._columns
        spent = len(rows) * per_row * D**2 + self._classes * D**3 / 3
        if spent > max(flops, SMALL**3):
            return None
        self.cost = spent / self._pass_flops

        return _SummedBlocks(class_hessians(self._objective, weights, rows, drawn, pool), whole)


def _parts(n: int, threads: int) -> list[slice]:
    edges = [n * k // threads for k in range(threads + 1)]
    return [slice(a, b) for a, b in pairwise(edges) if b > a]


def _sum(parts: Iterable[Array]) -> Array:
    """Add up in float64, in order."""
    total, *rest = (part.astype(np.float64) for part in parts)
    for part in rest:
        total += part
    return total
