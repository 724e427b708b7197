"""L-BFGS under a two-scale preconditioner: for losses that bend.

Problem   min P(w) = mean loss + λ/2·‖w‖².
Update    w ← w − t·H·∂P(w), with H the inverse Hessian that the last m pairs (s, y) = (Δw, Δ∂P) make of H₀ = γ·M⁻¹ by
          the two-loop recursion; γ = sᵀy / yᵀM⁻¹y makes the unit step acceptable.
Loop      steps, preconditioner and stopping are those of hinge.solvers.certified_descent.
Cost      one fused pass over the rows an iteration.

Papers: Liu & Nocedal, Math. Programming 45 (1989), algorithm 2.1; Nocedal & Wright, algorithm 7.4.
"""

from __future__ import annotations

from collections import deque
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
class LBFGS:
    """Options: how many pairs are remembered."""

    memory: int = 30

    certifies: ClassVar[bool] = True
    default_iterations: ClassVar[int] = 1000

    def __post_init__(self) -> None:
        if self.memory != int(self.memory) or self.memory < 1:
            raise UsageError(f"memory={self.memory!r}", remedy="Use a whole number of pairs, at least 1.")

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
        """Run until the certified gap is `tol` or `max_iter` iterations are done."""
        return descend(
            _Pairs(self.memory), objective, max_iter=max_iter, seed=seed, tol=tol, start=start, callbacks=callbacks
        )


class _Pairs:
    """The last steps s, the changes y of the gradient along them, and sᵀy."""

    name: ClassVar[str] = "L-BFGS"

    def __init__(self, memory: int) -> None:
        self._pairs: deque[tuple[Array, Array, float]] = deque(maxlen=memory)

    def moved(self, step: Array, bend: Array) -> None:
        """Remember a pair, unless rounding has eaten its curvature."""
        curved = float(step @ bend)
        if curved > 1e-14 * float(np.linalg.norm(step) * np.linalg.norm(bend)):
            self._pairs.append((step, bend, curved))

    def forget(self) -> bool:
        """Drop all pairs; return whether there were any."""
        held = bool(self._pairs)
        self._pairs.clear()
        return held

    def direction(self, state: Descent) -> Array:
        """Return −H·∂P by the two-loop recursion."""
        q = state.at.gradient.ravel().copy()
        taken = []
        for s, y, curved in reversed(self._pairs):
            a = float(s @ q) / curved
            q -= a * y
            taken.append(a)
        if self._pairs:
            _, y, curved = self._pairs[-1]
            z, rescaled = state.precondition(q, y)
            z *= curved / float(y @ rescaled)
        else:
            (z,) = state.precondition(q)
        for (s, y, curved), a in zip(self._pairs, reversed(taken), strict=True):
            z += (a - float(y @ z) / curved) * s
        return -z.reshape(state.weights.shape)
