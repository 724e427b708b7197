"""What a fit hands on to the next one: under another penalty, or on most of the same rows.

Nothing of it is trusted: it only says where to start and which way to go, and each fit has a certificate of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

from hinge.problems.certificate import ClassMeans
from hinge.problems.preconditioner import PreconditionerBuilder


@final
@dataclass
class Shared:
    """Filled by the first fit, and kept up to date by each that follows.

    `means` hold for the same rows alone. The preconditioner is of use for much the same rows too. `learnt` is what the
    method at hand learnt about the curvature where λ was `l2`.
    """

    means: ClassMeans | None = None
    builder: PreconditionerBuilder | None = None
    learnt: Any = None
    l2: float = 0.0

    def for_other_rows(self) -> Shared:
        """Return what a path over much the same rows may start from."""
        return replace(self, means=None, learnt=None)
