"""The reference back ends: the compute protocol by plain loops and by NumPy. They are oracles, never fallbacks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from scipy import sparse

from hinge.ops import loops, vectorized
from hinge.ops.dual import ReferenceDualAscent, dual_slopes
from hinge.ops.protocol import LinearPasses, Loss
from hinge.typing import Array, Codes, FloatArray, Rows


@dataclass(frozen=True)
class _ReferencePasses(ABC):
    X: Rows
    y: Codes
    sample_weight: FloatArray
    n_classes: int
    threads: ClassVar[int] = 1

    @property
    def n_values(self) -> int:
        return int(self.X.size)

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def dtype(self) -> type:
        kind: type = self.X.dtype.type
        return kind

    def zero_weights(self, *, intercept: bool) -> FloatArray:
        return np.zeros((self.n_classes, self.n_features + intercept), dtype=self.dtype)

    def _select(self, subset: Array | None) -> tuple[Rows, Codes, FloatArray]:
        if subset is None:
            return self.X, self.y, self.sample_weight
        return self.X[subset], self.y[subset], self.sample_weight[subset]

    def rows(self, subset: Array) -> tuple[Rows, Codes, FloatArray]:
        return self.X[subset], self.y[subset], self.sample_weight[subset]

    def columns(self, subset: Array) -> _ReferencePasses:
        return type(self)(self.X[:, subset], self.y, self.sample_weight, self.n_classes)

    def column_squares(self) -> Array:
        squares = self.X.power(2) if sparse.issparse(self.X) else np.square(self.X)
        return np.asarray(squares.T @ self.sample_weight, dtype=np.float64)

    def loss_and_gradient(
        self,
        loss: Loss,
        weights: FloatArray,
        subset: Array | None = None,
        row_curvature: FloatArray | None = None,
    ) -> tuple[float, FloatArray]:
        X, y, v = self._select(subset)
        if row_curvature is not None:
            bend = vectorized.FACTORS[loss.kind](_scores(X, weights), y, loss).trace() if loss.has_curvature else 0
            row_curvature[slice(None) if subset is None else subset] = v * bend
        return self._sums(loss, weights, X, y, v)

    @abstractmethod
    def _sums(self, loss: Loss, weights: FloatArray, X: Rows, y: Codes, v: FloatArray) -> tuple[float, FloatArray]: ...

    def dual_memory(self, loss: Loss) -> int:
        return 8 * self.n_classes * (2 * self.n_rows + 3 * self.n_features)

    def dual_ascent(
        self, loss: Loss, *, penalty: float, intercept: bool, penalize_intercept: bool, seed: int
    ) -> ReferenceDualAscent:
        dense = self.X.toarray() if sparse.issparse(self.X) else self.X
        return ReferenceDualAscent(
            loss,
            dense,
            self.y,
            self.sample_weight,
            self.n_classes,
            penalty=penalty,
            intercept=intercept,
            penalize_intercept=penalize_intercept,
            seed=seed,
        )

    def loss_and_dual_point(
        self, loss: Loss, weights: FloatArray, alpha: FloatArray
    ) -> tuple[float, float, FloatArray]:
        value = self.loss_and_gradient(loss, weights)[0]
        gain, u = dual_slopes(loss, alpha, self.y)
        return value, float(self.sample_weight @ gain), _gradient(self.X, self.sample_weight[:, None] * u, weights)

    def curvature_product(
        self, loss: Loss, weights: FloatArray, direction: FloatArray, subset: Array | None = None
    ) -> FloatArray:
        X, y, v = self._select(subset)
        scores, direction_scores = _scores(X, weights), _scores(X, direction)
        curved = vectorized.CURVATURES[loss.kind](scores, direction_scores, y, loss)
        return _gradient(X, v[:, None] * curved, weights)


@final
class _VectorizedPasses(_ReferencePasses):
    def _sums(self, loss: Loss, weights: FloatArray, X: Rows, y: Codes, v: FloatArray) -> tuple[float, FloatArray]:
        value, slope = vectorized.LOSSES[loss.kind](_scores(X, weights), y, loss)
        return float(np.sum(v * value, dtype=np.float64)), _gradient(X, v[:, None] * slope, weights)


@final
class _LoopPasses(_ReferencePasses):
    def _sums(self, loss: Loss, weights: FloatArray, X: Rows, y: Codes, v: FloatArray) -> tuple[float, FloatArray]:
        dense = X.toarray() if sparse.issparse(X) else X
        return loops.loss_and_gradient(loss, weights, dense, y.tolist(), v.tolist())


def _scores(X: Rows, weights: FloatArray) -> FloatArray:
    D = X.shape[1]
    scores: FloatArray = X @ weights[:, :D].T
    return scores + weights[:, D] if weights.shape[1] == D + 1 else scores


def _gradient(X: Rows, R: FloatArray, weights: FloatArray) -> FloatArray:
    D = X.shape[1]
    gradient = np.empty_like(weights)
    gradient[:, :D] = (X.T @ R).T
    if weights.shape[1] == D + 1:
        gradient[:, D] = R.sum(axis=0)
    return gradient


@final
@dataclass(frozen=True)
class ReferenceBackend:
    """NumPy, by `loops` or `vectorized`. Loops have no curvature product of their own and use NumPy's."""

    name: ClassVar[str] = "reference"
    form: str = "vectorized"

    def bind(self, X: Rows, y: Codes, sample_weight: FloatArray | None, n_classes: int) -> LinearPasses:
        """Bind rows to this back end."""
        weight = np.ones(X.shape[0], dtype=X.dtype) if sample_weight is None else sample_weight
        passes = _LoopPasses if self.form == "loops" else _VectorizedPasses
        return passes(X, y, weight, n_classes)
