"""Names for the array types that several layers speak of."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""Any NumPy array."""

FloatArray: TypeAlias = NDArray[np.floating[Any]]
"""float32 or float64: every computation runs in the type of its rows."""

Codes: TypeAlias = NDArray[np.int32]
"""Labels as integers 0 … n_classes − 1."""

Rows: TypeAlias = Any
"""A dense 2-D array or a SciPy CSR matrix or array."""
