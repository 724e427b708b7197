"""How far from the optimum a solution can be: a lower bound on P* from any near-feasible dual point.

Problem   P(W, b) = mean loss(W xᵢ + b, yᵢ) + λ/2·‖W‖², means weighted by v. Its dual, with one u in R^C a row:

    D(u) = −mean loss*(uᵢ, yᵢ) − ‖G‖²/(2λ)    where G = mean uᵢ xᵢᵀ,   subject to   mean uᵢ = 0   (for the intercepts)

Every feasible u has D(u) ≤ P*. Slopes u = ∂loss/∂scores at the current weights come free with the gradient: there
mean loss* = ⟨G, W⟩ + ⟨g, b⟩ − mean loss by Fenchel's equality, with g = mean u.

Repair    g is small near the optimum but not 0, so u is not feasible. Mix it with rows u' that are alike for all rows
          of a class: ū = (1 − t)·u + t·u', with mean u' = −(1 − t)/t·g. By convexity of loss*,

    D(ū) ≥ (1 − t)·(−mean loss*(u)) + t·(−mean loss*(u')) − ‖(1 − t)·G + t·G'‖²/(2λ),

          and all of it is known from G, g, and each class's share and mean row. t is about ‖g‖, so little is lost.
L1        With λ₁·‖W‖₁ in P, max(|G| − λ₁, 0) takes the place of |G| in D, and must be 0 where λ = 0. u = 0 is feasible
          and every loss here has loss*(0) = −inf loss = 0; so −mean loss*(s·u) ≥ s·(−mean loss*(u)) for 0 ≤ s ≤ 1, and
          the bound is the best over s: the s that shrinks |G| to λ₁, or a larger one where λ > 0 pays for the excess.
Cost      O(C²·D), no reading of the rows.

Papers: Shalev-Shwartz & Zhang, JMLR 14 (2013) for the duals; Ndiaye, Fercoq, Gramfort & Salmon, JMLR 18 (2017) for the
scaling by s; the repair is ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hinge.ops import Loss
from hinge.typing import Array, FloatArray


@dataclass(frozen=True)
class ClassMeans:
    """Each class's share of the weight, and its rows summed in these shares: Σ_{i in class} vᵢ xᵢ / Σv, C×D."""

    shares: Array
    rows: Array

    @cached_property
    def gram(self) -> Array:
        """Return the inner products of the rows."""
        products: Array = self.rows @ self.rows.T
        return products


@dataclass(frozen=True)
class DualPoint:
    """A dual point u in sums: −mean loss*(u), G (C×D) and, with intercepts, g (C), all in float64.

    `mean_scores`, where known, are the scores of each class's mean row, one column a class.
    """

    value: float
    gradient: Array
    drift: Array | None
    mean_scores: Array | None = None


def slopes_as_dual_point(
    mean_loss: float, gradient: FloatArray, weights: FloatArray, means: ClassMeans | None
) -> DualPoint:
    """Return the slopes of a loss at `weights` as a dual point; `gradient` is that of the losses alone."""
    gradient, weights = gradient.astype(np.float64), weights.astype(np.float64)
    value = mean_loss - float(np.vdot(gradient, weights))
    if means is None:
        return DualPoint(value, gradient, None)
    mean_scores = weights[:, :-1] @ (means.rows / means.shares[:, None]).T + weights[:, -1:]
    return DualPoint(value, gradient[:, :-1], gradient[:, -1], mean_scores)


def lower_bound(
    loss: Loss, l2: float, point: DualPoint, means: ClassMeans | None, l1: float = 0.0, *, roughly: bool = False
) -> float:
    """Return D at the point, repaired if it has a drift and scaled if there is an L1 penalty: P* is at least this.

    `roughly` spares the search for the best repair where the bound is far off anyway.
    """
    if point.drift is None or not np.any(point.drift):
        return _penalised(point.value, point.gradient, l1, l2)
    if means is None:
        raise ValueError("a drift needs the means of the classes")
    share, slopes, value = _repair(loss, replace(point, mean_scores=None) if roughly else point, means.shares)
    value = (1 - share) * point.value + share * value
    if l1 > 0:
        return _penalised(value, (1 - share) * point.gradient + share * (slopes @ means.rows), l1, l2)
    # ‖(1 − t)·G + t·S·M‖² by its parts, because C×D may be large
    kept, crossed = _square(point.gradient), float(np.vdot(slopes, point.gradient @ means.rows.T))
    mixed = (1 - share) ** 2 * kept + 2 * share * (1 - share) * crossed
    mixed += share**2 * float(np.vdot(slopes, slopes @ means.gram))
    return value - mixed / (2 * l2)


def relative_gap(primal: float, bound: float, penalty: float) -> float:
    """Return (P − D)/max(P, λ): relative, and at C = 1 a row below P = ½‖w‖² = 1 in scikit-learn's scaling, absolute.

    λ = λ₁ + λ₂ in P's units is what 1 is in those of ‖W‖₁, or ½‖W‖², + C·Σ loss.
    """
    if not (math.isfinite(primal) and math.isfinite(bound)):
        return math.inf
    return max(primal - bound, 0.0) / max(abs(primal), penalty)


