"""The machine that the numbers come from, and what it can do at best: copy, read and multiply matrices."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from benchmarks.measurement import best
from hinge.ops import system_info

PACKAGES = ("hinge", "numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "threadpoolctl")


@dataclass(frozen=True)
class Rates:
    """The best of several tries, with as many threads as everything else gets."""

    threads: int
    copy_gb_per_s: float  # bytes read plus bytes written
    read_gb_per_s: float
    gemm_float32_gflop_per_s: float
    gemm_float64_gflop_per_s: float

    def gemm(self, dtype: type) -> float:
        return self.gemm_float32_gflop_per_s if dtype is np.float32 else self.gemm_float64_gflop_per_s

    def floor_seconds(self, dtype: type, *, bytes_read: float, flops: float) -> float:
        """Return the time that reading the data once, or the arithmetic at GEMM's rate, takes at least."""
        return max(bytes_read / (self.read_gb_per_s * 1e9), flops / (self.gemm(dtype) * 1e9))


@contextmanager
def thread_limit(threads: int) -> Iterator[None]:
    """Give BLAS and OpenMP the same number of threads; hinge gets its own by argument."""
    with ThreadpoolController().limit(limits=threads):
        yield


def measured_rates(threads: int, *, quick: bool) -> Rates:
    length, side, repeat = (1 << 20, 256, 2) if quick else (1 << 26, 2048, 5)
    return Rates(
        threads=threads,
        copy_gb_per_s=_copy_rate(threads, length, repeat),
        read_gb_per_s=_read_rate(threads, length, repeat),
        gemm_float32_gflop_per_s=_gemm_rate(np.float32, side, repeat),
        gemm_float64_gflop_per_s=_gemm_rate(np.float64, side, repeat),
    )


def _copy_rate(threads: int, length: int, repeat: int) -> float:
    source, target = np.ones(length, dtype=np.float32), np.zeros(length, dtype=np.float32)
    run = _sliced(threads, length, lambda part: np.copyto(target[part], source[part]))
    return 2 * source.nbytes / best(run, repeat=repeat + 1) / 1e9


def _read_rate(threads: int, length: int, repeat: int) -> float:
    """A dot product of an array with itself does next to nothing but read it."""
    source = np.ones(length, dtype=np.float32)
    run = _sliced(threads, length, lambda part: np.dot(source[part], source[part]))
    with thread_limit(1):
        return source.nbytes / best(run, repeat=repeat + 1) / 1e9


def _sliced(threads: int, length: int, work: Callable[[slice], object]) -> Callable[[], None]:
    ends = [length * k // threads for k in range(threads + 1)]
    parts = [slice(ends[k], ends[k + 1]) for k in range(threads)]
    pool = ThreadPoolExecutor(threads)
    return lambda: list(pool.map(work, parts)).clear()


def _gemm_rate(dtype: type, side: int, repeat: int) -> float:
    a = np.ones((side, side), dtype=dtype)
    out = np.empty_like(a)
    return 2.0 * side**3 / best(lambda: np.matmul(a, a, out=out), repeat=repeat + 1) / 1e9


def description(rates: Rates) -> dict[str, Any]:
    """Return processor, instruction set, versions, BLAS and rates: nothing that tells whose machine it is."""
    native = system_info()
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "isa": native["isa"],
        "compiler": native["compiler"],
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "blas": _blas_libraries(),
        "rates": asdict(rates),
    }


def headline(machine: dict[str, Any]) -> str:
    """Return that description as a few lines for people."""
    rates, versions = machine["rates"], machine["versions"]
    packages = ", ".join(f"{name} {found}" for name, found in versions.items() if found)
    blas = ", ".join(sorted({f"{library['name']} {library['version']}" for library in machine["blas"]}))
    return "\n".join(
        [
            f"{machine['cpu']}, {machine['cores']} cores, {machine['isa']}; {rates['threads']} threads",
            f"Python {machine['python']}, {packages}; BLAS: {blas}",
            f"copy {rates['copy_gb_per_s']:.1f} GB/s (read + written), read {rates['read_gb_per_s']:.1f} GB/s, "
            f"GEMM {rates['gemm_float32_gflop_per_s']:.0f} (float32) and "
            f"{rates['gemm_float64_gflop_per_s']:.0f} (float64) GFLOP/s",
        ]
    )


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _blas_libraries() -> list[dict[str, Any]]:
    return [
        {"name": library["internal_api"], "version": library["version"], "kernels": library.get("architecture")}
        for library in ThreadpoolController().info()
        if library["user_api"] == "blas"
    ]
