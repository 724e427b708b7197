"""Dual coordinate ascent on the native kernels: the arrays of a run, and the rows in the form that is fastest to visit.

Rows of which most values are 0 are compressed once, whatever they came as: a visit then costs by the values that are
there, with all classes as lanes of a register. Other dense rows are read as they are, class after class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final

import numpy as np
from scipy import sparse

from hinge import _native
from hinge.ops.protocol import LOSS_KINDS, Loss
from hinge.typing import Array, Codes, FloatArray, Rows

MOST_FILLED = 0.4
"""Dense rows with a larger share of values other than 0 stay dense."""

RUN = 64
"""Rows that are visited one after the other where they lie so."""

SQUARED_AT_ONCE = 4096
"""Rows whose squares exist at a time."""

FEATURE_PADDING = 16
"""As in native/include/hinge/kernels.hpp."""

AVERAGE = 8.0
"""Averages forget all but about the last e/8 of e epochs."""

INTERCEPT_PULL = 0.02
"""κ², the square of the intercepts' constant feature, over the mean square of the centred rows."""

INTERCEPT_STRENGTH = 4.0
"""κ²/λ at least, where the loss bends: under a strong penalty the intercepts are most of the problem."""

NO_CLASS = -1e30
"""The score of a lane that has no class."""

LEAST_CURVATURE = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-8}
"""In units of Δ: a row of zeros has none, and where it is far below, α would be a difference lost in rounding."""

LOWEST_LOGARITHM = {np.dtype(np.float32): -87.0, np.dtype(np.float64): -700.0}
"""Of a probability; as in native/kernels/softmax_dual.inl."""

Intercept: TypeAlias = Literal["none", "free", "penalized"]


@dataclass(frozen=True)
class BoundRows:
    """What passes are bound to."""

    X: Rows
    y: Codes
    sample_weight: FloatArray | None
    n_classes: int
    threads: int


