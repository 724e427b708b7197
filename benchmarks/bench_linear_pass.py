"""The linear pass: loss and gradient over all rows, hinge's single reading against NumPy's three steps.

Every case is first checked: both must agree on loss and gradient. GB/s counts X once over hinge's time, GFLOP/s counts
4·N·D·C (2·nnz·C twice for sparse rows). "of floor" is the time that reading X once, or the arithmetic at GEMM's rate,
takes at least on this machine, over hinge's time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.machine import Rates
from benchmarks.measurement import PAUSE, Settings, interleaved, largest_difference, ratio
from benchmarks.memory import peak_extra_bytes
from benchmarks.rivals import numpy_pass
from benchmarks.table import OTHERS, OTHERS_NOTE, Column, Table, decimals, milliseconds, times
from hinge.ops import CpuBackend, Loss

TITLE = "fused linear pass (loss and gradient) against NumPy's three steps"

LOSSES = {
    "softmax": Loss("softmax"),
    "Weston–Watkins": Loss("weston_watkins"),
    "Weston–Watkins²": Loss("weston_watkins", squared=True),
    "Crammer–Singer": Loss("crammer_singer"),
    "one-vs-rest": Loss("one_vs_rest"),
}
DENSITY = 0.05
# Two orders of summing a float32 gradient over 60,000 rows differ by about this much.
TOLERANCE = {"float32": 1e-4, "float64": 1e-10}


@dataclass(frozen=True)
class Case:
    """One row of the table: the data's shape, type and layout, and the loss."""

    rows: int = 60_000
    features: int = 784
    classes: int = 10
    loss: str = "softmax"
    dtype: str = "float32"
    layout: str = "C"  # C, F or CSR

    @property
    def label(self) -> str:
        return f"{self.rows}×{self.features}, {self.classes} classes, {self.dtype} {self.layout}, {self.loss}"


CASES = (
    *(Case(loss=loss) for loss in LOSSES),
    Case(dtype="float64"),
    Case(layout="F"),
    Case(layout="CSR"),
    Case(rows=20_000, classes=100),
    Case(rows=6_000, classes=1_000),
    Case(rows=20_000, classes=100, loss="Weston–Watkins"),
)
MEMORY_CASES = (CASES[0], Case(dtype="float64"), Case(layout="F"), Case(layout="CSR"), CASES[8], CASES[9])


def tables(settings: Settings, rates: Rates) -> list[Table]:
    cases, memory_cases = CASES, MEMORY_CASES
    if settings.quick:
        cases = tuple(_small(case) for case in CASES)
        memory_cases = (_small(CASES[0]),)
    return [
        _time_table([_timed(case, settings, rates) for case in cases]),
        _memory_table([_weighed(case, settings) for case in memory_cases]),
    ]


def _small(case: Case) -> Case:
    return Case(**{**asdict(case), "rows": 600, "features": 50, "classes": min(case.classes, 40)})


def rows_and_labels(case: Case) -> tuple[Any, np.ndarray]:
    """Return rows with values around 1, as after standardisation, and random labels."""
    rng = np.random.default_rng(0)
    shape, dtype = (case.rows, case.features), np.dtype(case.dtype)
    if case.layout == "CSR":
        X = sparse.random_array(shape, density=DENSITY, format="csr", dtype=dtype, rng=rng)
    else:
        X = rng.standard_normal(shape, dtype=dtype.type)
        X = np.asfortranarray(X) if case.layout == "F" else X
    return X, rng.integers(0, case.classes, case.rows, dtype=np.int32)


def contestants(case: Case, threads: int) -> dict[str, Callable[[], Callable[[], Any]]]:
    """Return for each side what binds it to the data; what that returns is one pass."""
    X, y = rows_and_labels(case)
    loss, D = LOSSES[case.loss], case.features
    W = np.random.default_rng(1).standard_normal((case.classes, D + 1)) * 0.05
    W = W.astype(case.dtype, order="F" if case.layout == "CSR" else "C")
    parts = W[:, :D].copy(order="F" if case.layout == "CSR" else "C"), W[:, D].copy()

    def bound_hinge() -> Callable[[], Any]:
        passes = CpuBackend(threads).bind(X, y, None, case.classes)
        return lambda: passes.loss_and_gradient(loss, W)

    def bound_numpy() -> Callable[[], Any]:
        return partial(numpy_pass.NumpyPass(X, y, case.classes), loss, *parts)

    return {"hinge": bound_hinge, numpy_pass.NAME: bound_numpy}


