"""The multiclass hinges as quadratic programs, and Newton's equations on their optimality conditions.

A row pays for margins m = Δ + A s, one for each pair (i, c): s_c − s_y for rivals c, or ±s_c in one-vs-rest. With
slacks ξ, one a pair, or one a row where only the strongest rival counts (Crammer–Singer):

    z = ξ − m ≥ 0  ⟂  α ≥ 0          ξ ≥ 0  ⟂  β = 1 − Σα ≥ 0   (squared:  2ξ = Σα instead)
    λW + Σᵢ ωᵢ u(αᵢ) xᵢᵀ = 0          Σᵢ ωᵢ u(αᵢ) = 0 with intercepts, u = Aᵀα as in hinge.ops.dual

where Σα runs over the pairs that share the slack. z, ξ and β follow from the rest exactly; only the second line has to
be met by Newton's method. Its unknowns but dW go one by one: with E = α/z, e = ΣE, and dξ = ρ·Σdα + r (ρ = ξ/β; ½ if
squared), the rows have

    Σdα = (Σ(E·dm + q) − e·r) / (1 + e·ρ)      dα = E·(dm − dξ) + q      q = (σμ − zα)/z

and so  dα = M dm + g  with M = diag(E) − ρ/(1 + eρ)·E Eᵀ over the pairs of a slack: a C×C matrix D = AᵀMA a row, and
(λI + Σᵢ ωᵢ Dᵢ ⊗ xᵢxᵢᵀ) dW = −λW − Σᵢ ωᵢ u(αᵢ + gᵢ) xᵢᵀ.

Rows in more dimensions than there are rows are first expressed in coordinates of their own span, where W lies too.
Everything is float64.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import linalg, sparse

from hinge.ops.protocol import Loss
from hinge.problems.objective import LinearObjective
from hinge.typing import Array

MOST_PRODUCT_VALUES = 1 << 22
LEAST_THREADED_VALUES = 1 << 20
FEW_COLUMNS = 16  # of which all products are formed at once
START_SLACK = 6.0
MOST_REFINEMENTS, REFINED = 4, 0.3
CENTRAL = 0.1
"""Products within this factor of μ need no correction."""
LIGHT, FARTHEST = 0.1, 1e3
"""Rows that weigh less than this share of the heaviest keep farther from their bounds: they follow, and would block."""
JITTERS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)
"""Relative additions to the diagonal, in turn, until the matrix can be factored."""


@dataclass(frozen=True)
class Direction:
    """A change of all variables."""

    W: Array
    alpha: Array
    room: Array
    slack: Array
    z: Array


@dataclass(frozen=True)
class Aim:
    """By how much the products zα and ξβ are to change, to first order."""

    pairs: Array
    slack: Array


@final
@dataclass(frozen=True)
class Point:
    """W and b (C×columns), α, β, ξ and z; columns of no pair hold 0 in α, and 1 in z.

    β is carried along: as a difference from 1 it would lose its digits just where they decide.
    """

    W: Array
    alpha: Array
    room: Array
    slack: Array
    z: Array

    def moved(self, by: Direction, length: float) -> Point:
        """Return the point a step away."""
        return Point(
            self.W + length * by.W,
            self.alpha + length * by.alpha,
            self.room + length * by.room,
            self.slack + length * by.slack,
            self.z + length * by.z,
        )


@final
@dataclass(frozen=True)
class HingeProgram:
    """Rows X (with a column of ones for intercepts), labels, weights ω, and which pairs there are.

    On the central path zα = ξβ = μ·distance, with distance 1 but for light rows.
    """

    loss: Loss
    X: Array
    y: Array
    share: Array
    pairs: Array
    distance: Array
    ridge: Array
    basis: Array | None
    threads: int

    @staticmethod
    def of(objective: LinearObjective) -> HingeProgram:
        """Return the program of an objective; rows without weight are left out."""
        passes = objective.passes
        rows, y, weight = passes.rows(np.arange(passes.n_rows))
        counted = np.flatnonzero(weight > 0)
        rows, y, share = rows[counted], y[counted].astype(np.intp), weight[counted] / objective.total_weight
        X = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
        basis = None
        if X.shape[1] > len(y):
            basis, coordinates = linalg.qr(X.T, mode="economic", check_finite=False)
            X = np.ascontiguousarray(coordinates.T)
        ridge = np.full(X.shape[1] + objective.intercept, objective.l2)
        if objective.intercept:
            X = np.hstack([X, np.ones((len(y), 1))])
            ridge[-1] = objective.l2 * objective.penalize_intercept
        pairs = np.ones((len(y), passes.n_classes), dtype=bool)
        if objective.loss.kind != "one_vs_rest":
            pairs[np.arange(len(y)), y] = False
        share = share.astype(np.float64)
        distance = np.clip(LIGHT * share.max() / share, 1.0, FARTHEST)[:, None]
        return HingeProgram(objective.loss, X, y, share, pairs, distance, ridge, basis, passes.threads)

    @property
    def coupled(self) -> bool:
        """Return whether margins are differences of scores."""
        return self.loss.kind != "one_vs_rest"

    def start(self) -> Point:
        """Return W = 0 with all else well inside its bounds."""
        N, C = self.pairs.shape
        margin = self.loss.margin
        slack = np.full((N, 1 if self.loss.kind == "crammer_singer" else C), START_SLACK * margin)
        rivals = C - 1 if self.loss.kind == "crammer_singer" else 1
        alpha = self.pairs * ((2 * START_SLACK * margin if self.loss.squared else 0.5) / rivals)
        z = np.where(self.pairs, slack - margin, 1.0)
        return Point(np.zeros((C, self.X.shape[1])), alpha, 1 - self.total(alpha), slack, z)

    def weights(self, at: Point) -> Array:
        """Return W and b in the objective's own columns."""
        if self.basis is None:
            return at.W
        D = self.basis.shape[1]
        return np.hstack([at.W[:, :D] @ self.basis.T, at.W[:, D:]])

    def dual_point(self, at: Point) -> tuple[float, Array]:
        """Return Σ ωᵢ·(−loss*(uᵢ)) and Σ ωᵢ uᵢ xᵢᵀ."""
        alpha = at.alpha
        if self.loss.kind == "crammer_singer" and not self.loss.squared:  # rounding alone may exceed the bound
            alpha = alpha / np.maximum(alpha.sum(axis=1, keepdims=True), 1.0)
        total = self.total(alpha)
        gain = self.loss.margin * total - (np.square(total) / 4 if self.loss.squared else 0.0)
        gradient = self.gradient(alpha)
        if self.basis is not None:
            D = self.basis.shape[1]
            gradient = np.hstack([gradient[:, :D] @ self.basis.T, gradient[:, D:]])
        return float(self.share @ gain.sum(axis=1)), gradient

    def total(self, of_pairs: Array) -> Array:
        """Return the sums over the pairs that share a slack."""
        return of_pairs.sum(axis=1, keepdims=True) if self.loss.kind == "crammer_singer" else of_pairs

    def differences(self, W: Array) -> Array:
        """Return A s of each row for these weights."""
        s = self.X @ W.T
        own = s[np.arange(len(s)), self.y]
        if self.coupled:
            return np.where(self.pairs, s - own[:, None], 0.0)
        s[np.arange(len(s)), self.y] = -own
        return s

    def gradient(self, alpha: Array) -> Array:
        """Return Σ ωᵢ u(αᵢ) xᵢᵀ."""
        u, rows = alpha.copy(), np.arange(len(alpha))
        u[rows, self.y] = -alpha.sum(axis=1) if self.coupled else -alpha[rows, self.y]
        return (self.share[:, None] * u).T @ self.X

    def mean_product(self, at: Point) -> float:
        """Return μ, the mean of zα and ξβ over distance: a row of weight 2 counts as the row twice."""
        used = self._slacks_used()
        products, count = (at.z * at.alpha).sum(axis=1), self.pairs.sum(axis=1)
        if not self.loss.squared:
            products = products + np.where(used, at.slack * at.room, 0.0).sum(axis=1)
            count = count + used.sum(axis=1)
        return float((self.share / self.distance[:, 0]) @ products) / float(self.share @ count)

    def _slacks_used(self) -> Array:
        return np.ones((len(self.y), 1), dtype=bool) if self.loss.kind == "crammer_singer" else self.pairs

    def aim(self, at: Point, wanted: float) -> Aim:
        """Aim at products of `wanted`, times the row's distance."""
        mine = wanted * self.distance
        return Aim(np.where(self.pairs, mine - at.z * at.alpha, 0.0), mine - at.slack * at.room)

    def less_second_order(self, aim: Aim, by: Direction, share: float) -> Aim:
        """Return the aim less a share of what the products of two changes will add."""
        pairs = np.where(self.pairs, by.z * by.alpha, 0.0)
        return Aim(aim.pairs - share * pairs, aim.slack - share * by.slack * by.room)

    def more_central(self, aim: Aim, there: Point, wanted: float) -> Aim:
        """Return the aim, with products that would end up far from `wanted` brought nearer to it."""
        low, high = CENTRAL * wanted * self.distance, wanted / CENTRAL * self.distance
        pairs, slack = (
            np.maximum(np.clip(products, low, high) - products, -high)
            for products in (there.z * there.alpha, there.slack * there.room)
        )
        return Aim(aim.pairs + np.where(self.pairs, pairs, 0.0), aim.slack + slack)

    def longest_step(self, at: Point, by: Direction) -> float:
        """Return how far all bounds let one go."""
        steps = [_to_zero(at.z[self.pairs], by.z[self.pairs]), _to_zero(at.alpha[self.pairs], by.alpha[self.pairs])]
        if not self.loss.squared:
            used = self._slacks_used()
            steps.append(_to_zero(at.slack[used], by.slack[used]))
            steps.append(_to_zero(at.room[used], by.room[used]))
        return min(steps)

    def newton(self, at: Point) -> NewtonSystem | None:
        """Return Newton's equations at a point, factored; None where rounding leaves nothing to factor."""
        give = np.full_like(at.slack, 0.5) if self.loss.squared else at.slack / at.room
        ease = at.alpha / at.z
        damping = 1 / (1 + self.total(ease) * give)
        bend = self.share[:, None] * ease * damping
        among = self.share[:, None] * give * damping * ease if self.loss.kind == "crammer_singer" else None
        factors = self._factors(bend, among, ease)
        return None if factors is None else NewtonSystem(self, at, factors, ease, give)

    def _factors(self, bend: Array, among: Array | None, ease: Array) -> list[tuple[Array, bool]] | None:
        """Return the Cholesky factor of λI + Σ ωᵢ Dᵢ ⊗ xᵢxᵢᵀ, or that of each class.

        D is the Laplacian of a graph of classes, so that nothing cancels: an edge from y to each rival, and edges of
        weight ρ/(1 + eρ)·E_c·E_k among rivals that share a slack.
        """
        C, K = bend.shape[1], self.X.shape[1]
        if not self.coupled:
            return _factored(list(self._moments(self.X, bend) + np.diag(self.ridge)))
        H = np.zeros((C, K, C, K))
        for k in range(C):
            own = self.y == k
            moments = self._moments(self.X[own], bend[own])  # Σ_{i of class k} ω d_c xxᵀ for each rival c
            for c in range(C):
                H[c, :, c] += moments[c]
                H[c, :, k] -= moments[c]
                H[k, :, c] -= moments[c]
            H[k, :, k] += moments.sum(axis=0)
        for c in range(0 if among is None else C - 1):
            assert among is not None
            moments = self._moments(self.X, among[:, c, None] * ease[:, c + 1 :])
            rest = np.arange(c + 1, C)
            H[c, :, rest] -= moments
            H[rest, :, c] -= moments
            H[rest, :, rest] += moments
            H[c, :, c] += moments.sum(axis=0)
        index = np.arange(C)
        H[index, :, index] += np.diag(self.ridge)
        if self.ridge[-1] == 0:  # intercepts that all rise together change nothing: give that direction a curvature
            H[:, -1, :, -1] += max(float(H[index, -1, index, -1].mean()), np.finfo(float).tiny) / C
        return _factored([H.reshape(C * K, C * K)])

    def _moments(self, X: Array, weight: Array) -> Array:
        """Return Σᵢ weight_ic xᵢxᵢᵀ for each column c."""
        K, C = X.shape[1], weight.shape[1]
        if len(X) * K**2 <= min(MOST_PRODUCT_VALUES, len(X) * FEW_COLUMNS**2):
            squares = (X[:, :, None] * X[:, None, :]).reshape(len(X), K * K)
            few: Array = (weight.T @ squares).reshape(C, K, K)
            return few
        moments = np.zeros((C, K, K))
        rows = max(1, MOST_PRODUCT_VALUES // K)

        def add(c: int) -> None:
            for first in range(0, len(X), rows):
                part = X[first : first + rows]
                moments[c] += (part.T * weight[first : first + rows, c]) @ part

        if self.threads == 1 or len(X) * C * K**2 < LEAST_THREADED_VALUES:
            for c in range(C):
                add(c)
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(add, range(C)))
        return moments


