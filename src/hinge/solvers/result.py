"""What every solver keeps while it runs and returns when it ends."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from hinge.problems.objective import LinearObjective
from hinge.typing import FloatArray

# Why a run stopped.
CERTIFIED = "gap reached"
EXHAUSTED = "all iterations done"
ENDED = "ended by a callback"
STUCK = "no further progress: rounding hides the descent"
INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Iteration:
    """One line of a fit's history.

    `objective` is mean loss plus penalty; `passes` counts readings of all rows, gradients and objectives alike;
    `gap` is the certified relative duality gap there, where one was computed.
    """

    iteration: int
    passes: float
    seconds: float
    objective: float
    gap: float = math.inf


Callback: TypeAlias = Callable[[Iteration], object]
"""Called after each iteration; a callback that returns True ends the fit there."""


@dataclass(frozen=True)
class SolverResult:
    """The end of a run: the weights, how they came about, why the run stopped and how far the optimum can be.

    `gap` is a certified bound on (P − P*)/max(P, λ) (see hinge.problems.certificate), infinite where none was computed.
    """

    weights: FloatArray
    objective: float
    n_iter: int
    history: tuple[Iteration, ...]
    stopped: str
    gap: float = math.inf


def notify(callbacks: Sequence[Callback], iteration: Iteration) -> bool:
    """Tell every callback of an iteration; return whether one of them wants the fit to end."""
    answers = [callback(iteration) for callback in callbacks]
    return any(answer is True for answer in answers)


def print_iteration(iteration: Iteration) -> None:
    """Show one line of a fit's history on stderr."""
    gap = f"{iteration.gap:.2e}" if math.isfinite(iteration.gap) else "-"
    print(
        f"{iteration.iteration:6d}  passes {iteration.passes:8.1f}  {iteration.seconds:8.2f} s  "
        f"objective {iteration.objective:.9g}  gap {gap}",
        file=sys.stderr,
        flush=True,
    )


class Solver(Protocol):
    """What a linear estimator asks of its solver.

    `certifies` says whether it runs until the gap is `tol`; `default_iterations` is its limit where none is given.
    """

    @property
    def certifies(self) -> bool:
        """Whether the solver stops on its certificate."""
        ...

    @property
    def default_iterations(self) -> int:
        """The most iterations where the user names no limit."""
        ...

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
        """Minimise the objective from `start`, or from zero, until the relative duality gap is `tol`."""
        ...
