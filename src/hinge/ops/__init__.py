"""The compute protocol and its back ends."""

from hinge.ops.cpu import CpuBackend, blas_threads, single_threaded_blas, system_info
from hinge.ops.protocol import Backend, ColumnPasses, DualAscent, DualPasses, LinearPasses, Loss
from hinge.ops.reference import ReferenceBackend

__all__ = [
    "Backend",
    "ColumnPasses",
    "CpuBackend",
    "DualAscent",
    "DualPasses",
    "LinearPasses",
    "Loss",
    "ReferenceBackend",
    "blas_threads",
    "single_threaded_blas",
    "system_info",
]
