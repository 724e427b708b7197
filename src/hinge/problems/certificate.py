"""How far from the optimum a solution can be: a lower bound on P* from any near-feasible dual point.

Problem   P(W, b) = mean loss(W xᵢ + b, yᵢ) + λ/2·‖W‖², means weighted by v. Its dual, with one u in R^C a row:

    D(u) = −mean loss*(uᵢ, yᵢ) − ‖G‖²/(2λ)    where G = mean uᵢ xᵢᵀ,   subject to   mean uᵢ = 0   (for the intercepts)

Every feasible u has D(u) ≤ P*. Slopes u = ∂loss/∂scores at the current weights come free with the gradient: there
mean loss* = ⟨G, W⟩ + ⟨g, b⟩ − mean loss by Fenchel's equality, with g = mean u.

Repair    g is small near the optimum but not 0, so u is not feasible. Mix it with rows u' that are alike for all rows
          of a class: ū = (1 − t)·u + t·u', with mean u' = −(1 − t)/t·g. By convexity of loss*,

    D(ū) ≥ (1 − t)·(−mean loss*(u)) + t·(−mean loss*(u')) − ‖(1 − t)·G + t·G'‖²/(2λ),

          and all of it is known from G, g, and each class's share and mean row. t is about ‖g‖, so little is lost.
Cost      O(C²·D), no reading of the rows.

Papers: Shalev-Shwartz & Zhang, JMLR 14 (2013) for the duals; the repair is ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hinge.ops import Loss
from hinge.typing import Array, FloatArray


@dataclass(frozen=True)
class ClassMeans:
    """Each class's share of the weight, and its rows summed in these shares: Σ_{i in class} vᵢ xᵢ / Σv, C×D."""

    shares: Array
    rows: Array


@dataclass(frozen=True)
class DualPoint:
    """A dual point u in sums: −mean loss*(u), G (C×D) and, with intercepts, g (C), all in float64."""

    value: float
    gradient: Array
    drift: Array | None


def slopes_as_dual_point(mean_loss: float, gradient: FloatArray, weights: FloatArray, n_features: int) -> DualPoint:
    """Return the slopes of a bent (or smoothed) loss at `weights` as a dual point; `gradient` is the losses' alone."""
    gradient, weights = gradient.astype(np.float64), weights.astype(np.float64)
    value = mean_loss - float(np.vdot(gradient, weights))
    drift = gradient[:, n_features] if gradient.shape[1] > n_features else None
    return DualPoint(value, gradient[:, :n_features], drift)


def lower_bound(loss: Loss, l2: float, point: DualPoint, means: ClassMeans | None) -> float:
    """Return D at the point, repaired if it has a drift: P* is at least this. −∞ where no repair is possible."""
    if point.drift is None or not np.any(point.drift):
        return point.value - _half_square(point.gradient, l2)
    if means is None:
        raise ValueError("a drift needs the means of the classes")
    share, slopes, value = _repair(loss, point.drift, means.shares)
    if not share < 1:
        return -math.inf
    mixed = (1 - share) * point.gradient + share * (slopes @ means.rows)
    return (1 - share) * point.value + share * value - _half_square(mixed, l2)


def relative_gap(primal: float, bound: float, l2: float) -> float:
    """Return (P − D)/max(P, λ): relative, and at C = 1 a row below P = ½‖w‖² = 1 in scikit-learn's scaling, absolute.

    λ in P's units is what 1 is in those of ½‖W‖² + C·Σ loss.
    """
    if not (math.isfinite(primal) and math.isfinite(bound)):
        return math.inf
    return max(primal - bound, 0.0) / max(abs(primal), l2)


def _half_square(gradient: Array, l2: float) -> float:
    return float(np.vdot(gradient, gradient)) / (2 * l2)


def _repair(loss: Loss, drift: Array, shares: Array) -> tuple[float, Array, float]:
    """Return t, the slopes u' of each class (C×C, one column a class) and −mean loss*(u')."""
    if loss.kind != "one_vs_rest":
        drift = drift - drift.mean()  # slopes of score differences add up to 0; only rounding says otherwise
    size = np.abs(drift)
    if loss.kind == "softmax":
        # u'_y = q − e_y for a distribution q, at most twice and at least half as likely as the classes are.
        t = float(np.max(size / (size + shares / 2)))
        q = shares - (1 - t) / t * drift
        if t >= 1 or np.any(q <= 0):
            return 1.0, np.empty(0), 0.0
        q /= q.sum()
        return t, q[:, None] - np.eye(len(q)), -float(q @ np.log(q))
    if loss.kind == "one_vs_rest":
        # A class with too little slope takes it from all other rows, one with too much from its own.
        room = np.where(drift > 0, shares, 1 - shares)
        largest = float(np.max(size / room))
        t = largest / (1 + largest)
        pull = (1 - t) / t * drift
        own, others = np.maximum(pull, 0) / shares, np.maximum(-pull, 0) / (1 - shares)
        paid = np.where(np.eye(len(shares), dtype=bool), own[:, None], others[:, None])
        slopes = np.where(np.eye(len(shares), dtype=bool), -paid, paid)
    else:
        # Classes with too much slope give to those with too little: u'_y = Σ_c a_c (e_c − e_y).
        largest = float(np.max(np.maximum(drift, 0) / shares))
        t = largest / (1 + largest)
        pull = (1 - t) / t * drift
        taken, given = np.maximum(pull, 0), np.maximum(-pull, 0)
        paid = np.outer(given / given.sum(), taken / shares)
        slopes = paid - np.diag(paid.sum(axis=0))
        if loss.kind == "crammer_singer":
            paid = paid.sum(axis=0, keepdims=True)
    if not loss.squared and paid.max() > 1 + 1e-12:
        return 1.0, slopes, 0.0
    gained = loss.margin * paid - (paid**2 / 4 if loss.squared else 0)
    return t, slopes, float(gained.sum(axis=0) @ shares)
