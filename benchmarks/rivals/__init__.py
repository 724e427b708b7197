"""One file per rival: each says whether it is installed and does a problem's job in that library's own best way."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np


def installed(package: str) -> bool:
    """Return whether a rival's package is there; a problem shows the row of an absent one as absent."""
    return find_spec(package) is not None


@dataclass(frozen=True)
class LinearFit:
    """A fitted linear classifier, whoever fitted it: one row of weights and one intercept a class.

    The certified gap and the passes over the rows are hinge's; rivals tell neither.
    """

    coef: np.ndarray
    intercept: np.ndarray
    gap: float | None = None
    passes: float | None = None