def _square(gradient: Array) -> float:
    return float(np.einsum("cd,cd->", gradient, gradient))


def _penalised(value: float, gradient: Array, l1: float, l2: float) -> float:
    """Return the most of s·value − ‖max(s·|G| − λ₁, 0)‖²/(2λ₂) over 0 ≤ s ≤ 1; s = 1 without an L1 penalty."""
    if not l1 > 0:
        return value - _square(gradient) / (2 * l2)
    sizes = np.abs(gradient)
    sizes = np.sort(sizes[~(sizes <= l1)])[::-1]
    if not sizes.size or not value > 0:
        return max(value, 0.0)
    feasible = value * (l1 / float(sizes[0]))
    if not l2 > 0:
        return feasible
    # Between two breakpoints s = λ₁/|G_k| the m largest pay, and the best s solves value·λ₂ = s·Σ|G|² − λ₁·Σ|G|.
    sums, squares = np.cumsum(sizes), np.cumsum(sizes**2)
    paying = max(int(np.searchsorted((squares / sizes - sums) * l1, value * l2, side="right")), 1)
    s = min(float((value * l2 + l1 * sums[paying - 1]) / squares[paying - 1]), 1.0)
    excess = float(np.linalg.norm(np.maximum(s * sizes - l1, 0)))
    return max(feasible, s * value - excess * (excess / (2 * l2)))


def _repair(loss: Loss, point: DualPoint, shares: Array) -> tuple[float, Array, float]:
    """Return t, the slopes u' of each class (C×C, one column a class) and −mean loss*(u')."""
    assert point.drift is not None
    if loss.kind == "softmax":
        return _repair_softmax(point.drift - point.drift.mean(), shares, point.mean_scores)
    if loss.kind == "one_vs_rest":
        # A class with too little slope takes it from all other rows, one with too much from its own.
        drift = point.drift
        largest = float(np.max(np.abs(drift) / np.where(drift > 0, shares, 1 - shares)))
        own, others = np.maximum(drift, 0) / shares, np.maximum(-drift, 0) / (1 - shares)
        paid = np.where(np.eye(len(shares), dtype=bool), own[:, None], others[:, None]) / largest
        slopes = np.where(np.eye(len(shares), dtype=bool), -paid, paid)
    else:
        # Classes with too much slope give to those with too little: u'_y = Σ_c a_c (e_c − e_y).
        drift = point.drift - point.drift.mean()
        taken, given = np.maximum(drift, 0) / shares, np.maximum(-drift, 0)
        if not given.any():
            return 0.0, np.zeros((len(shares), len(shares))), 0.0
        largest = float(taken.max())
        paid = np.outer(given / given.sum(), taken / largest)
        slopes = paid - np.diag(paid.sum(axis=0))
        if loss.kind == "crammer_singer":
            paid = paid.sum(axis=0, keepdims=True)
    gained = loss.margin * paid - (paid**2 / 4 if loss.squared else 0)
    return largest / (1 + largest), slopes, float(gained.sum(axis=0) @ shares)


def _repair_softmax(drift: Array, shares: Array, scores: Array | None) -> tuple[float, Array, float]:
    """u'_y = q_y − e_y with q_y the probabilities of class y's mean row, with intercepts θ such that the
    classes' total comes out right: a softmax regression of C rows in θ alone, by Newton's method.
    """
    size = np.abs(drift)
    t = float(np.max(size / (size + 0.7 * shares)))
    wanted = shares - (1 - t) / t * drift
    q = None if scores is None else _shifted_means(scores, shares, wanted)
    if q is None:
        q = np.repeat(wanted[:, None], len(shares), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.where(q > 0, q * np.log(q), 0.0).sum(axis=0)
    return t, q - np.eye(len(q)), float(entropy @ shares)


def _shifted_means(scores: Array, shares: Array, wanted: Array) -> Array | None:
    """Return the probabilities of each class's mean row (a column) whose total is `wanted`; None if out of reach."""
    theta = np.zeros(len(shares))  # the scores of mean rows hold the intercepts already
    for _ in range(60):
        q = _softmax_of_columns(scores + theta[:, None])
        reached = q @ shares
        excess = reached - wanted
        if np.abs(excess).max() <= 1e-15:
            break
        H = np.diag(reached) - (q * shares) @ q.T
        try:  # 11ᵀ stands in for the direction that all classes share, along which H is flat and `excess` has no part
            step = np.linalg.solve(H + 1 / len(H), excess)
        except np.linalg.LinAlgError:
            step = np.linalg.pinv(H, rcond=1e-13, hermitian=True) @ excess
        theta -= step / max(1.0, float(np.abs(step).max()))
    return None if np.abs(excess).max() > 1e-12 * wanted.min() else q


def _softmax_of_columns(scores: Array) -> Array:
    shifted = np.exp(scores - scores.max(axis=0))
    q: Array = shifted / shifted.sum(axis=0)
    return q
