"""Interior point: brings any hinge to its optimum, however weak the penalty and however ill-scaled the columns.

Problem   min Σᵢ ωᵢ·loss(W xᵢ + b, yᵢ) + λ/2·‖W‖²  as a quadratic program in W and slacks: problems/hinge_program.py.
Update    Newton's method on its optimality conditions with all products of complementary pairs set to σμ; one
          factorisation serves the predictor (σ = 0) and the corrector (σ = (μ'/μ)³, with the predictor's second-order
          error). All variables move by the same step, at most 0.995 of the way to the nearest bound.
Stopping  certified relative duality gap ≤ tol (hinge.problems.certificate): α is feasible all the way.
Cost      2·N·C·D² flops for the matrix and (C·D)³/3 to factor it; 10 to 40 iterations, whatever the conditioning.
          In one-vs-rest the matrix is C blocks. Memory is that of the matrix, and of the rows in float64.

Papers: Mehrotra, SIAM J. Optim. 2 (1992); Ferris & Munson, SIAM J. Optim. 13 (2002) (support vector machines).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from hinge.config import available_memory
from hinge.errors import ResourceError, UsageError
from hinge.ops import single_threaded_blas
from hinge.problems.certificate import DualPoint, lower_bound, relative_gap
from hinge.problems.hinge_program import HingeProgram, Point, program_memory
from hinge.problems.objective import LinearObjective
from hinge.solvers.certified_run import run_until_certified
from hinge.solvers.result import Callback, SolverResult
from hinge.typing import FloatArray

TO_THE_BOUND = 0.995
MOST_CORRECTORS, LONGER, WORTH = 3, 1.1, 0.1
SHORTEST_STEP = 1e-8
EXPLAINED = 1e-4
ROUNDED, MOST_FUTILE, MOST_DETOUR = 1e-6, 6, 30  # above such a gap it is not rounding that keeps steps short


@final
@dataclass(frozen=True)
class InteriorPoint:
    """An interior-point method has nothing to tune."""

    certifies: ClassVar[bool] = True
    default_iterations: ClassVar[int] = 200

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # a step that is not finite ends the run
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
        """Run until the certified gap is `tol` or `max_iter` iterations are done. A `start` is of no use here."""
        _require_fit(objective)
        with single_threaded_blas():
            run = _Run(objective)
            result = run_until_certified(run, max_iter=max_iter, tol=tol, callbacks=callbacks)
            if not result.history:
                run.certify(last=True)
            return replace(result, weights=run.weights, objective=run.value, gap=run.gap)


class _Run:
    """Where a run stands: the best weights and the best lower bound so far make the gap."""

    def __init__(self, objective: LinearObjective) -> None:
        self.clock = time.perf_counter()
        self._objective = objective
        self._program = HingeProgram.of(objective)
        self._means = objective.class_means() if objective.free_intercept else None
        self.passes = float(objective.free_intercept)
        self._at: Point = self._program.start()
        self.weights = objective.zero_weights()
        self.value, self._bound = math.inf, -math.inf
        self._best_gap = self._best_product = math.inf
        self._waited = 0

    @property
    def gap(self) -> float:
        return relative_gap(self.value, self._bound, self._objective.l2)

    def futile(self, gap: float) -> bool:
        """Return whether neither the gap nor a μ that explains it has come down for a while."""
        product = self._program.mean_product(self._at)
        explains = product > EXPLAINED * min(gap, 1.0) * max(abs(self.value), self._objective.l2)
        better = gap < 0.9 * self._best_gap or (explains and product < 0.9 * self._best_product)
        self._best_gap, self._best_product = min(self._best_gap, gap), min(self._best_product, product)
        self._waited = 0 if better else self._waited + 1
        return self._waited > (MOST_FUTILE if gap < ROUNDED else MOST_DETOUR)

    def certify(self, *, last: bool) -> float:
        """Value the weights and the dual point; return the gap of the best so far."""
        objective, D = self._objective, self._objective.penalized
        weights = objective.zero_weights()
        weights[...] = self._program.weights(self._at)
        value = objective.evaluate(weights).value
        self.passes += 1
        if value < self.value or not math.isfinite(self.value):
            self.value, self.weights = value, weights
        gain, gradient = self._program.dual_point(self._at)
        point = DualPoint(gain, gradient[:, :D], gradient[:, D] if objective.free_intercept else None)
        bound = lower_bound(objective.loss, objective.l2, point, self._means)
        if bound > self._bound:
            self._bound = bound
        return self.gap

    def step(self, k: int) -> bool:
        """Take a predictor–corrector step; return whether it led anywhere."""
        program, at = self._program, self._at
        newton = program.newton(at)
        if newton is None:
            return False
        mean = program.mean_product(at)
        towards = newton.direction(program.aim(at, 0.0))
        length = min(1.0, program.longest_step(at, towards))
        left = min(program.mean_product(at.moved(towards, length)) / mean, 1.0)
        wanted = mean * left**3
        aim = program.less_second_order(program.aim(at, wanted), towards, length**2)
        towards = newton.direction(aim)
        longest = program.longest_step(at, towards)
        for _ in range(MOST_CORRECTORS):
            tried = min(1.0, LONGER * longest + LONGER - 1)
            aim = program.more_central(aim, at.moved(towards, tried), wanted)
            corrected = newton.direction(aim)
            reach = program.longest_step(at, corrected)
            if min(reach, 1.0) < min(longest, 1.0) + WORTH * (tried - min(longest, 1.0)) or longest >= 1:
                break
            towards, longest = corrected, reach
        length = min(1.0, TO_THE_BOUND * longest)
        if not length > SHORTEST_STEP:
            return False
        self._at = at.moved(towards, length)
        return True


def step_flops(objective: LinearObjective) -> float:
    """Return about what an iteration costs."""
    passes = objective.passes
    columns = float(min(passes.n_features, passes.n_rows) + objective.intercept)
    moments = 2.0 * passes.n_rows * passes.n_classes * columns**2
    if objective.loss.kind == "one_vs_rest":
        return moments + passes.n_classes * columns**3 / 3
    unknowns = passes.n_classes * columns
    joint = 1.0 * passes.n_rows * unknowns**2 if objective.loss.kind == "crammer_singer" else 0.0
    return moments + joint + unknowns**3 / 3


def interior_point_fits(objective: LinearObjective) -> bool:
    """Return whether a run has the memory for its matrix and its rows."""
    free = available_memory()
    return objective.l2 > 0 and (free is None or program_memory(objective) <= free)


def _require_fit(objective: LinearObjective) -> None:
    objective.require_no_l1("interior point")
    if objective.loss.kind == "softmax":
        raise UsageError(
            "this interior-point method is for hinges, and this is softmax",
            remedy="Use solvers.LBFGS or solvers.NewtonCG, or another loss.",
        )
    if not objective.l2 > 0:
        raise UsageError("interior point needs an L2 penalty above 0", remedy="Use another solver or penalty.")
    needed, free = program_memory(objective), available_memory()
    if free is not None and needed > free:
        raise ResourceError(
            f"the matrix of all weights takes {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free",
            where="interior point",
            remedy="Use solvers.DualCoordinateAscent, fewer columns or fewer rows.",
        )
