"""What a solution costs beyond its errors."""

from __future__ import annotations

import numpy as np

from hinge.errors import UsageError
from hinge.typing import Array, FloatArray


def l2_penalty(W: Array, reg: float) -> tuple[float, FloatArray]:
    """Return reg·ΣW² and its gradient 2·reg·W."""
    if not 0 <= reg < float("inf"):
        raise UsageError(f"reg={reg!r} is not a finite number ≥ 0", remedy="Use for example reg=1e-3.")
    if reg == 0:  # 0·ΣW² is 0, also where ΣW² overflows
        return 0.0, np.zeros_like(W)
    return reg * float(np.sum(np.square(W), dtype=np.float64)), 2 * reg * W
