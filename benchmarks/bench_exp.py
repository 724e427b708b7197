"""The vector exponential inside softmax against numpy.exp: one thread, arguments as softmax has them, −20 … 0.

Errors are in units in the last place, against the same values in a wider type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.machine import Rates
from benchmarks.measurement import Settings, interleaved, ratio
from benchmarks.table import OTHERS, OTHERS_NOTE, Column, Table, decimals, milliseconds, times
from hinge import _native

TITLE = "vector exponential against numpy.exp"

LENGTHS = (4_096, 1 << 20)  # in the first-level cache or near it, and far outside
VALUES_A_ROUND = 1 << 22


def tables(settings: Settings, rates: Rates) -> list[Table]:
    a_round = 1 << 14 if settings.quick else VALUES_A_ROUND
    rows = [_row(dtype, length, a_round, settings) for dtype in ("float32", "float64") for length in LENGTHS]
    columns = [
        Column("label", "exp"),
        Column("hinge", "hinge, ms", milliseconds),
        Column("rival", "NumPy, ms", milliseconds),
        Column("ratio", "NumPy ÷ hinge", times),
        Column("hinge_ns", "hinge, ns a value", decimals(2)),
        Column("rival_ns", "NumPy, ns a value", decimals(2)),
        Column("hinge_ulp", "hinge, ULP", decimals(2)),
        Column("rival_ulp", "NumPy, ULP", decimals(2)),
        OTHERS,
    ]
    return [Table("Vector exponential", columns, rows, (OTHERS_NOTE,))]


def _row(dtype: str, length: int, a_round: int, settings: Settings) -> dict[str, Any]:
    x = np.random.default_rng(0).uniform(-20, 0, length).astype(dtype)
    out = {"hinge": np.empty_like(x), "NumPy": np.empty_like(x)}
    calls = max(1, a_round // length)
    rounds = interleaved(
        {
            "hinge": _repeated(lambda: _native.exp(x, out["hinge"]), calls),
            "NumPy": _repeated(lambda: np.exp(x, out=out["NumPy"]), calls),
        },
        settings,
        pause=0.0,
    )
    ours, theirs, values = rounds["hinge"], rounds["NumPy"], calls * length
    return {
        "label": f"{calls} × {length} values, {dtype}",
        "hinge": ours,
        "rival": theirs,
        "ratio": ratio(theirs, ours),
        "hinge_ns": ours.median / values * 1e9,
        "rival_ns": theirs.median / values * 1e9,
        "hinge_ulp": _largest_error(x, out["hinge"]),
        "rival_ulp": _largest_error(x, out["NumPy"]),
        "others": rounds.others,
        "dropped": rounds.dropped,
    }


def _repeated(call: Callable[[], object], calls: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(calls):
            call()

    return run


def _largest_error(x: np.ndarray, found: np.ndarray) -> float | None:
    wide = np.float64 if x.dtype == np.float32 else np.longdouble
    if np.finfo(wide).eps >= np.finfo(x.dtype).eps:
        return None
    exact = np.exp(x.astype(wide))
    return float((np.abs(found.astype(wide) - exact) / np.spacing(found)).max())
