"""L-BFGS under a two-scale preconditioner: for losses that bend.

Problem   min P(w) = mean loss + λ/2·‖w‖².
Update    w ← w − t·H·∂P(w), with H the inverse Hessian that the last m pairs (s, y) = (Δw, Δ∂P) make of H₀ = γ·M⁻¹ by
          the two-loop recursion; M from hinge.problems.preconditioner, renewed when it no longer serves;
          γ = sᵀy / yᵀM⁻¹y, which makes the unit step acceptable.
Step      t = 1 unless P rises; then by the secant of the slope. Where float32 values are noise, the slope alone decides
          (approximate Wolfe).
Stopping  certified relative duality gap ≤ tol (hinge.problems.certificate). The intercepts are not penalised, so their
          slopes must all but vanish before a gap can be certified: they get Newton steps of their own at the end.
Cost      one fused pass over the rows an iteration.

Papers: Liu & Nocedal, Math. Programming 45 (1989), algorithm 2.1; Nocedal & Wright, algorithm 7.4;
Hager & Zhang, SIAM J. Optim. 16 (2005), section 4 (approximate Wolfe).
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from hinge.errors import UsageError
from hinge.ops import single_threaded_blas
from hinge.problems.certificate import ClassMeans
from hinge.problems.objective import Evaluation, LinearObjective
from hinge.problems.preconditioner import Preconditioner, PreconditionerBuilder
from hinge.solvers.learning_rate import diverged
from hinge.solvers.result import (
    CERTIFIED,
    ENDED,
    EXHAUSTED,
    INTERRUPTED,
    STUCK,
    Callback,
    Iteration,
    SolverResult,
    notify,
)
from hinge.typing import Array, FloatArray

ENOUGH_DECREASE, ENOUGH_FLATTER = 1e-4, 1 - 2e-4
MOST_TRIALS, MOST_INTERCEPT_STEPS = 25, 4
SECOND_BUILD, PATIENCE, SLOW = 5, 4, 0.4  # iterations; a slope that falls by less in as many is slow


@final
@dataclass(frozen=True)
class LBFGS:
    """Options: how many pairs are remembered."""

    memory: int = 30

    certifies: ClassVar[bool] = True
    default_iterations: ClassVar[int] = 1000

    def __post_init__(self) -> None:
        if self.memory != int(self.memory) or self.memory < 1:
            raise UsageError(f"memory={self.memory!r}", remedy="Use a whole number of pairs, at least 1.")

    @np.errstate(over="ignore", invalid="ignore")  # divergence has an error of its own
    def minimize(
        self,
        objective: LinearObjective,
        *,
        max_iter: int,
        seed: int,
        tol: float = 1e-4,
        start: FloatArray | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> SolverResult:
        """Run until the certified gap is `tol` or `max_iter` iterations are done."""
        with single_threaded_blas():
            run = _Run(objective, self.memory, seed, tol, start)
            history: list[Iteration] = []
            stopped = EXHAUSTED
            try:
                for k in range(max_iter + 1):
                    gap = run.certify()
                    history.append(Iteration(k, run.passes, time.perf_counter() - run.clock, run.at.value, gap))
                    if notify(callbacks, history[-1]):
                        stopped = ENDED
                        break
                    if gap <= tol:
                        stopped = CERTIFIED
                        break
                    if k < max_iter and not run.step(k):
                        stopped = STUCK
                        break
            except KeyboardInterrupt:
                stopped = INTERRUPTED
            gap = history[-1].gap if history and history[-1].objective == run.at.value else math.inf
            return SolverResult(run.weights, run.at.value, max(0, len(history) - 1), tuple(history), stopped, gap)


class _Run:
    """Where a run stands."""

    def __init__(
        self, objective: LinearObjective, memory: int, seed: int, tol: float, start: FloatArray | None
    ) -> None:
        self.clock = time.perf_counter()
        self.passes = 0.0
        self.objective, self.tol = objective, tol
        self.weights = objective.zero_weights()
        if start is not None:
            self.weights[...] = start
        self.row_curvature = np.empty(objective.passes.n_rows, dtype=self.weights.dtype)
        self.at = self.evaluate(self.weights)
        if not math.isfinite(self.at.value):
            raise diverged("L-BFGS", "at its start", 1.0)
        self.means: ClassMeans | None = None
        if objective.free_intercept:
            self.means = objective.class_means()
            self.passes += 1
        self.builder = PreconditionerBuilder(objective, seed)
        self.model: Preconditioner | None = None
        self.built_at = 0
        self.slopes: list[float] = []
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=memory)

    def evaluate(self, weights: FloatArray) -> Evaluation:
        self.passes += 1
        return self.objective.evaluate(weights, self.row_curvature)

    def certify(self) -> float:
        """Return the certified gap; where only the intercepts keep it above `tol`, settle them by Newton steps."""
        gap = self.objective.gap(self.weights, self.at, self.means)
        D, l2 = self.objective.penalized, self.objective.l2
        if self.means is None:
            return gap
        bare = float(np.vdot(self.at.gradient[:, :D], self.at.gradient[:, :D])) / (2 * l2)
        for _ in range(MOST_INTERCEPT_STEPS):
            if gap <= self.tol or bare > 0.5 * self.tol * max(self.at.value, l2):
                break
            G = self.builder.class_curvature(self.weights, self.row_curvature)
            weights = self.weights.copy()
            weights[:, D] -= (np.linalg.pinv(G, rcond=1e-10, hermitian=True) @ self.at.gradient[:, D]).astype(G.dtype)
            trial = self.evaluate(weights)
            moved = self.objective.gap(weights, trial, self.means)
            if not moved < gap:
                break
            self._remember(weights, trial)
            self.weights, self.at, gap = weights, trial, moved
        return gap

    def step(self, k: int) -> bool:
        """Take step k; return whether it got anywhere."""
        self.slopes.append(float(np.linalg.norm(self.at.gradient[:, : self.objective.penalized])))
        if self._model_is_stale(k):
            self.model = self.builder.build(self.weights, self.row_curvature, budget=2 * max(k, 10))
            self.built_at = k
            if self.model.exact:
                self.pairs.clear()
        assert self.model is not None
        direction = self._direction()
        slope = float(np.vdot(self.at.gradient, direction))
        if not slope < 0:
            if not self.pairs:
                return False
            self.pairs.clear()
            direction = -self._solve(self.at.gradient.ravel())[0].reshape(self.weights.shape)
            slope = float(np.vdot(self.at.gradient, direction))
        found = self._search(direction, slope)
        if found is None:
            if not self.pairs:
                return False
            self.pairs.clear()  # once more along the preconditioned gradient
            return True
        weights, trial = found
        self._remember(weights, trial)
        self.weights, self.at = weights, trial
        return True

    def _model_is_stale(self, k: int) -> bool:
        """Return whether M is to be built: at the start, once near the solution, and where it no longer serves."""
        if self.model is None or (k == SECOND_BUILD and not self.model.exact):
            return True
        age = k - self.built_at
        slow = len(self.slopes) > PATIENCE and self.slopes[-1] > SLOW * self.slopes[-1 - PATIENCE]
        return slow and age >= max(PATIENCE, int(self.builder.cost))

    def _search(self, direction: Array, slope: float) -> tuple[FloatArray, Evaluation] | None:
        t, here = 1.0, self.at
        noise = 4 * float(np.finfo(self.weights.dtype).eps) * abs(here.value)
        for _ in range(MOST_TRIALS):
            weights = (self.weights + t * direction).astype(self.weights.dtype)
            if np.array_equal(weights, self.weights):
                return None
            trial = self.evaluate(weights)
            end_slope = float(np.vdot(trial.gradient, direction))
            decreased = trial.value <= here.value + ENOUGH_DECREASE * t * slope
            flat = trial.value <= here.value + noise and end_slope <= -ENOUGH_FLATTER * slope
            if math.isfinite(trial.value) and (decreased or flat):
                return weights, trial
            secant = slope / (slope - end_slope) if math.isfinite(end_slope) and end_slope > slope else 0.1
            t *= min(max(secant, 0.1), 0.6)
        return None

    def _remember(self, weights: FloatArray, trial: Evaluation) -> None:
        s = (weights.astype(np.float64) - self.weights).ravel()
        y = (trial.gradient - self.at.gradient).ravel()
        curved = float(s @ y)
        if curved > 1e-14 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            self.pairs.append((s, y, curved))

    def _direction(self) -> Array:
        """Return −H·∂P by the two-loop recursion."""
        q = self.at.gradient.ravel().copy()
        taken = []
        for s, y, curved in reversed(self.pairs):
            a = float(s @ q) / curved
            q -= a * y
            taken.append(a)
        if self.pairs:
            _, y, curved = self.pairs[-1]
            z, rescaled = self._solve(q, y)
            z *= curved / float(y @ rescaled)
        else:
            (z,) = self._solve(q)
        for (s, y, curved), a in zip(self.pairs, reversed(taken), strict=True):
            z += (a - float(y @ z) / curved) * s
        return -z.reshape(self.weights.shape)

    def _solve(self, *vectors: Array) -> list[Array]:
        """Return M⁻¹ of each vector, which is scaled such that float32 can hold it."""
        assert self.model is not None
        sizes = [float(np.abs(vector).max()) or 1.0 for vector in vectors]
        scaled = [(v / size).reshape(self.weights.shape) for v, size in zip(vectors, sizes, strict=True)]
        solved = self.model.solve(np.stack(scaled).astype(self.weights.dtype))
        return [z.ravel().astype(np.float64) * size for z, size in zip(solved, sizes, strict=True)]
