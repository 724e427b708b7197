"""The loop around every solver that values its gap at each step: certify, tell, stop or step."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Protocol

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
from hinge.typing import FloatArray


class Run(Protocol):
    """Where a run stands; `clock` is when it began and `passes` counts readings of all rows."""

    clock: float
    passes: float
    weights: FloatArray

    @property
    def value(self) -> float:
        """P at the weights."""
        ...

    def certify(self, *, last: bool) -> float:
        """Return the certified gap, or infinity where none is due; one is due if this is the `last` chance."""
        ...

    def futile(self, gap: float) -> bool:
        """Return whether nothing has moved by more than rounding for a while."""
        ...

    def step(self, k: int) -> bool:
        """Take step k; return whether it got anywhere."""
        ...


def run_until_certified(run: Run, *, max_iter: int, tol: float, callbacks: Sequence[Callback]) -> SolverResult:
    """Step until the gap is `tol`, `max_iter` steps are done, or something else ends the run; Ctrl-C keeps it."""
    history: list[Iteration] = []
    stopped = EXHAUSTED
    try:
        for k in range(max_iter + 1):
            gap = run.certify(last=k == max_iter)
            history.append(Iteration(k, run.passes, time.perf_counter() - run.clock, run.value, gap))
            if notify(callbacks, history[-1]):
                stopped = ENDED
                break
            if gap <= tol:
                stopped = CERTIFIED
                break
            if run.futile(gap) or (k < max_iter and not run.step(k)):
                stopped = STUCK
                break
    except KeyboardInterrupt:
        stopped = INTERRUPTED
    # A run that was interrupted between a step and its certificate has none.
    gap = history[-1].gap if history and history[-1].objective == run.value else math.inf
    return SolverResult(run.weights, run.value, max(0, len(history) - 1), tuple(history), stopped, gap)
