"""
hinge's hot loops. Everything here checks types and shapes and nothing else; use hinge.ops.
"""

from typing import Annotated, Any, overload

import numpy
from numpy.typing import NDArray


@overload
def exp(x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def exp(x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write the exponential of x to out."""

@overload
def linear_pass_dense(kind: int, squared: bool, margin: float, X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, subset: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, weights: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], direction: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], threads: int, row_curvature: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None = None) -> float: ...

@overload
def linear_pass_dense(kind: int, squared: bool, margin: float, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, subset: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, weights: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], direction: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int, row_curvature: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> float:
    """
    Sum the weighted losses and their gradient, or with a direction the curvature product, over the rows into out.
    """

@overload
def linear_pass_sparse(kind: int, squared: bool, margin: float, indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_features: int, y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, subset: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, weights: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='F', device='cpu', writable=False)], direction: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='F', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='F', device='cpu')], threads: int, row_curvature: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None = None) -> float: ...

@overload
def linear_pass_sparse(kind: int, squared: bool, margin: float, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_features: int, y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, subset: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, weights: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='F', device='cpu', writable=False)], direction: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='F', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='F', device='cpu')], threads: int, row_curvature: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None = None) -> float: ...

@overload
def linear_pass_sparse(kind: int, squared: bool, margin: float, indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_features: int, y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, subset: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, weights: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F', device='cpu', writable=False)], direction: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F', device='cpu')], threads: int, row_curvature: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> float: ...

@overload
def linear_pass_sparse(kind: int, squared: bool, margin: float, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_features: int, y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, subset: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, weights: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F', device='cpu', writable=False)], direction: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F', device='cpu')], threads: int, row_curvature: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> float:
    """
    Sum the weighted losses and their gradient, or with a direction the curvature product, over the rows into out.
    """

def system_info() -> dict[str, Any]:
    """
    Return the instruction set in use, those supported, the compiler and BLAS's integer width.
    """
