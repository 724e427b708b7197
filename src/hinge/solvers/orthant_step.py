"""Steps towards the optimum of an objective with an L1 penalty: Newton where it is smooth, and who may leave 0.

Newton    In an orthant P is smooth: (H + μ·diag h)·d = −(g + λ₁·sign w) on the weights that are not 0 and the free
          intercepts, by conjugate gradients under a block a class (hinge.problems.support_blocks).
Search    w(t) = the orthant's nearest point to w + t·d, t = 1, ½, …: weights that would cross 0 stop there.
Entry     When weights at 0 have more to gain, Σ max(|g| − λ₁, 0)²/h, than the others by far: a proximal step in the
          metric κ·h, u = ST(w − g/(κh), λ₁/(κh)), lets the steepest in; κ rises until it lowers P. h is the Hessian's
          diagonal, from a sample of rows.

Papers: Bertsekas, SIAM J. Control Optim. 20 (1982) (projected Newton); Dostál, SIAM J. Optim. 7 (1997) (entry in
proportion).
"""

from __future__ import annotations

import math
from typing import final

import numpy as np

from hinge.problems.certificate import ClassMeans
from hinge.problems.objective import Evaluation, LinearObjective, score_curvature
from hinge.problems.support_blocks import BentRows
from hinge.typing import Array, FloatArray

ENOUGH_DECREASE, ENOUGH_FLATTER = 1e-4, 1 - 2e-4
MOST_TRIALS = 30
LEAST_BEND = 1e-2  # of a column's largest possible curvature; a sample may miss rare rows
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-8, 1e2
FEW = 8  # new weights a class that may always enter at once
ENTRY = 10.0  # times what the others have to gain: so much must the weights that are 0
MOST_RAISES = 4  # of the damping in a step


