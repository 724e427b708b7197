"""The native back end: the fused linear pass over dense or sparse rows on the processor's own vector units."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, final

import numpy as np
from scipy import sparse

from hinge import _native
from hinge.errors import DataError, UsageError
from hinge.ops.cpu_dual import BoundRows, CpuDualAscent, Intercept, dual_memory
from hinge.ops.protocol import LOSS_KINDS, LinearPasses, Loss
from hinge.typing import Array, Codes, FloatArray, Rows

# As in native/include/hinge/linear_pass.hpp: from here on the native code calls BLAS.
MOST_TILED_COLUMNS = 32
BLOCK_ROWS = 1024


@final
class CpuPasses:
    """Rows bound to the native kernels. Indices and labels are checked here, once, because the kernels trust them."""

    def __init__(self, X: Rows, y: Codes, sample_weight: FloatArray | None, n_classes: int, threads: int) -> None:
        self.n_rows, self.n_features = (int(size) for size in X.shape)
        self.n_classes = n_classes
        self.dtype: type = X.dtype.type
        self.threads = threads
        self._y = np.ascontiguousarray(y, dtype=np.int32)
        self._sample_weight = None if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=self.dtype)
        if self.n_rows and not 0 <= int(self._y.min()) <= int(self._y.max()) < n_classes:
            raise DataError(f"a label code is not below {n_classes}", where="y")
        self._sparse = sparse.issparse(X)
        self._X: Any = _checked_csr(X) if self._sparse else X
        self.n_values = len(self._X.data) if self._sparse else self.n_rows * self.n_features

    def zero_weights(self, *, intercept: bool) -> FloatArray:
        """Return C×(D + intercept) zeros: class-major for dense rows, feature-major for sparse ones."""
        shape = (self.n_classes, self.n_features + intercept)
        return np.zeros(shape, dtype=self.dtype, order="F" if self._sparse else "C")

    def loss_and_gradient(
        self,
        loss: Loss,
        weights: FloatArray,
        subset: Array | None = None,
        row_curvature: FloatArray | None = None,
    ) -> tuple[float, FloatArray]:
        """Return Σ vᵢ·loss(W xᵢ, yᵢ) and its gradient, reading the rows once."""
        return self._run(loss, weights, None, subset, row_curvature)

    def curvature_product(
        self, loss: Loss, weights: FloatArray, direction: FloatArray, subset: Array | None = None
    ) -> FloatArray:
        """Return the (generalised) Hessian of that sum times `direction`, reading the rows once."""
        if not loss.has_curvature:
            raise UsageError("a plain hinge has no curvature", remedy="Use its squared form, or softmax.")
        return self._run(loss, weights, direction, subset)[1]

    def loss_and_dual_point(
        self, loss: Loss, weights: FloatArray, alpha: FloatArray
    ) -> tuple[float, float, FloatArray]:
        """Return Σ vᵢ·loss(W xᵢ, yᵢ), Σ vᵢ·(−loss*(uᵢ)) and Σ vᵢ uᵢ xᵢᵀ, reading the rows once."""
        gain = np.zeros(1)
        value, gradient = self._run(loss, weights, None, None, None, alpha, gain)
        return value, float(gain[0]), gradient

    def dual_memory(self, loss: Loss) -> int:
        """Return about how many bytes a run of dual coordinate ascent takes."""
        return dual_memory(loss, self._X, self.n_classes)

    def dual_ascent(
        self, loss: Loss, *, penalty: float, intercept: bool, penalize_intercept: bool, seed: int
    ) -> CpuDualAscent:
        """Start a run of dual coordinate ascent at α = 0."""
        rows = BoundRows(self._X, self._y, self._sample_weight, self.n_classes, self.threads)
        kind: Intercept = "none" if not intercept else "penalized" if penalize_intercept else "free"
        return CpuDualAscent(loss, rows, penalty=penalty, intercept=kind, seed=seed)

    def rows(self, subset: Array) -> tuple[Rows, Codes, FloatArray]:
        """Return these rows, their labels and their weights."""
        weight = np.ones(len(subset), self.dtype) if self._sample_weight is None else self._sample_weight[subset]
        return self._X[subset], self._y[subset], weight

    def columns(self, subset: Array) -> CpuPasses:
        """Return the same rows with these columns only."""
        X = self._X[:, subset] if self._sparse else np.take(self._X, subset, axis=1)
        return CpuPasses(X, self._y, self._sample_weight, self.n_classes, self.threads)

    def column_squares(self) -> Array:
        """Return Σ vᵢ xᵢⱼ² for each column."""
        return column_squares(self._X, self._sample_weight)

    def _run(
        self,
        loss: Loss,
        weights: FloatArray,
        direction: FloatArray | None,
        subset: Array | None,
        row_curvature: FloatArray | None = None,
        alpha: FloatArray | None = None,
        gain: FloatArray | None = None,
    ) -> tuple[float, FloatArray]:
        order: Any = "F" if self._sparse else "C"
        weights = np.asarray(weights, dtype=self.dtype, order=order)
        if direction is not None:
            direction = np.asarray(direction, dtype=self.dtype, order=order)
        if subset is not None:
            subset = np.ascontiguousarray(subset, dtype=np.int64)
        out: FloatArray = np.empty(weights.shape, dtype=self.dtype, order=order)
        kind = LOSS_KINDS.index(loss.kind)
        rest: Any = (
            self._y,
            self._sample_weight,
            subset,
            weights,
            direction,
            out,
            self.threads,
            row_curvature,
            alpha,
            gain,
        )
        if self._sparse:
            X = self._X
            value = _native.linear_pass_sparse(
                kind, loss.squared, loss.margin, X.indptr, X.indices, X.data, self.n_features, *rest
            )
        else:
            columns = self.n_classes * (1 if direction is None else 2)
            with single_threaded_blas() if columns > MOST_TILED_COLUMNS else nullcontext():
                value = _native.linear_pass_dense(kind, loss.squared, loss.margin, self._X, *rest)
        return value, out


def column_squares(X: Rows, weight: FloatArray | None) -> Array:
    """Return Σ vᵢ xᵢⱼ² for each column in float64; dense rows are read a block at a time."""
    if sparse.issparse(X):
        values = np.square(X.data, dtype=np.float64)
        if weight is not None:
            values *= np.repeat(weight, np.diff(X.indptr))
        return np.bincount(X.indices, weights=values, minlength=X.shape[1])
    total = np.zeros(X.shape[1])
    for start in range(0, X.shape[0], BLOCK_ROWS):
        block = X[start : start + BLOCK_ROWS].astype(np.float64)
        part = weight[start : start + BLOCK_ROWS] if weight is not None else np.ones(len(block))
        total += np.einsum("i,ij,ij->j", part, block, block)
    return total


def _checked_csr(X: Rows) -> Rows:
    """Return X as CSR whose index arrays share one type and stay inside the matrix."""
    X = X.tocsr()
    if X.indices.dtype != X.indptr.dtype or X.indices.dtype not in (np.int32, np.int64):
        wide = type(X)(X.shape, dtype=X.dtype)
        wide.data, wide.indices, wide.indptr = X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)
        X = wide
    starts, indices = X.indptr, X.indices
    monotone = starts[0] == 0 and starts[-1] <= len(indices) and bool(np.all(starts[1:] >= starts[:-1]))
    if not monotone or len(indices) != len(X.data):
        raise DataError("the sparse matrix's row pointers are damaged", where="X", remedy="Rebuild the matrix.")
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < X.shape[1]:
        raise DataError(
            f"a column index lies outside the {X.shape[1]} columns", where="X", remedy="Rebuild the matrix."
        )
    return X


@lru_cache(maxsize=1)
def _blas_controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def blas_threads(count: int) -> AbstractContextManager[object]:
    """Keep BLAS to so many threads."""
    manager: AbstractContextManager[object] = _blas_controller().limit(limits=count, user_api="blas")
    return manager


def single_threaded_blas() -> AbstractContextManager[object]:
    """Keep BLAS to one thread while our own threads call it, or wait for cores that its idle threads would burn."""
    return blas_threads(1)


@final
@dataclass(frozen=True)
class CpuBackend:
    """Native kernels with a number of threads."""

    name: ClassVar[str] = "cpu"
    threads: int = 1

    def bind(self, X: Rows, y: Codes, sample_weight: FloatArray | None, n_classes: int) -> LinearPasses:
        """Bind rows to this back end."""
        return CpuPasses(X, y, sample_weight, n_classes, self.threads)


def system_info() -> dict[str, Any]:
    """Return the instruction set in use, those supported, the compiler and BLAS's integer width."""
    return dict(_native.system_info())
