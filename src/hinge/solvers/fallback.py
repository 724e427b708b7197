"""Two solvers for one problem: a quick one first, and a sure one where that does not reach the gap.

Coordinate ascent and descent by gradients are done long before an interior-point method on most problems, and all but
stand still on a few: separable rows under a weak penalty, columns of very different sizes. Those the second one solves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

from hinge.problems.objective import LinearObjective
from hinge.solvers.result import EXHAUSTED, STUCK, Callback, Iteration, Solver, SolverResult
from hinge.solvers.shared import Shared
from hinge.typing import FloatArray


@final
@dataclass(frozen=True)
class Fallback:
    """Run `first` for `patience` iterations at most, and `second` if the gap is still above the tolerance."""

    first: Solver
    second: Solver
    patience: int

    certifies: ClassVar[bool] = True
    shares: ClassVar[bool] = True

    @property
    def default_iterations(self) -> int:
        """Both solvers' limits together."""
        return self.patience + self.second.default_iterations

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
        """Run until the certified gap is `tol` or `max_iter` iterations are done, those of both solvers."""
        options: dict[str, Any] = {"shared": shared} if getattr(self.first, "shares", False) else {}
        tried = self.first.minimize(
            objective,
            max_iter=min(max_iter, self.patience),
            seed=seed,
            tol=tol,
            start=start,
            callbacks=callbacks,
            **options,
        )
        if tried.gap <= tol or tried.stopped not in (EXHAUSTED, STUCK) or max_iter <= tried.n_iter:
            return tried
        done = tried.history[-1]

        def later(iteration: Iteration) -> Iteration:
            return replace(
                iteration,
                iteration=tried.n_iter + iteration.iteration,
                passes=done.passes + iteration.passes,
                seconds=done.seconds + iteration.seconds,
            )

        told = [lambda iteration, callback=callback: callback(later(iteration)) for callback in callbacks]
        surely = self.second.minimize(
            objective, max_iter=max_iter - tried.n_iter, seed=seed, tol=tol, start=tried.weights, callbacks=told
        )
        history = (*tried.history, *map(later, surely.history))
        best = surely if surely.gap <= tried.gap else tried
        return replace(best, n_iter=tried.n_iter + surely.n_iter, history=history, stopped=surely.stopped)