@final
class OrthantDescent:
    """Where a run on some columns stands."""

    def __init__(
        self,
        objective: LinearObjective,
        start: FloatArray,
        *,
        means: ClassMeans | None,
        column_squares: Array,
        most_products: int,
        seed: int,
    ) -> None:
        self.objective, self.means = objective, means
        self.passes = 0.0
        self.weights = objective.zero_weights()
        self.weights[...] = start
        self._most_products = most_products
        self._rng = np.random.default_rng(seed)
        self._row_curvature = np.empty(objective.passes.n_rows, dtype=self.weights.dtype)
        self._threshold = np.where(np.arange(self.weights.shape[1]) < objective.penalized, objective.l1, 0.0)
        self._ridge = np.where(np.arange(self.weights.shape[1]) < objective.penalized, objective.l2, 0.0)
        steepest = score_curvature(objective.loss, objective.passes.n_classes) / objective.total_weight
        self._floor = LEAST_BEND * steepest * column_squares
        self._steepness, self._damping = 1.0, FIRST_DAMPING
        self.at = self._evaluate(self.weights)
        self.gap = objective.gap(self.weights, self.at, means)

    @property
    def support(self) -> Array:
        """Return which columns hold a penalised weight that is not 0."""
        held: Array = np.any(self.weights[:, : self.objective.passes.n_features] != 0, axis=0)
        return held

    def step(self) -> bool:
        """Take a step; return whether it got anywhere."""
        rows = BentRows(self.objective, self.weights, self._row_curvature, self._rng)
        bends = rows.diagonal()
        bends = np.maximum(bends, self._floor[: bends.shape[1]]) + self._ridge
        bends = np.maximum(bends, np.finfo(self.weights.dtype).tiny)
        if self._settled(bends):
            identified = self._identify(bends)
            return self._newton(rows, bends) or identified
        return self._newton(rows, bends) or self._identify(bends)

    def _settled(self, bends: Array) -> bool:
        """Return whether the weights that are 0 have more to gain than all others: the time to let some enter."""
        g, w = self.at.gradient, self.weights
        fixed = (w == 0) & (self._threshold > 0)
        slope = np.where(fixed, np.maximum(np.abs(g) - self._threshold, 0), g + self._threshold * np.sign(w))
        gain = slope**2 / bends
        return float(gain[fixed].sum()) >= ENTRY * float(gain[~fixed].sum())

    def _evaluate(self, weights: FloatArray) -> Evaluation:
        self.passes += 1
        return self.objective.evaluate(weights, self._row_curvature)

    def _take(self, weights: FloatArray, at: Evaluation) -> None:
        self.weights, self.at = weights, at
        self.gap = self.objective.gap(weights, at, self.means)

    def _identify(self, bends: Array) -> bool:
        w, here = self.weights.astype(np.float64), self.at
        for _ in range(MOST_TRIALS):
            scale = self._steepness * bends
            u = _shrink(w - here.gradient / scale, self._threshold / scale)
            u[(u * w < 0) & (self._threshold > 0)] = 0
            u = self._few_new(u, w)
            changed = (np.sign(u) != np.sign(w)) & (self._threshold > 0)
            if not changed.any():
                return False
            trial_weights = self._rounded(u)
            expected = float(np.vdot(here.gradient, u - w) + self._threshold @ (np.abs(u) - np.abs(w)).sum(axis=0))
            trial = self._evaluate(trial_weights)
            if math.isfinite(trial.value) and trial.value < here.value + 1e-2 * expected:
                self._steepness = max(self._steepness / 2, 1.0)
                self._take(trial_weights, trial)
                return True
            if -expected < 4 * float(np.finfo(self.weights.dtype).eps) * abs(here.value):
                break
            self._steepness *= 3
        self._evaluate(self.weights)  # restores the curvature of the rows
        return False

    def _few_new(self, u: Array, w: Array) -> Array:
        """Let only the largest of the new weights in: no more than there are, or a few."""
        new = (u != 0) & (w == 0) & (self._threshold > 0)
        most = max(FEW * len(w), int(np.count_nonzero(w)))
        if np.count_nonzero(new) > most:
            violation = np.where(new, np.abs(self.at.gradient), 0.0)
            least = np.partition(violation.ravel(), -most)[-most]
            u[new & (violation < least)] = 0
        return u

    def _newton(self, rows: BentRows, bends: Array) -> bool:
        w, here = self.weights.astype(np.float64), self.at
        free = (w != 0) | (self._threshold == 0)
        orthant = np.sign(w)
        slope = np.where(free, here.gradient + self._threshold * orthant, 0.0)
        if not slope.any():
            return False
        for _ in range(MOST_RAISES):
            damping = self._damping * bends
            d = self._solve(rows, slope, free, damping, bends)
            found = self._search(w, d, slope, orthant)
            if found is not None:
                t, weights, trial = found
                factor = 0.25 if t == 1 else 2.0
                self._damping = min(max(self._damping * factor, LEAST_DAMPING), MOST_DAMPING)
                self._take(weights, trial)
                return True
            if self._damping >= MOST_DAMPING:
                break
            self._damping = min(self._damping * 100, MOST_DAMPING)
        return False

    def _solve(self, rows: BentRows, slope: Array, free: Array, damping: Array, bends: Array) -> Array:
        """Return d by preconditioned conjugate gradients from 0.

        The residual must fall in the model's norm and in that of the diagonal: a sample that misses what bends a weight
        makes it so large in the model's that all others look settled.
        """
        model = rows.blocks(free, self._ridge + self._floor + damping)
        wanted = min(0.25, max(math.sqrt(min(self.gap, 1.0)), 1e-3))
        d, residual = np.zeros_like(slope), -slope
        z = model.solve(residual)
        conjugate, size = z, float(np.vdot(residual, z))
        first, first_plain = size, float((residual**2 / bends).sum())
        for _ in range(self._most_products):
            product = np.where(free, self._hessian_product(conjugate) + damping * conjugate, 0.0)
            bend = float(np.vdot(conjugate, product))
            if not bend > 0:
                break
            length = size / bend
            d += length * conjugate
            residual -= length * product
            z = model.solve(residual)
            size, before = float(np.vdot(residual, z)), size
            settled = float((residual**2 / bends).sum()) <= wanted**2 * first_plain
            if not size > (wanted**2 * first if settled else 0.0):
                break
            conjugate = z + size / before * conjugate
        return d

    def _hessian_product(self, direction: Array) -> Array:
        """Return the smooth part's Hessian times a direction, which is scaled such that float32 can hold it."""
        objective = self.objective
        scale = float(np.abs(direction).max()) or 1.0
        scaled = (direction / scale).astype(self.weights.dtype)
        product: Array = objective.passes.curvature_product(objective.loss, self.weights, scaled).astype(np.float64)
        self.passes += 1.5
        product *= scale / objective.total_weight
        product += self._ridge * direction
        return product

    def _search(self, w: Array, d: Array, slope: Array, orthant: Array) -> tuple[float, FloatArray, Evaluation] | None:
        t, here = 1.0, self.at
        noise = 4 * float(np.finfo(self.weights.dtype).eps) * abs(here.value)
        for _ in range(MOST_TRIALS):
            moved = w + t * d
            moved[(moved * orthant < 0) & (self._threshold > 0)] = 0
            weights = self._rounded(moved)
            if np.array_equal(weights, self.weights):
                return None
            step = weights - w
            expected = float(np.vdot(slope, step))
            trial = self._evaluate(weights)
            end = trial.gradient + self._threshold * orthant
            flat = trial.value <= here.value + noise and float(np.vdot(end, step)) <= -ENOUGH_FLATTER * expected
            decreased = trial.value <= here.value + ENOUGH_DECREASE * expected
            if math.isfinite(trial.value) and expected < 0 and (decreased or flat):
                return t, weights, trial
            t *= 0.5
        return None

    def _rounded(self, weights: Array) -> FloatArray:
        """Return the weights in the type and order of the passes; two classes stay opposite to the last bit."""
        if len(weights) == 2 and self.objective.loss.kind != "one_vs_rest":
            weights = np.stack([weights[0] - weights[1], weights[1] - weights[0]]) / 2
        rounded = np.empty_like(self.weights)
        rounded[...] = weights
        return rounded


def _shrink(values: Array, by: Array) -> Array:
    """Return the values, each nearer to 0 by so much and no farther than 0."""
    shrunk: Array = np.sign(values) * np.maximum(np.abs(values) - by, 0)
    return shrunk
