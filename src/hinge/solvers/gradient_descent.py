"""Gradient descent over all rows: the method that every other one is measured by.

Problem   min P(w) = mean loss + λ/2·‖w‖².
Update    v ← μ·v − η_t·∂P(w);   w ← w + v, or with Nesterov's look-ahead  w ← w + μ·v − η_t·∂P(w).
Rate      η₀ given, or 1/L with L the largest curvature, by power iteration. From there constant for losses that bend;
          for a plain hinge, on which no constant rate converges, cosine to 0.
Stopping  ‖∂P(w)‖ ≤ tol·‖∂P(w₀)‖, or max_iter iterations.
Cost      one fused pass over the rows an iteration.

Papers: Cauchy 1847; Nesterov, Soviet Math. Doklady 27 (1983); Sutskever et al., ICML 2013 (momentum as written here).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from hinge.errors import UsageError
from hinge.problems.objective import LinearObjective
from hinge.solvers.learning_rate import Schedule, check_momentum, check_rate_options, diverged, scheduled_rate
from hinge.solvers.result import ENDED, EXHAUSTED, INTERRUPTED, Callback, Iteration, SolverResult, notify
from hinge.typing import FloatArray

POWER_SWEEPS = 10


@final
@dataclass(frozen=True)
class GradientDescent:
    """Options of full-batch gradient descent."""

    learning_rate: float | str = "auto"
    schedule: Schedule = "auto"
    decay: float = 1.0
    momentum: float = 0.0
    nesterov: bool = False
    tol: float = 1e-5

    certifies: ClassVar[bool] = False
    default_iterations: ClassVar[int] = 1000

    def __post_init__(self) -> None:
        check_rate_options(self.learning_rate, self.schedule, self.decay)
        check_momentum(self.momentum, self.nesterov)
        if not 0 <= self.tol < 1:
            raise UsageError(f"tol={self.tol!r} is outside [0, 1)", remedy="Use for example tol=1e-5.")

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
        """Run until the gradient is small or `max_iter` iterations are done.

        The history holds P at the start of each iteration, exactly.
        """
        objective.require_no_l1("gradient descent")
        weights = objective.zero_weights()
        if start is not None:
            weights[...] = start
        velocity = np.zeros_like(weights)
        first_rate, passes = self._first_rate(objective, seed)
        schedule = "constant" if self.schedule == "auto" and objective.loss.has_curvature else self.schedule
        history: list[Iteration] = []
        clock = time.perf_counter()
        first_norm = 0.0
        stopped = EXHAUSTED
        try:
            for k in range(max_iter):
                value, gradient = objective.value_and_gradient(weights)
                norm = float(np.linalg.norm(gradient.astype(np.float64)))
                if not (math.isfinite(value) and math.isfinite(norm)):
                    raise diverged("gradient descent", f"in iteration {k + 1}", first_rate)
                first_norm = norm if k == 0 else first_norm
                history.append(Iteration(k + 1, passes + k + 1, time.perf_counter() - clock, value))
                if notify(callbacks, history[-1]):
                    stopped = ENDED
                    break
                if norm <= self.tol * first_norm:
                    stopped = "gradient small"
                    break
                gradient *= -scheduled_rate(first_rate, schedule, self.decay, k, max_iter)
                velocity *= self.momentum
                velocity += gradient
                weights += gradient + self.momentum * velocity if self.nesterov else velocity
        except KeyboardInterrupt:
            stopped = INTERRUPTED
        final = objective.evaluate(weights)
        if not math.isfinite(final.value):
            raise diverged("gradient descent", "in the last iteration", first_rate)
        gap = objective.gap(weights, final, objective.class_means() if objective.free_intercept else None)
        return SolverResult(weights, final.value, len(history), tuple(history), stopped, gap)

    def _first_rate(self, objective: LinearObjective, seed: int) -> tuple[float, float]:
        if not isinstance(self.learning_rate, str):
            return self.learning_rate, 0.0
        return 1 / objective.curvature(sweeps=POWER_SWEEPS, seed=seed).largest, float(POWER_SWEEPS)
