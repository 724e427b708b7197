"""Orthant-wise Newton–CG on working sets of columns: for losses that bend, under an L1 penalty.

Problem   min P(W, b) = mean loss + λ₁·‖W‖₁ + λ₂/2·‖W‖².
Update    hinge.solvers.orthant_step: Newton's method on the weights that are not 0, and weights let in from 0.
Columns   It runs on the columns most likely to matter: those that hold a weight, and those where |∂loss| is largest,
          twice as many in all. Passes over these alone cost less. When their problem is solved to a tenth of the gap
          of all, one pass over all columns gives that gap and the next set.
Stages    λ₁ starts just below where it lets a first weight in, and falls by 10 at a time to where it belongs, each
          time when the gap is 0.03: few weights come in that must leave again.
Stopping  certified relative duality gap of the whole problem ≤ tol (hinge.problems.certificate).
Cost      a fused pass a step and a curvature product (1.5 passes) a conjugate-gradient step, over the chosen columns.

Papers: Byrd, Chin, Nocedal & Oztoprak, Math. Programming 159 (2016); Andrew & Gao, ICML 2007 (orthants); Massias,
Gramfort & Salmon, ICML 2018 (working sets); Wen, Yin, Goldfarb & Zhang, SIAM J. Sci. Comput. 32 (2010) (stages).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from hinge.errors import UsageError
from hinge.ops import ColumnPasses, single_threaded_blas
from hinge.problems.certificate import ClassMeans
from hinge.problems.objective import Evaluation, LinearObjective
from hinge.solvers.certified_run import run_until_certified
from hinge.solvers.learning_rate import diverged
from hinge.solvers.orthant_step import OrthantDescent
from hinge.solvers.result import Callback, SolverResult
from hinge.typing import Array, FloatArray

FIRST_COLUMNS = 64
MOST_SHARE = 0.5  # of all columns; beyond, the set is all of them
SOLVED = 0.1
STAGE, STAGE_SOLVED = 10.0, 0.03  # the factor between two L1 penalties on the way; the gap at which the next is due
MOST_FUTILE = 10


@final
@dataclass(frozen=True)
class OrthantNewton:
    """Options: the most conjugate-gradient steps in one Newton step."""

    most_inner: int = 100

    certifies: ClassVar[bool] = True
    default_iterations: ClassVar[int] = 500

    def __post_init__(self) -> None:
        if self.most_inner != int(self.most_inner) or self.most_inner < 1:
            raise UsageError(f"most_inner={self.most_inner!r}", remedy="Use a whole number of steps, at least 1.")

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
        """Run until the certified gap is `tol` or `max_iter` steps are done.

        The history tells a gap where one of the whole problem is known.
        """
        with single_threaded_blas():
            run = _Run(self, objective, seed, tol, start)
            return run_until_certified(run, max_iter=max_iter, tol=tol, callbacks=callbacks)


@final
class _Run:
    """Where a run stands: on some columns (a part) or, between two of them, on none."""

    def __init__(
        self, options: OrthantNewton, objective: LinearObjective, seed: int, tol: float, start: FloatArray | None
    ) -> None:
        passes = objective.passes
        if not objective.loss.is_smooth:
            raise UsageError(
                "OrthantNewton is for losses that bend and whose slope does not jump",
                remedy="Use softmax, or the squared hinge of weston_watkins or one_vs_rest.",
            )
        if not isinstance(passes, ColumnPasses):
            raise UsageError("this back end cannot read columns alone", remedy="Use the cpu or reference back end.")
        self.clock = time.perf_counter()
        self._options, self._whole, self._seed, self._tol = options, objective, seed, tol
        self._squares = passes.column_squares()
        self._means = objective.class_means() if objective.free_intercept else None
        self.passes = 1.0 + objective.free_intercept
        self.weights = objective.zero_weights()
        self._part: OrthantDescent | None = None
        self._columns = np.arange(passes.n_features)
        self._stage = objective  # the problem now at work on: a stronger L1 penalty at first
        self._final = False
        self._goal, self._blocked, self._stuck = 0.0, False, False
        self._gap = self._blocked_gap = math.inf
        self._best = (math.inf, math.inf)
        self._waited = 0
        if start is not None:
            self.weights[...] = start
        elif objective.free_intercept and passes.n_features * MOST_SHARE > FIRST_COLUMNS:
            self._columns, self._goal = np.array([0]), SOLVED  # the intercepts first: they decide what matters
            self._open()
            return
        self._widen()
        if not math.isfinite(self.value):
            raise diverged("the fit", "at its start", 1.0)

    @property
    def _on_all(self) -> bool:
        return len(self._columns) == self._whole.passes.n_features

    def certify(self, *, last: bool) -> float:
        """Return the whole problem's gap where it is known or due, else infinity."""
        part = self._part
        if part is not None:
            if self._on_all and self._final:
                return part.gap
            if part.gap > self._goal and not self._blocked and not last:
                return math.inf
            self._widen()
        return self._gap

    def _waits_on(self, part: OrthantDescent) -> bool:
        """Return whether on the chosen columns neither value nor gap has moved by more than rounding for a while."""
        gap, value = part.gap, part.at.value
        noise = 4 * float(np.finfo(self.weights.dtype).eps) * abs(value)
        best_gap, best_value = self._best
        if gap < 0.9 * best_gap or value < best_value - noise:
            self._waited = 0
        self._best = min(gap, best_gap), min(value, best_value)
        self._waited += 1
        return self._waited > MOST_FUTILE

    def futile(self, gap: float) -> bool:
        """Return whether other columns did not help either."""
        return self._stuck

    def step(self, k: int) -> bool:
        """Take a step on the chosen columns; return whether there is anything left to try."""
        if self._part is None:
            self._open()
        part = self._part
        assert part is not None
        before = part.passes
        if self._waits_on(part) or not part.step():
            if self._on_all and self._final:
                return False
            self._blocked = True  # by rounding here: perhaps other columns or the next stage help
        self._follow(part, part.passes - before)
        return True

    def _open(self) -> None:
        """Begin on the chosen columns."""
        columns, whole = self._columns, self._whole
        inner = np.append(columns, whole.passes.n_features) if whole.intercept else columns
        means = self._means
        if means is not None:
            means = ClassMeans(means.shares, means.rows[:, columns])
        part = OrthantDescent(
            self._stage if self._on_all else self._stage.on_columns(columns),
            self.weights[:, inner],
            means=means,
            column_squares=np.append(self._squares, whole.total_weight)[inner],
            most_products=self._options.most_inner,
            seed=self._seed,
        )
        self._part = part
        self._best, self._waited = (math.inf, math.inf), 0
        self._follow(part, part.passes)

    def _follow(self, part: OrthantDescent, passes: float) -> None:
        """Take over what a part has reached."""
        columns, D = self._columns, self._whole.passes.n_features
        self.passes += passes * part.objective.passes.n_values / max(self._whole.passes.n_values, 1)
        self.weights = self._whole.zero_weights()
        self.weights[:, columns] = part.weights[:, : len(columns)]
        self.weights[:, D:] = part.weights[:, len(columns) :]
        self.value = part.at.mean_loss + self._whole.penalty(self.weights)

    def _widen(self) -> None:
        """Value the weights over all columns; choose the penalty and the columns to go on with."""
        at = self._whole.evaluate(self.weights)
        self.passes += 1
        self.value, self._gap, self._part = at.value, self._whole.gap(self.weights, at, self._means), None
        if self._stage is self._whole and not self._final:
            self._next_stage(float(np.abs(at.gradient[:, : self._whole.penalized]).max(initial=0.0)))
        gap = self._stage_gap(at)
        if self._blocked and self._final:
            self._stuck = self._gap > 0.9 * self._blocked_gap
            self._blocked_gap = self._gap
        while (gap <= STAGE_SOLVED or self._blocked) and not self._final:
            self._next_stage(self._stage.l1)
            gap, self._blocked = self._stage_gap(at), False
        self._blocked = False
        self._columns = self._most_promising(at)
        wanted = self._tol if self._final else STAGE_SOLVED
        self._goal = wanted if self._on_all else max(SOLVED * gap, 0.3 * wanted)

    def _next_stage(self, l1: float) -> None:
        """Let the L1 penalty fall a step from this one, or to where it belongs."""
        self._final = not l1 / STAGE > self._whole.l1
        self._stage = self._whole if self._final else replace(self._whole, l1=l1 / STAGE)

    def _stage_gap(self, at: Evaluation) -> float:
        value = at.mean_loss + self._stage.penalty(self.weights)
        return self._stage.gap(self.weights, replace(at, value=value), self._means)

    def _most_promising(self, at: Evaluation) -> Array:
        D = self._whole.passes.n_features
        slopes = np.abs(at.gradient[:, :D]).max(axis=0)
        held = np.any(self.weights[:, :D] != 0, axis=0)
        count = max(FIRST_COLUMNS, 2 * int(held.sum()))
        if count > MOST_SHARE * D:
            return np.arange(D)
        slopes[held] = np.inf
        return np.sort(np.argpartition(-slopes, count)[:count])
