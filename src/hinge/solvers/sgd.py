"""Stochastic gradient descent over mini-batches.

Problem   min P(w) = mean loss + λ/2·‖w‖², through unbiased estimates g of ∂P from batches of rows.
Update    v ← μ·v − η_t·g;   w ← w + v, or with Nesterov's look-ahead  w ← w + μ·v − η_t·g.
Rate      η₀ given, or 1/L with L the curvature of a batch (largest over all rows, plus a single row's over the batch
          size); from there cosine to 0 where the end is known, else constant; or decaying.
Average   optionally w̄ ← (1 − θ_t)·w̄ + θ_t·w with θ_t = 4/(t + 4): polynomial-decay averaging, which forgets the start.
Stopping  after the given number of epochs, whatever the gap is then.
Cost      one fused pass over the rows an epoch.

Papers: Robbins & Monro 1951; Sutskever et al., ICML 2013 (momentum as written here); Shamir & Zhang, ICML 2013,
section 4 (averaging, η = 3); Loshchilov & Hutter, ICLR 2017 (cosine).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from hinge.errors import UsageError
from hinge.problems.objective import LinearObjective
from hinge.solvers.learning_rate import Schedule, check_momentum, check_rate_options, diverged, scheduled_rate
from hinge.solvers.result import ENDED, EXHAUSTED, INTERRUPTED, Callback, Iteration, SolverResult, notify
from hinge.typing import Array, FloatArray

POWER_SWEEPS = 6


@final
@dataclass(frozen=True)
class SGD:
    """Options of stochastic gradient descent.

    `replacement` draws each batch's rows independently; without it an epoch visits every row once. Row weights are
    met by drawing heavy rows more often, except in a batch of all rows, which uses them exactly.
    """

    learning_rate: float | str = "auto"
    schedule: Schedule = "auto"
    decay: float = 1.0
    batch_size: int = 256
    replacement: bool = False
    momentum: float = 0.9
    nesterov: bool = True
    average: bool = False

    certifies: ClassVar[bool] = False
    default_iterations: ClassVar[int] = 100

    def __post_init__(self) -> None:
        check_rate_options(self.learning_rate, self.schedule, self.decay)
        check_momentum(self.momentum, self.nesterov)
        if self.batch_size != int(self.batch_size) or self.batch_size < 1:
            raise UsageError(f"batch_size={self.batch_size!r}", remedy="Use a whole number of rows, at least 1.")

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
        """Run `max_iter` epochs.

        The objective in the history is the mean over the epoch's batches, each at the weights it met.
        """
        state = start_state(self, objective, start, seed)
        history: list[Iteration] = []
        clock = time.perf_counter()
        stopped = EXHAUSTED
        try:
            for epoch in range(1, max_iter + 1):
                state, value = run_epoch(self, objective, state, epochs=max_iter)
                history.append(Iteration(epoch, state.passes, time.perf_counter() - clock, value))
                if notify(callbacks, history[-1]):
                    stopped = ENDED
                    break
        except KeyboardInterrupt:
            stopped = INTERRUPTED
        weights = state.solution(self)
        final = objective.evaluate(weights)
        if not math.isfinite(final.value):
            raise diverged("SGD", "in the last epoch", state.first_rate)
        gap = objective.gap(weights, final, objective.class_means() if objective.free_intercept else None)
        return SolverResult(weights, final.value, len(history), tuple(history), stopped, gap)


@dataclass(frozen=True)
class State:
    """Where a run stands; `weights`, `velocity` and `mean` are updated in place."""

    weights: FloatArray
    velocity: FloatArray
    mean: FloatArray
    first_rate: float
    step: int
    epoch: float
    passes: float
    rng: np.random.Generator

    def solution(self, options: SGD) -> FloatArray:
        """Return the weights that the options ask for: the last ones or their average."""
        return self.mean if options.average else self.weights


def start_state(options: SGD, objective: LinearObjective, start: FloatArray | None, seed: int) -> State:
    """Choose the first rate and start at rest."""
    weights = objective.zero_weights()
    if start is not None:
        weights[...] = start
    passes = 0.0
    rate = options.learning_rate
    if isinstance(rate, str):
        curvature = objective.curvature(sweeps=POWER_SWEEPS, seed=seed)
        rows = min(options.batch_size, objective.passes.n_rows)
        rate = 1 / (curvature.largest + (curvature.single_row / rows if rows < objective.passes.n_rows else 0.0))
        passes = float(POWER_SWEEPS)
    rng = np.random.default_rng(seed)
    return State(weights, np.zeros_like(weights), weights.copy(), float(rate), 0, 0.0, passes, rng)


@np.errstate(over="ignore", invalid="ignore")
def run_epoch(
    options: SGD,
    objective: LinearObjective,
    state: State,
    *,
    epochs: float | None,
) -> tuple[State, float]:
    """Visit as many rows as there are, batch by batch; return the new state and the batches' mean objective."""
    objective.require_no_l1("stochastic gradient descent")
    n_rows = objective.passes.n_rows
    batches = math.ceil(n_rows / options.batch_size)
    order = epoch_rows(n_rows, objective.row_weight, options.replacement, state.rng) if batches > 1 else None
    weights, velocity, total = state.weights, state.velocity, 0.0
    for k in range(batches):
        if order is None:
            value, gradient = objective.value_and_gradient(weights)
        else:
            rows = order[k * options.batch_size : (k + 1) * options.batch_size]
            value, gradient = objective.batch_value_and_gradient(weights, rows)
        total += value
        epoch = state.epoch + k / batches
        gradient *= -scheduled_rate(state.first_rate, options.schedule, options.decay, epoch, epochs)
        velocity *= options.momentum
        velocity += gradient
        if options.nesterov:
            weights += gradient
            weights += options.momentum * velocity
        else:
            weights += velocity
        if options.average:
            share = 4 / (state.step + k + 4)
            state.mean[...] += share * (weights - state.mean)
    mean_value = total / batches
    if not (math.isfinite(mean_value) and np.all(np.isfinite(weights))):
        raise diverged("SGD", f"in epoch {state.epoch + 1:.0f}", state.first_rate)
    moved = replace(state, step=state.step + batches, epoch=state.epoch + 1, passes=state.passes + 1)
    return moved, mean_value


def epoch_rows(n_rows: int, row_weight: FloatArray | None, replacement: bool, rng: np.random.Generator) -> Array:
    """Return the rows of an epoch in the order of their visits.

    Without replacement each row comes once; a row of weight v comes N·v/Σv times, rounded up or down at random such
    that the mean is exact (systematic sampling). With replacement each visit is drawn on its own.
    """
    if row_weight is None:
        return rng.integers(0, n_rows, n_rows) if replacement else rng.permutation(n_rows)
    ends = np.cumsum(row_weight, dtype=np.float64)
    points = rng.random(n_rows) if replacement else (np.arange(n_rows) + rng.random()) / n_rows
    below_end = np.nextafter(ends[-1], 0)  # a point rounded up to the end would name no row, or one of weight 0
    rows: Array = np.searchsorted(ends, np.minimum(points * ends[-1], below_end), side="right")
    return rows if replacement else rng.permutation(rows)
