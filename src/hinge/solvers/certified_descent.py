"""The loop that L-BFGS and Newton-CG share: a preconditioner, a direction, a step along it, a certificate.

Problem   min P(w) = mean loss + λ/2·‖w‖² for a loss that bends.
Update    w ← w + t·d with d from the method at hand. The preconditioner M (hinge.problems.preconditioner) is built at
          the start, once more near the solution, and where it no longer serves.
Step      t = 1 unless P rises; then by the secant of the slope. Where float32 values are noise, the slope alone decides
          (approximate Wolfe).
Stopping  certified relative duality gap ≤ tol (hinge.problems.certificate). Free intercepts must be all but settled
          before a gap can be certified: at the end they get Newton steps of their own.
Sharing   a fit under another penalty, or on most of the same rows, takes over M and what the method has learnt.

Paper: Hager & Zhang, SIAM J. Optim. 16 (2005), section 4 (approximate Wolfe).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, final

import numpy as np

from hinge.ops import single_threaded_blas
from hinge.problems.objective import Evaluation, LinearObjective
from hinge.problems.preconditioner import Preconditioner, PreconditionerBuilder
from hinge.solvers.certified_run import run_until_certified
from hinge.solvers.learning_rate import diverged
from hinge.solvers.result import Callback, SolverResult
from hinge.solvers.shared import Shared
from hinge.typing import Array, FloatArray

ENOUGH_DECREASE, ENOUGH_FLATTER = 1e-4, 1 - 2e-4
MOST_TRIALS, MOST_INTERCEPT_STEPS = 25, 4
MOST_FUTILE = 10
SECOND_BUILD, SECOND_BUILD_APART = 6, 12  # iterations; the latter where a block a class, which costs more, is built
PATIENCE, SLOW = 4, 0.5  # a slope that falls by less in as many iterations is slow
FAR = 1  # times the tolerance: a gap that is larger even without the intercepts need not be known well
BUILD_SLOWNESS = 3  # flops of a model take so many times longer than those of a pass
INHERITED_PATIENCE = 2  # the same where fits to come will use the model too


class Method(Protocol):
    """How a direction comes about."""

    name: ClassVar[str]

    def direction(self, state: Descent) -> Array:
        """Return a direction, shaped as the weights."""
        ...

    def moved(self, step: Array, bend: Array) -> None:
        """Learn from a step and the change of the gradient along it."""
        ...

    def forget(self) -> bool:
        """Forget what was learnt; return whether there was anything."""
        ...

    def learnt(self) -> Any:
        """Return what was learnt, for a fit to take over."""
        ...

    def take_over(self, learnt: Any, ridge: Array) -> None:
        """Start from what another fit has learnt, whose penalty bent less by `ridge`, one number a weight."""
        ...


@np.errstate(over="ignore", invalid="ignore")  # divergence has an error of its own
def descend(
    method: Method,
    objective: LinearObjective,
    *,
    max_iter: int,
    seed: int,
    tol: float,
    start: FloatArray | None,
    callbacks: Sequence[Callback],
    shared: Shared | None = None,
) -> SolverResult:
    """Run until the certified gap is `tol` or `max_iter` iterations are done; `shared` is used, and left up to date."""
    objective.require_no_l1(method.name)
    with single_threaded_blas():
        state = Descent(method, objective, seed, tol, start, shared)
        result = run_until_certified(state, max_iter=max_iter, tol=tol, callbacks=callbacks)
        if shared is not None:
            state.hand_on(shared)
        return result


@final
class Descent:
    """Where a run stands."""

    def __init__(
        self,
        method: Method,
        objective: LinearObjective,
        seed: int,
        tol: float,
        start: FloatArray | None,
        shared: Shared | None = None,
    ) -> None:
        self.clock = time.perf_counter()
        self.passes = 0.0
        self.method, self.objective, self.tol = method, objective, tol
        self.weights = objective.zero_weights()
        if start is not None:
            self.weights[...] = start
        self.row_curvature = np.empty(objective.passes.n_rows, dtype=self.weights.dtype)
        self.at = self.evaluate(self.weights)
        if not math.isfinite(self.at.value):
            raise diverged("the fit", "at its start", 1.0)
        given = shared if shared is not None else Shared()
        self.means = given.means
        if objective.free_intercept and self.means is None:
            self.means = objective.class_means()
            self.passes += 1
        self.builder = PreconditionerBuilder(objective, seed, given.builder)
        self.model: Preconditioner | None = None
        self.built_at, self.inherited = 0, False
        if given.learnt is not None:
            ridge = np.zeros(self.weights.shape)
            ridge[:, : objective.penalized] = objective.l2 - given.l2
            method.take_over(given.learnt, ridge.ravel())
        self.slopes: list[float] = []
        self.gaps: list[float] = []
        self.best_gap = self.best_value = math.inf
        self.waited = 0

    @property
    def value(self) -> float:
        """P at the weights."""
        return self.at.value

    def hand_on(self, shared: Shared) -> None:
        """Keep for the next fit what is of use there."""
        shared.means, shared.builder = self.means, self.builder
        shared.learnt, shared.l2 = self.method.learnt(), self.objective.l2

    def evaluate(self, weights: FloatArray) -> Evaluation:
        """Return P and ∂P: one pass."""
        self.passes += 1
        return self.objective.evaluate(weights, self.row_curvature)

    def futile(self, gap: float) -> bool:
        """Return whether neither P nor the gap has moved by more than rounding for a while."""
        self.gaps.append(gap)
        noise = 4 * float(np.finfo(self.weights.dtype).eps) * abs(self.at.value)
        if gap < 0.9 * self.best_gap or self.at.value < self.best_value - noise:
            self.waited = 0
        self.best_gap, self.best_value = min(self.best_gap, gap), min(self.best_value, self.at.value)
        self.waited += 1
        return self.waited > MOST_FUTILE

    def precondition(self, *vectors: Array) -> list[Array]:
        """Return M⁻¹ of each vector, which is scaled such that float32 can hold it."""
        assert self.model is not None
        sizes = [float(np.abs(vector).max()) or 1.0 for vector in vectors]
        scaled = [(v / size).reshape(self.weights.shape) for v, size in zip(vectors, sizes, strict=True)]
        solved = self.model.solve(np.stack(scaled).astype(self.weights.dtype))
        return [z.ravel().astype(np.float64) * size for z, size in zip(solved, sizes, strict=True)]

    def certify(self, *, last: bool) -> float:
        """Return the certified gap; where only the intercepts keep it above `tol`, settle them by Newton steps."""
        D, l2 = self.objective.penalized, self.objective.l2
        if self.means is None:
            return self.objective.gap(self.weights, self.at, None)
        bare = float(np.vdot(self.at.gradient[:, :D], self.at.gradient[:, :D])) / (2 * l2)
        far = bare > FAR * self.tol * max(self.at.value, l2)
        gap = self.objective.gap(self.weights, self.at, self.means, roughly=far)
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
            self.weights, self.at, gap = weights, trial, moved
        return gap

    def step(self, k: int) -> bool:
        """Take step k; return whether it got anywhere."""
        self.slopes.append(float(np.linalg.norm(self.at.gradient[:, : self.objective.penalized])))
        if self.model is None:
            self.model = self.builder.standing()
            self.inherited = self.model is not None
        if self._model_is_stale(k):
            self.model = self.builder.build(self.weights, self.row_curvature, budget=2 * max(k, 10))
            self.built_at = k
            if self.model.exact:
                self.method.forget()
        direction = self.method.direction(self)
        slope = float(np.vdot(self.at.gradient, direction))
        found = self._search(direction, slope) if slope < 0 else None
        if found is None:
            return self.method.forget()  # once more along the preconditioned gradient
        weights, trial = found
        self.method.moved(
            (weights.astype(np.float64) - self.weights).ravel(), (trial.gradient - self.at.gradient).ravel()
        )
        self.weights, self.at = weights, trial
        return True

    def _model_is_stale(self, k: int) -> bool:
        """Return whether M is to be built: at the start, once near the solution, and where it no longer serves."""
        second = SECOND_BUILD_APART if self.objective.loss.kind == "one_vs_rest" else SECOND_BUILD
        if self.model is None or (k == second and not self.model.exact and not self.inherited):
            return True
        slow = len(self.slopes) > PATIENCE and self.slopes[-1] > SLOW * self.slopes[-1 - PATIENCE]
        cost = self.builder.cost * (INHERITED_PATIENCE if self.inherited else BUILD_SLOWNESS)
        return slow and k - self.built_at >= max(PATIENCE, int(cost)) and self._expected_steps() > cost

    def _expected_steps(self) -> float:
        """Return how many steps the gap needs to reach tol if it goes on falling as over the last ones."""
        before, now = self.gaps[-1 - PATIENCE], self.gaps[-1]
        if not (0 < now < before < math.inf and self.tol > 0):
            return math.inf
        return PATIENCE * math.log(now / self.tol) / math.log(before / now)

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