@final
@dataclass(frozen=True)
class NewtonSystem:
    """Newton's equations, factored; good for several right-hand sides."""

    program: HingeProgram
    at: Point
    factors: list[tuple[Array, bool]]
    ease: Array
    give: Array

    def direction(self, aim: Aim) -> Direction:
        """Return the step whose first-order changes of zα and ξβ are those of `aim`."""
        program, at = self.program, self.at
        r = program.total(at.alpha) / 2 - at.slack if program.loss.squared else aim.slack / at.room
        q = aim.pairs / at.z
        constant = self._alpha(0.0, q, r)[0]
        right = -(program.ridge * at.W) - program.gradient(at.alpha + constant)
        dW = self._solve(right)
        left = np.inf
        for _ in range(MOST_REFINEMENTS):  # the matrix is ill-conditioned near the end by nature
            alpha = self._alpha(program.differences(dW), q, r)[0]
            missed = -program.ridge * (at.W + dW) - program.gradient(at.alpha + alpha)
            before_that, left = left, float(np.linalg.norm(missed))
            if not left < REFINED * before_that:
                break
            dW += self._solve(missed)
        alpha, total, slack = self._alpha(program.differences(dW), q, r)
        z = np.divide(q - alpha, self.ease, out=np.zeros_like(alpha), where=program.pairs)
        return Direction(dW, alpha, -total, slack, z)

    def _alpha(self, dm: Array | float, q: Array, r: Array) -> tuple[Array, Array, Array]:
        """Return dα, Σdα and dξ.

        Where α is at its bound, E and ρ are without limit, and dm − dξ a difference of equal numbers: it is not formed.
        """
        total = self.program.total
        e = total(self.ease)
        moved = (total(self.ease * dm + q) - e * r) / (1 + e * self.give)
        slack = self.give * moved + r
        alpha = moved if self.program.loss.kind != "crammer_singer" else self._shared(dm, q, r, e)
        return alpha, moved, slack

    def _shared(self, dm: Array | float, q: Array, r: Array, e: Array) -> Array:
        """Return dα = E·(h − ρ·ΣEh / (1 + eρ)), h = dm − r + q/E, in differences from the h of the largest E.

        r is the same for all and large, so that it must not take part in them.
        """
        pairs = self.program.pairs
        without_r = np.where(pairs, dm + np.divide(q, self.ease, out=np.zeros_like(q), where=pairs), 0.0)
        strongest = self.ease.argmax(axis=1)[:, None]
        apart = np.where(pairs, without_r - np.take_along_axis(without_r, strongest, axis=1), 0.0)
        mean = (self.ease * apart).sum(axis=1, keepdims=True) / e
        free = 1 / (1 + e * self.give)
        shared: Array = self.ease * (free * (without_r - r) + (1 - free) * (apart - mean))
        return shared

    def _solve(self, right: Array) -> Array:
        if len(self.factors) == 1:
            solved: Array = linalg.cho_solve(self.factors[0], right.ravel(), check_finite=False).reshape(right.shape)
            return solved
        parts = zip(self.factors, right, strict=True)
        return np.stack([linalg.cho_solve(factor, row, check_finite=False) for factor, row in parts])


def program_memory(objective: LinearObjective) -> int:
    """Return about how many bytes a run takes: the rows, two dozen values a pair, and the matrix twice."""
    passes = objective.passes
    columns = min(passes.n_features, passes.n_rows) + objective.intercept
    unknowns = columns * (1 if objective.loss.kind == "one_vs_rest" else passes.n_classes)
    rows = passes.n_rows * (2 * passes.n_features + 24 * passes.n_classes)
    return 8 * (rows + 3 * unknowns**2 + 8 * MOST_PRODUCT_VALUES)


def _to_zero(values: Array, change: Array) -> float:
    falling = change < 0
    return float((values[falling] / -change[falling]).min()) if falling.any() else np.inf


def _factored(matrices: list[Array]) -> list[tuple[Array, bool]] | None:
    factors = []
    for H in matrices:
        diagonal = H.diagonal().copy()
        if not np.all(np.isfinite(diagonal)):
            return None
        for jitter in JITTERS:
            H[np.diag_indices_from(H)] = diagonal * (1 + jitter)
            try:
                factors.append(linalg.cho_factor(H, lower=True, check_finite=False))
                break
            except linalg.LinAlgError:
                continue
        else:
            return None
    return factors
