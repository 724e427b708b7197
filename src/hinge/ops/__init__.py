"""The compute protocol and its back ends."""

from hinge.ops.cpu import CpuBackend, system_info
from hinge.ops.protocol import Backend, LinearPasses, Loss
from hinge.ops.reference import ReferenceBackend

__all__ = ["Backend", "CpuBackend", "LinearPasses", "Loss", "ReferenceBackend", "system_info"]
