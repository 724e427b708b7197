"""What `import hinge` costs on top of scikit-learn, each time in a fresh process.

A row compares statements that bring the same thing: the bare package, or a linear classifier ready to fit.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks.machine import Rates
from benchmarks.measurement import Settings, Spread, interleaved, ratio
from benchmarks.rivals import installed
from benchmarks.table import OTHERS, OTHERS_NOTE, Column, Table, milliseconds, times

TITLE = "import time against scikit-learn's"

FEWEST_ROUNDS = 7
STATEMENTS = {
    "package": ("import hinge", "import sklearn"),
    "classifier": ("from hinge import LinearSVM", "from sklearn.linear_model import LogisticRegression"),
}
PROGRAM = "import time; clock = time.perf_counter(); {statement}; print(time.perf_counter() - clock)"


def tables(settings: Settings, rates: Rates) -> list[Table]:
    if not installed("sklearn"):
        return [Table("Import: scikit-learn is absent", [], [])]
    settings = replace(settings, repeat=2 if settings.quick else max(FEWEST_ROUNDS, settings.repeat))
    columns = [
        Column("label", "import"),
        Column("hinge", "hinge, ms", milliseconds),
        Column("rival", "scikit-learn, ms", milliseconds),
        Column("difference", "hinge − scikit-learn, ms", milliseconds),
        Column("ratio", "scikit-learn ÷ hinge", times),
        OTHERS,
    ]
    names = ["classifier"] if settings.quick else list(STATEMENTS)
    return [Table("Import in a fresh process", columns, [_row(name, settings) for name in names], (OTHERS_NOTE,))]


def _row(name: str, settings: Settings) -> dict[str, Any]:
    ours, theirs = STATEMENTS[name]
    contestants: dict[str, Callable[[], float]] = {
        "hinge": partial(_import_seconds, ours),
        "rival": partial(_import_seconds, theirs),
    }
    rounds = interleaved(contestants, settings, rehearsal=False, own_clock=True)
    seconds = rounds.seconds
    pairs = zip(seconds["hinge"].rounds, seconds["rival"].rounds, strict=True)
    return {
        "label": f"{ours}  |  {theirs}",
        **seconds,
        "difference": Spread(tuple(own - rival for own, rival in pairs)),
        "ratio": ratio(seconds["rival"], seconds["hinge"]),
        "others": rounds.others,
        "dropped": rounds.dropped,
    }


def _import_seconds(statement: str) -> float:
    command = [sys.executable, "-c", PROGRAM.format(statement=statement)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
