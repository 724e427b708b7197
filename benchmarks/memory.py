"""Peak extra memory of one call, measured from outside NumPy's and hinge's own book-keeping.

Run as `python -m benchmarks.memory PROBLEM CASE` with CASE in JSON; it prints the bytes. A fresh process builds the
data, lets the contestant rehearse (so that BLAS has its buffers), drops what that left, resets the kernel's high-water
mark of resident memory, and reports by how much a run lifts it. Only Linux offers that mark.

A problem's file offers `weighed(case)`, which returns the rehearsal and the run.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_HIGH_WATER = "5"

# glibc then gives back what is freed at once, and each array of 64 KiB or more counts anew.
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def peak_extra_bytes(problem: str, case: dict[str, Any]) -> int | None:
    """Return the peak of a problem's case in a process of its own; None where it cannot be measured."""
    if not CLEAR.exists():
        return None
    command = [sys.executable, "-m", "benchmarks.memory", problem, json.dumps(case)]
    root = Path(__file__).parent.parent
    done = subprocess.run(command, cwd=root, env=os.environ | ALLOCATOR, capture_output=True, text=True, check=True)
    return int(done.stdout)


def high_water_rise(run: Callable[[], object]) -> int:
    """Return by how many bytes a run lifts the process's resident memory at most."""
    gc.collect()
    CLEAR.write_text(RESET_HIGH_WATER, encoding="ascii")
    before = _status("VmRSS")
    run()
    return max(0, _status("VmHWM") - before)


def _status(key: str) -> int:
    line = next(line for line in STATUS.read_text(encoding="ascii").splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024


def main(problem: str, text: str) -> None:
    from benchmarks.machine import thread_limit

    module: Any = import_module(f"benchmarks.bench_{problem}")
    options = json.loads(text)
    with thread_limit(options["threads"]):
        rehearsal, run = module.weighed(options)
        rehearsal()
        print(high_water_rise(run))


if __name__ == "__main__":
    main(*sys.argv[1:])
