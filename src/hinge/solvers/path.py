"""One problem under many penalties, from the strongest to the weakest: each solution starts the next.

Problem   min P_λ(w) for ever smaller λ, L1 and L2 in one proportion, and perhaps the solutions v(λ_k) of a problem
          close by, as a fold is to all rows.
Update    predict w(λ_k) − v(λ_k) by the parabola in log λ through the last three of them, v = 0 if there is none; then
          correct by the solver, which takes over what the last fit learnt (hinge.solvers.shared). Under an L1
          penalty w(λ) has a corner wherever a weight leaves 0: there v(λ_k), or else w(λ_k−1), is the start.
Stopping  each fit ends on its own certificate, as if it were alone.
Cost      docs/algorithms/path.md counts the passes.

Paper: Allgower & Georg, Numerical Continuation Methods (1990), chapter 6 (predictor, corrector).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hinge.ops import single_threaded_blas
from hinge.problems.objective import LinearObjective
from hinge.solvers.result import INTERRUPTED, Callback, Solver, SolverResult
from hinge.solvers.shared import Shared
from hinge.typing import Array, FloatArray

FARTHEST = (3.0, 1.6)  # steps ahead, in units of the last one, that a line and a parabola are trusted


def follow_path(
    objectives: Sequence[LinearObjective],
    choose: Callable[[LinearObjective], Solver],
    *,
    max_iter: int | None,
    seed: int,
    tol: float,
    near: Sequence[FloatArray] | None = None,
    shared: Shared | None = None,
    callbacks: Sequence[Callback] = (),
) -> Iterator[SolverResult]:
    """Solve the objectives in turn; they differ in the penalty, which falls. `near` are solutions of a like problem."""
    shared = Shared() if shared is None else shared
    found: list[tuple[float, Array]] = []
    for k, objective in enumerate(objectives):
        v = None if near is None else near[k]
        here = math.log(objective.l1 + objective.l2)
        start = _predicted(found, here, v, objective)
        solver = choose(objective)
        limit = solver.default_iterations if max_iter is None else max_iter
        options: dict[str, Any] = {"shared": shared} if getattr(solver, "shares", False) else {}
        with single_threaded_blas():
            result = solver.minimize(
                objective, max_iter=limit, seed=seed, tol=tol, start=start, callbacks=callbacks, **options
            )
        yield result
        if result.stopped == INTERRUPTED:
            return
        difference = result.weights.astype(np.float64)
        found = [*found[-2:], (here, difference if v is None else difference - v)]


def _predicted(
    found: Sequence[tuple[float, Array]], here: float, near: FloatArray | None, objective: LinearObjective
) -> FloatArray | None:
    """Return where to start: the polynomial through the last points, of the highest degree that reaches this far."""
    if not found:
        return near
    if objective.l1 > 0:
        return found[-1][1] if near is None else near
    while len(found) > 1:
        step = abs(found[-1][0] - found[-2][0])
        if abs(here - found[-1][0]) <= FARTHEST[len(found) - 2] * step:
            break
        found = found[1:]
    start = objective.zero_weights()
    for k, (place, weights) in enumerate(found):
        others = [other for j, (other, _) in enumerate(found) if j != k]
        start += math.prod((here - other) / (place - other) for other in others) * weights
    return start if near is None else start + near
