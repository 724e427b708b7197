"""Settings that come from the environment rather than from an argument."""

from __future__ import annotations

import os

from joblib import cpu_count

from hinge.errors import UsageError


def available_memory() -> int | None:
    """Return how many bytes the system can still give without swapping, or None where it does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def resolve_threads(n_jobs: int | None) -> int:
    """Return how many threads `n_jobs` asks for.

    None means all that this process may use: HINGE_NUM_THREADS, else OMP_NUM_THREADS (which joblib and Dask
    set in their workers, so that nested parallelism does not oversubscribe), else the cores granted by
    affinity and container limits. A negative number counts back from the cores, as in scikit-learn.
    """
    if n_jobs is None:
        for name in ("HINGE_NUM_THREADS", "OMP_NUM_THREADS"):
            text = os.environ.get(name, "").split(",")[0].strip()
            if text.isdigit() and int(text) > 0:
                return int(text)
        return int(cpu_count())
    if isinstance(n_jobs, bool) or n_jobs != int(n_jobs) or n_jobs == 0:
        raise UsageError(
            f"n_jobs={n_jobs!r} is not a number of threads",
            remedy="Use a positive integer, −1 for all cores, or None for the default.",
        )
    return int(n_jobs) if n_jobs > 0 else max(1, int(cpu_count()) + 1 + int(n_jobs))
