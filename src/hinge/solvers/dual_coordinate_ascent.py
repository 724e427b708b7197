"""Dual coordinate ascent: for hinges, plain and squared, and for softmax where rows hold few values.

Problem   min P(W, b) = mean loss(W xᵢ + b, yᵢ) + λ/2·‖W‖²  through its dual: one αᵢ in R^C a row, see hinge.ops.dual.
Update    row after row in random order: αᵢ ← its best with all others held fixed, exactly; W follows.
          Intercepts are the weights of a constant feature, penalised by their distance from a centre that moves to
          where they are after each epoch (the method of multipliers on mean uᵢ = 0).
Stopping  certified relative duality gap ≤ tol (hinge.problems.certificate). P and the gap are taken at the last weights
          or, for plain hinges, their average over the last epochs if that is better; once in a while, because it costs
          a pass.
Cost      an epoch takes 4·nnz·C flops at most, and less and less: rows at their best are visited ever more rarely.
          Memory is N×C for α.

Papers: Crammer & Singer, JMLR 2 (2001); Hsieh, Chang, Lin, Keerthi & Sundararajan, ICML 2008 (one class against one);
Keerthi, Sundararajan, Chang, Hsieh & Lin, KDD 2008 (rows as blocks); Wang & Scott, ICML 2021 (Weston–Watkins);
Yu, Huang & Lin, Machine Learning 85 (2011) (softmax); Rockafellar, Math. Oper. Res. 1 (1976) (multipliers).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from hinge.config import available_memory
from hinge.errors import DivergenceError, ResourceError, UsageError
from hinge.ops import DualAscent, DualPasses, single_threaded_blas
from hinge.problems.certificate import DualPoint, lower_bound, relative_gap
from hinge.problems.objective import LinearObjective
from hinge.solvers.result import (
    CERTIFIED,
    ENDED,
    EXHAUSTED,
    INTERRUPTED,
    Callback,
    Iteration,
    SolverResult,
    notify,
)
from hinge.solvers.shared import Shared
from hinge.typing import FloatArray

FIRST_CERTIFICATE, LONGEST_WAIT = 4, 1.5
COMPARED_EVERY = 4  # certificates at which both the last and the average weights are valued


@final
@dataclass(frozen=True)
class DualCoordinateAscent:
    """Dual coordinate ascent has nothing to tune."""

    certifies: ClassVar[bool] = True
    shares: ClassVar[bool] = True
    default_iterations: ClassVar[int] = 2000

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # what is not finite has an error of its own
    def minimize(
        self,
        objective: LinearObjective,
        *,
        max_iter: int,
        seed: int,
        tol: float = 1e-4,
        start: FloatArray | None = None,
        callbacks: Sequence[Callback] = (),
        shared: Shared | None = None,
    ) -> SolverResult:
        """Run until the certified gap is `tol` or `max_iter` epochs are done.

        The dual starts at α = 0; of `start` only the intercepts, for the mean row, are of use. The history has a line
        for each certificate, and callbacks are told of those.
        """
        with single_threaded_blas():
            run = _Run(objective, seed, start, shared)
            result = self._ascend(run, max_iter, tol, callbacks)
        if shared is not None:
            shared.means = run.means
        return result

    def _ascend(self, run: _Run, max_iter: int, tol: float, callbacks: Sequence[Callback]) -> SolverResult:
        history: list[Iteration] = []
        stopped = EXHAUSTED
        due = FIRST_CERTIFICATE
        try:
            for epoch in range(1, max_iter + 1):
                run.passes += run.ascent.epoch()
                if epoch < due and epoch < max_iter:
                    continue
                run.certify(len(history))
                history.append(Iteration(epoch, run.passes, time.perf_counter() - run.clock, run.value, run.gap))
                if notify(callbacks, history[-1]):
                    stopped = ENDED
                    break
                if run.gap <= tol:
                    stopped = CERTIFIED
                    break
                due = _next_certificate(history, tol)
        except KeyboardInterrupt:
            stopped = INTERRUPTED
        if not history:
            run.certify(0)
        return SolverResult(
            run.weights, run.value, history[-1].iteration if history else 0, tuple(history), stopped, run.gap
        )


class _Run:
    """Where a run stands: the best weights so far and the best lower bound so far make the gap."""

    def __init__(self, objective: LinearObjective, seed: int, start: FloatArray | None, shared: Shared | None) -> None:
        self.clock = time.perf_counter()
        self._objective, self._passes = objective, _dual_passes(objective)
        self.ascent: DualAscent = self._passes.dual_ascent(
            objective.loss,
            penalty=objective.l2 * objective.total_weight,
            intercept=objective.intercept,
            penalize_intercept=objective.penalize_intercept,
            seed=seed,
        )
        if start is not None and objective.free_intercept:
            self.ascent.start_intercepts(start)
        self.means = None if shared is None else shared.means
        self.passes = 0.0
        if objective.free_intercept and self.means is None:
            self.means = objective.class_means()
            self.passes += 1
        self.weights = objective.zero_weights()
        self.value, self._bound = math.inf, -math.inf
        self._average = not objective.loss.has_curvature

    @property
    def gap(self) -> float:
        return relative_gap(self.value, self._bound, self._objective.l2)

    def certify(self, number: int) -> None:
        """Value the weights and the dual point, and take W anew from α, without the rounding of many small steps."""
        objective, D = self._objective, self._objective.penalized
        weights = self.ascent.mean_weights if self._average else self.ascent.weights
        loss, gain, gradient = self._passes.loss_and_dual_point(objective.loss, weights, self.ascent.alpha)
        self.passes += 1
        value = self._keep(weights, loss)
        if number % COMPARED_EVERY == 1 and not objective.loss.has_curvature:
            other = self.ascent.weights if self._average else self.ascent.mean_weights
            loss = self._passes.loss_and_gradient(objective.loss, other)[0]
            self.passes += 1
            if self._keep(other, loss) < value:
                self._average = not self._average
        G = gradient.astype(np.float64) / objective.total_weight
        point = DualPoint(gain / objective.total_weight, G[:, :D], G[:, D] if objective.free_intercept else None)
        bound = lower_bound(objective.loss, objective.l2, point, self.means)
        if bound > self._bound:
            self._bound = bound
        gradient /= objective.l2 * objective.total_weight
        self.ascent.refresh(gradient)

    def _keep(self, weights: FloatArray, loss: float) -> float:
        """Return P, and keep the weights if they are the best so far."""
        objective = self._objective
        W = weights[:, : objective.penalized]
        square = float(np.einsum("cd,cd->", W, W, dtype=np.float64))
        value = loss / objective.total_weight + objective.l2 / 2 * square
        if not math.isfinite(value):
            raise DivergenceError(
                "the objective left the finite numbers",
                where="dual coordinate ascent",
                remedy="Scale the columns of X, or use float64.",
            )
        if value < self.value:
            self.value, self.weights = value, weights
        return value


def _next_certificate(history: list[Iteration], tol: float) -> int:
    """Return the epoch where the gap is expected to reach tol, at most half as far again as the run has come."""
    last = history[-1]
    farthest = max(last.iteration + 1, int(last.iteration * LONGEST_WAIT))
    if tol <= 0 or len(history) < 2:
        return farthest
    before = history[-2]
    if not 0 < last.gap < before.gap < math.inf:
        return farthest
    per_epoch = math.log(before.gap / last.gap) / (last.iteration - before.iteration)
    expected = last.iteration + math.ceil(math.log(last.gap / tol) / per_epoch)
    return min(max(last.iteration + 1, expected), farthest)


def dual_variables_fit(objective: LinearObjective) -> bool:
    """Return whether a run has the memory for a value for each row and class."""
    passes, free = objective.passes, available_memory()
    return isinstance(passes, DualPasses) and (free is None or passes.dual_memory(objective.loss) <= free)


def _dual_passes(objective: LinearObjective) -> DualPasses:
    objective.require_no_l1("dual coordinate ascent")
    passes = objective.passes
    if not objective.l2 > 0:
        raise UsageError("dual coordinate ascent needs an L2 penalty above 0", remedy="Use another solver or penalty.")
    if not isinstance(passes, DualPasses):
        raise UsageError("this back end keeps no dual variables", remedy="Use another solver.")
    needed, free = passes.dual_memory(objective.loss), available_memory()
    if free is not None and needed > free:
        raise ResourceError(
            f"a value for each row and class takes {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free",
            where="dual coordinate ascent",
            remedy="Use another solver, float32, or fewer rows.",
        )
    return passes
