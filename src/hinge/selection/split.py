"""Setting rows aside, class by class."""

from __future__ import annotations

import numpy as np

from hinge.errors import DataError
from hinge.typing import Array


def stratified_split(y: Array, share: float, seed: int) -> tuple[Array, Array]:
    """Return the positions to keep and those to hold out, about `share` of each class.

    Every class keeps at least one row, so a class of one row is never held out. Both lists are in ascending order.
    """
    rng = np.random.default_rng(seed)
    _, codes = np.unique(y, return_inverse=True)
    held = np.zeros(len(y), dtype=bool)
    carried = 0.0  # what rounding left over goes to the next class, so that the total comes out right
    for code in range(int(codes.max(initial=-1)) + 1):
        rows = rng.permutation(np.flatnonzero(codes == code))
        wanted = share * len(rows) + carried
        count = min(int(wanted + 0.5), len(rows) - 1)
        carried = min(wanted - count, 1.0)
        held[rows[:count]] = True
    if not held.any() or held.all():
        raise DataError(
            f"{len(y)} rows are too few to hold out a share of {share:g}",
            where="y",
            remedy="Give more rows of each class.",
        )
    return np.flatnonzero(~held), np.flatnonzero(held)
