"""Newton's method, each step solved by preconditioned conjugate gradients: for losses that bend.

Problem   min P(w) = mean loss + λ/2·‖w‖².
Update    w ← w + t·d with ∂²P(w)·d ≈ −∂P(w), solved by conjugate gradients under M until the residual has fallen to
          η = min(¼, √(‖∂P‖/‖∂P₀‖)) of its start, in M's norm: the closer the optimum, the more exactly.
Loop      steps, preconditioner and stopping are those of hinge.solvers.certified_descent.
Cost      a fused pass a step, and a curvature product (1.5 passes) a conjugate-gradient step.

Papers: Dembo, Eisenstat & Steihaug, SIAM J. Numer. Anal. 19 (1982); Nocedal & Wright, algorithm 7.1. For squared hinges
the generalised Hessian makes it a semismooth Newton method: Qi & Sun, Math. Programming 58 (1993).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from hinge.errors import UsageError
from hinge.problems.objective import LinearObjective
from hinge.solvers.certified_descent import Descent, descend
from hinge.solvers.result import Callback, SolverResult
from hinge.typing import Array, FloatArray


@final
@dataclass(frozen=True)
class NewtonCG:
    """Options: the most conjugate-gradient steps in one Newton step."""

    most_inner: int = 200

    certifies: ClassVar[bool] = True
    default_iterations: ClassVar[int] = 200

    def __post_init__(self) -> None:
        if self.most_inner != int(self.most_inner) or self.most_inner < 1:
            raise UsageError(f"most_inner={self.most_inner!r}", remedy="Use a whole number of steps, at least 1.")

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
        """Run until the certified gap is `tol` or `max_iter` steps are done."""
        method = _NewtonStep(self.most_inner)
        return descend(method, objective, max_iter=max_iter, seed=seed, tol=tol, start=start, callbacks=callbacks)


class _NewtonStep:
    name: ClassVar[str] = "Newton-CG"

    def __init__(self, most_inner: int) -> None:
        self._most_inner = most_inner
        self._first_norm = 0.0

    def moved(self, step: Array, bend: Array) -> None:
        """Nothing is learnt: the Hessian is asked anew."""

    def forget(self) -> bool:
        """Nothing was learnt."""
        return False

    def direction(self, state: Descent) -> Array:
        """Return d by preconditioned conjugate gradients from 0."""
        gradient = state.at.gradient
        norm = float(np.linalg.norm(gradient))
        self._first_norm = self._first_norm or norm
        wanted = min(0.25, (norm / self._first_norm) ** 0.5)
        d, residual = np.zeros(gradient.size), -gradient.ravel()
        (z,) = state.precondition(residual)
        conjugate, size = z, float(residual @ z)
        first = size
        for _ in range(self._most_inner):
            product = _hessian_product(state, conjugate.reshape(gradient.shape)).ravel()
            bend = float(conjugate @ product)
            if not bend > 0:
                break
            length = size / bend
            d += length * conjugate
            residual -= length * product
            (z,) = state.precondition(residual)
            size, before = float(residual @ z), size
            if not size > wanted**2 * first:
                break
            conjugate = z + size / before * conjugate
        return d.reshape(gradient.shape)


def _hessian_product(state: Descent, direction: Array) -> Array:
    """Return ∂²P·direction: one pass of a curvature product. The direction is scaled such that float32 can hold it."""
    objective = state.objective
    scale = float(np.abs(direction).max()) or 1.0
    scaled = (direction / scale).astype(state.weights.dtype)
    product = objective.passes.curvature_product(objective.loss, state.weights, scaled).astype(np.float64)
    product *= scale / objective.total_weight
    state.passes += 1.5
    D = objective.penalized
    product[:, :D] += objective.l2 * direction[:, :D]
    return product