def _timed(case: Case, settings: Settings, rates: Rates) -> dict[str, Any]:
    runs = {name: bind() for name, bind in contestants(case, settings.threads).items()}
    _require_agreement(case, runs["hinge"](), runs[numpy_pass.NAME]())
    rounds = interleaved(runs, settings, pause=0.0 if settings.quick else PAUSE)
    ours, theirs = rounds["hinge"], rounds[numpy_pass.NAME]
    dtype = np.dtype(case.dtype)
    values = case.rows * case.features * (DENSITY if case.layout == "CSR" else 1.0)
    size = values * (dtype.itemsize + (4 if case.layout == "CSR" else 0))
    flops = 4.0 * values * case.classes
    floor = rates.floor_seconds(dtype.type, bytes_read=size, flops=flops)
    return asdict(case) | {
        "label": case.label,
        "hinge": ours,
        "rival": theirs,
        "ratio": ratio(theirs, ours),
        "gb_per_s": size / ours.median / 1e9,
        "gflop_per_s": flops / ours.median / 1e9,
        "of_floor": floor / ours.median,
        "others": rounds.others,
        "dropped": rounds.dropped,
    }


def _require_agreement(case: Case, ours: Any, theirs: Any) -> None:
    value, gradient = ours
    expected, weights_part, intercepts_part = theirs
    off = max(
        largest_difference([value], [expected]),
        largest_difference(gradient, np.column_stack([weights_part, intercepts_part])),
    )
    if not off <= TOLERANCE[case.dtype]:
        raise AssertionError(f"{case.label}: hinge and {numpy_pass.NAME} differ by {off:.2g}")


def _weighed(case: Case, settings: Settings) -> dict[str, Any]:
    options = asdict(case) | {"threads": settings.threads}
    scores = case.rows * case.classes * np.dtype(case.dtype).itemsize
    peaks = {who: peak_extra_bytes("linear_pass", options | {"who": who}) for who in ("hinge", numpy_pass.NAME)}
    megabytes = {who: None if peak is None else peak / 1e6 for who, peak in peaks.items()}
    return {
        "label": case.label,
        "hinge_mb": megabytes["hinge"],
        "rival_mb": megabytes[numpy_pass.NAME],
        "scores_mb": scores / 1e6,
    }


def weighed(options: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return one contestant's pass twice, as rehearsal and as run, bound anew each time."""
    who, threads = options.pop("who"), options.pop("threads")
    bound = contestants(Case(**options), threads)[who]
    return lambda: bound()(), lambda: bound()()


def _time_table(rows: list[dict[str, Any]]) -> Table:
    columns = [
        Column("label", "one pass"),
        Column("hinge", "hinge, ms", milliseconds),
        Column("rival", f"{numpy_pass.NAME}, ms", milliseconds),
        Column("ratio", "NumPy ÷ hinge", times),
        Column("gb_per_s", "GB/s", decimals(1)),
        Column("gflop_per_s", "GFLOP/s", decimals(0)),
        Column("of_floor", "of floor", decimals(2)),
        OTHERS,
    ]
    notes = ("Medians (quartiles). Sparse rows: the rival is SciPy, which has one thread.", OTHERS_NOTE)
    return Table("Linear pass: time", columns, rows, notes)


def _memory_table(rows: list[dict[str, Any]]) -> Table:
    columns = [
        Column("label", "one pass"),
        Column("hinge_mb", "hinge, MB", decimals(1)),
        Column("rival_mb", f"{numpy_pass.NAME}, MB", decimals(1)),
        Column("scores_mb", "N×C scores alone, MB", decimals(1)),
    ]
    return Table("Linear pass: peak memory beyond data and weights", columns, rows)