@final
class CpuDualAscent:
    """A run in progress; see hinge.ops.protocol.DualAscent.

    Rows are kept in a random order of their own, so that visits may go through memory in runs and still be random.
    """

    def __init__(self, loss: Loss, rows: BoundRows, *, penalty: float, intercept: Intercept, seed: int) -> None:
        self._loss, self._threads, self._n_classes = loss, rows.threads, rows.n_classes
        self._rng = np.random.default_rng(seed)
        N, D = rows.X.shape
        self._dtype = rows.X.dtype
        self._shuffle = self._rng.permutation(N)
        self._X: Any = _visited_form(rows.X, self._shuffle, rows.threads)
        self._runs = self._X is not rows.X
        if not self._runs:
            self._shuffle = np.arange(N)
        self._sparse = sparse.issparse(self._X)
        self._y = rows.y[self._shuffle]
        weight = np.ones(N) if rows.sample_weight is None else rows.sample_weight[self._shuffle].astype(np.float64)
        self._set_steps(weight, penalty, intercept)
        groups, width = lanes(loss, self._n_classes)
        self._alpha: FloatArray = np.zeros((groups, N, width), dtype=self._dtype)
        if loss.kind == "softmax":  # all probability on the true class, in logarithms
            self._alpha.fill(LOWEST_LOGARITHM[self._dtype])
            self._alpha[0, np.arange(N), self._y] = 0
        self._idle = np.zeros((groups, N), dtype=np.uint8)
        self._bias: FloatArray = np.full((groups, width), NO_CLASS, dtype=self._dtype)
        self._bias.reshape(-1)[: self._n_classes] = 0
        self._drift: FloatArray = np.zeros((groups, width), dtype=self._dtype)
        padded = -(-D // FEATURE_PADDING) * FEATURE_PADDING
        shape = (groups, D, width) if self._sparse else (self._n_classes, padded)
        self._packed: FloatArray = np.zeros(shape, dtype=self._dtype)
        self._state = (self._packed, self._bias, self._drift)
        # The last weights serve as well as any average where the loss bends.
        self._mean_state = self._state if loss.has_curvature else tuple(array.copy() for array in self._state)
        self._epoch = 0

    def _set_steps(self, weight: Array, penalty: float, intercept: Intercept) -> None:
        squares = _squared_lengths(self._X)
        self._intercept = intercept
        self._mean: Array | None = None
        self._mean_product: FloatArray | None = None
        self._intercept_step: FloatArray | None = None
        self._pull = 0.0
        if intercept == "free":
            share = weight / weight.sum()
            self._mean = np.asarray(self._X.T @ share.astype(self._dtype), dtype=np.float64)
            product = np.asarray(self._X @ self._mean.astype(self._dtype), dtype=np.float64)
            mean_square = float(self._mean @ self._mean)
            squares = np.maximum(squares - 2 * product + mean_square, 0)
            self._pull = INTERCEPT_PULL * (float(share @ squares) or 1.0)
            if self._loss.has_curvature:
                self._pull = max(self._pull, INTERCEPT_STRENGTH * penalty / float(weight.sum()))
            squares += self._pull
            self._mean_product = product.astype(self._dtype)
            self._intercept_step = (self._pull + mean_square - product).astype(self._dtype)
        elif intercept == "penalized":  # a feature of 1 like any other
            self._mean = np.zeros(self._X.shape[1])
            self._mean_product = np.zeros(len(weight), dtype=self._dtype)
            self._intercept_step = np.ones(len(weight), dtype=self._dtype)
            squares += 1
        rate = weight / penalty
        self._rate = rate.astype(self._dtype)
        least = LEAST_CURVATURE[self._dtype] * self._loss.margin
        self._curvature = np.maximum(rate * squares, least).astype(self._dtype)

    def epoch(self) -> float:
        """Visit the rows; return the share of them that was not at rest."""
        if self._epoch and self._intercept == "free":
            C = self._n_classes
            self._bias.reshape(-1)[:C] += self._pull * self._drift.reshape(-1)[:C]
        kind = LOSS_KINDS.index(self._loss.kind)
        rest: Any = (
            self._y,
            self._order(),
            self._epoch,
            self._mean_product,
            self._intercept_step,
            self._rate,
            self._curvature,
            self._alpha,
            self._packed,
            self._bias,
            self._drift,
            self._idle,
            self._threads,
        )
        self._epoch += 1
        head = (kind, self._loss.squared, self._loss.margin)
        if self._sparse:
            X = self._X
            visits = _native.dual_coordinate_ascent_sparse(*head, X.indptr, X.indices, X.data, *rest)
        else:
            visits = _native.dual_coordinate_ascent_dense(*head, self._X, *rest)
        if not self._loss.has_curvature:
            share = min(1.0, AVERAGE / self._epoch)
            for current, mean in zip(self._state, self._mean_state, strict=True):
                mean += share * (current - mean)
        return float(visits) / max(1, self._idle.size)

    def _order(self) -> Array:
        N = len(self._y)
        if not self._runs:
            return self._rng.permutation(N)
        runs = -(-N // RUN)
        order = (self._rng.permutation(runs)[:, None] * RUN + np.arange(RUN)).ravel()
        return order[order < N]

    @property
    def alpha(self) -> FloatArray:
        """The dual variables, N×C."""
        groups, N, width = self._alpha.shape
        by_row: FloatArray = np.empty((N, groups, width), dtype=self._dtype)
        by_row[self._shuffle] = self._alpha.transpose(1, 0, 2)
        if self._loss.kind == "softmax":
            _native.exp(by_row.ravel(), by_row.ravel())
        return by_row.reshape(N, groups * width)[:, : self._n_classes]

    @property
    def weights(self) -> FloatArray:
        """W, and b as last column if there are intercepts."""
        return self._as_weights(*self._state)

    @property
    def mean_weights(self) -> FloatArray:
        """The weights averaged over the last epochs, about an AVERAGE-th of them."""
        return self._as_weights(*self._mean_state)

    def _as_weights(self, packed: FloatArray, bias: FloatArray, drift: FloatArray) -> FloatArray:
        D, C = self._X.shape[1], self._n_classes
        weights = np.empty((C, D + (self._intercept != "none")), dtype=self._dtype, order="F" if self._sparse else "C")
        for block, rows in self._by_class(packed):
            weights[block, :D] = rows
        if self._mean is not None:
            weights[:, :D] -= np.outer(drift.reshape(-1)[:C], self._mean.astype(self._dtype))
            weights[:, D] = bias.reshape(-1)[:C]
        return weights

    def start_intercepts(self, weights: FloatArray) -> None:
        """Begin with the scores that `weights` give the mean row."""
        if self._mean is not None:
            D = self._X.shape[1]
            self._bias.reshape(-1)[: self._n_classes] = weights[:, :D] @ self._mean + weights[:, D]

    def refresh(self, gradient: FloatArray) -> None:
        """Replace W by what α says, −G/λ: `gradient` is G/λ, with its drift as last column if there are intercepts."""
        D, C = self._X.shape[1], self._n_classes
        for block, rows in self._by_class(self._packed):
            rows[...] = -gradient[block, :D]
        if self._intercept != "none":
            self._drift.reshape(-1)[:C] = -gradient[:, D]
        if self._intercept == "penalized":
            self._bias.reshape(-1)[:C] = -gradient[:, D]

    def _by_class(self, packed: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Yield ranges of classes and their rows of A, classes × D, as views."""
        D, C = self._X.shape[1], self._n_classes
        if not self._sparse:
            yield slice(0, C), packed[:, :D]
            return
        for group, features in enumerate(packed):
            first, last = group * features.shape[1], min(C, (group + 1) * features.shape[1])
            yield slice(first, last), features[:, : last - first].T


def lanes(loss: Loss, n_classes: int) -> tuple[int, int]:
    """Return in how many groups the classes go and how many lanes each has."""
    if n_classes <= 8:
        return 1, 4 if n_classes <= 4 else 8
    chunks = -(-n_classes // 16)
    return (chunks, 16) if loss.kind == "one_vs_rest" else (1, 16 * chunks)


def dual_memory(loss: Loss, X: Rows, n_classes: int) -> int:
    """Return about how many bytes a run takes: α twice, a compressed copy of the rows, weights, values of rows."""
    N, D = X.shape
    groups, width = lanes(loss, n_classes)
    copied = X.nnz if sparse.issparse(X) else MOST_FILLED * N * D
    numbers = 2 * N * groups * width + 5 * D * groups * width + 8 * N + copied
    return int(numbers * X.dtype.itemsize + copied * 8)


def _visited_form(X: Rows, shuffle: Array, threads: int) -> Rows:
    """Return X itself, or a copy whose rows are in shuffled order."""
    if sparse.issparse(X):
        return X[shuffle]
    N, D = X.shape
    counts = np.empty(N, dtype=np.int64)
    _native.count_nonzeros(X, counts, threads)
    counts = counts[shuffle]
    found = int(counts.sum())
    if found > MOST_FILLED * N * D:
        in_place = X.strides[1] == X.itemsize and X.strides[0] >= 0
        return X if in_place else np.ascontiguousarray(X[shuffle])
    kind: type = np.int32 if found < 2**31 else np.int64
    indptr = np.zeros(N + 1, dtype=kind)
    np.cumsum(counts, out=indptr[1:])
    indices: Array = np.empty(found, dtype=kind)
    data = np.empty(found, dtype=X.dtype)
    _native.compress_rows(X, shuffle, indptr, indices, data, threads)
    return sparse.csr_array((data, indices, indptr), shape=X.shape)


def _squared_lengths(X: Rows) -> Array:
    if not sparse.issparse(X):
        lengths: Array = np.einsum("ij,ij->i", X, X, dtype=np.float64)
        return lengths
    squares = np.zeros(X.shape[0])
    for first in range(0, X.shape[0], SQUARED_AT_ONCE):
        starts = X.indptr[first : first + SQUARED_AT_ONCE + 1]
        filled = np.flatnonzero(np.diff(starts))
        if len(filled):
            values = np.square(X.data[starts[0] : starts[-1]], dtype=np.float64)
            squares[first + filled] = np.add.reduceat(values, starts[filled] - starts[0])
    return squares
