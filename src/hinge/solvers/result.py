"""What every solver keeps while it runs and returns when it ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from hinge.problems.objective import LinearObjective
from hinge.typing import FloatArray


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


class Solver(Protocol):
    """What a linear estimator asks of its solver."""

    def minimize(
        self,
        objective: LinearObjective,
        *,
        max_iter: int,
        seed: int,
        tol: float = 0.0,
        start: FloatArray | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> SolverResult:
        """Minimise the objective from `start`, or from zero, until the relative duality gap is `tol`."""
        ...
