"""The training problem of every linear classifier here:

    P(W, b) = Σᵢ vᵢ·loss(W xᵢ + b, yᵢ) / Σᵢ vᵢ  +  λ₁·‖W‖₁  +  λ₂/2·‖W‖²

with row weights v. The intercepts b, the last column of the weights if there are any, are not penalised unless asked.
In scikit-learn's C and l1_ratio ρ, λ₁ = ρ/(C·Σv) and λ₂ = (1 − ρ)/(C·Σv); in the course's reg, 1/(C·Σv) is 2·reg.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from hinge.errors import UsageError
from hinge.ops import Backend, ColumnPasses, LinearPasses, Loss
from hinge.problems.certificate import ClassMeans, lower_bound, relative_gap, slopes_as_dual_point
from hinge.typing import Array, Codes, FloatArray, Rows


@dataclass(frozen=True)
class Curvature:
    """How sharply P bends: `largest` over all rows, `single_row` for a typical row alone."""

    largest: float
    single_row: float


@dataclass(frozen=True)
class Evaluation:
    """P, its gradient without the L1 penalty's share, and the mean loss and its gradient without any penalty."""

    value: float
    gradient: Array
    mean_loss: float
    loss_gradient: Array


@final
@dataclass(frozen=True)
class LinearObjective:
    """P over bound rows.

    `row_weight` is v, or None if all are 1; `unweighted` are the same rows bound without it, for batches that draw
    heavy rows more often instead.
    """

    passes: LinearPasses
    unweighted: LinearPasses
    row_weight: FloatArray | None
    total_weight: float
    loss: Loss
    l2: float
    intercept: bool
    penalize_intercept: bool = False
    l1: float = 0.0

    @property
    def penalized(self) -> int:
        """Return how many columns of the weights are penalised: all but free intercepts."""
        return self.passes.n_features + (self.intercept and self.penalize_intercept)

    @property
    def free_intercept(self) -> bool:
        """Return whether there are intercepts that cost nothing."""
        return self.intercept and not self.penalize_intercept

    def scaled_penalty(self, factor: float) -> LinearObjective:
        """Return P over the same rows with a penalty that many times as strong."""
        return replace(self, l2=factor * self.l2, l1=factor * self.l1)

    def zero_weights(self) -> FloatArray:
        """Return the start: all weights 0."""
        return self.passes.zero_weights(intercept=self.intercept)

    def value_and_gradient(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return P and ∂P: one pass over the rows."""
        value, gradient = self.passes.loss_and_gradient(self.loss, weights)
        gradient /= self.total_weight
        return value / self.total_weight + self._add_penalty(weights, gradient), gradient

    def evaluate(self, weights: FloatArray, row_curvature: FloatArray | None = None) -> Evaluation:
        """Return P and its parts in float64: one pass over the rows."""
        value, gradient = self.passes.loss_and_gradient(self.loss, weights, row_curvature=row_curvature)
        mean_loss, mean_gradient = value / self.total_weight, gradient.astype(np.float64) / self.total_weight
        if self.loss.kind != "one_vs_rest":  # a loss of score differences does not see what all classes share
            mean_gradient -= mean_gradient.mean(axis=0)
        D = self.penalized
        total = mean_gradient.copy()
        total[:, :D] += self.l2 * weights[:, :D]
        return Evaluation(mean_loss + self.penalty(weights), total, mean_loss, mean_gradient)

    def penalty(self, weights: FloatArray) -> float:
        """Return what the weights cost beyond their losses."""
        penalized = weights[:, : self.penalized]
        squares = 0.5 * self.l2 * float(np.sum(np.square(penalized, dtype=np.float64)))
        return squares + self.l1 * float(np.abs(penalized).sum(dtype=np.float64)) if self.l1 else squares

    def class_means(self) -> ClassMeans:
        """Return each class's share and mean row: one pass.

        At scores of −2 a one-vs-rest hinge of margin 1 has slope −1 at the true class and 0 elsewhere.
        """
        zero = self.passes.zero_weights(intercept=True)
        zero[:, self.passes.n_features] = -2
        gradient = self.passes.loss_and_gradient(Loss("one_vs_rest"), zero)[1].astype(np.float64) / -self.total_weight
        return ClassMeans(gradient[:, self.passes.n_features], gradient[:, : self.passes.n_features])

    def gap(
        self, weights: FloatArray, evaluation: Evaluation, means: ClassMeans | None, *, roughly: bool = False
    ) -> float:
        """Return the certified relative duality gap at `weights`; `means` are needed for free intercepts only."""
        point = slopes_as_dual_point(evaluation.mean_loss, evaluation.loss_gradient, weights, means)
        bound = lower_bound(self.loss, self.l2, point, means, self.l1, roughly=roughly)
        return relative_gap(evaluation.value, bound, self.l1 + self.l2)

    def on_columns(self, subset: Array) -> LinearObjective:
        """Return P with all weights of the other columns held at 0."""
        if not isinstance(self.passes, ColumnPasses):
            raise UsageError("this back end cannot read columns alone", remedy="Use the cpu or reference back end.")
        passes = self.passes.columns(subset)
        return replace(self, passes=passes, unweighted=passes)

    def require_no_l1(self, method: str) -> None:
        """Refuse an L1 penalty, which has no slope at 0, where its solution lies."""
        if self.l1:
            raise UsageError(
                f"{method} cannot take an L1 penalty",
                remedy="Use fit with solver='auto' or solvers.OrthantNewton(), or penalty='l2'.",
            )

    def batch_value_and_gradient(self, weights: FloatArray, rows: Array) -> tuple[float, FloatArray]:
        """Return an unbiased estimate of P and ∂P from rows that were drawn in proportion to their weights."""
        value, gradient = self.unweighted.loss_and_gradient(self.loss, weights, rows)
        gradient /= len(rows)
        return value / len(rows) + self._add_penalty(weights, gradient), gradient

    def curvature(self, *, sweeps: int, seed: int) -> Curvature:
        """Estimate how sharply P bends: the bound on the loss's own curvature times that of M = XᵀX/N.

        M's largest eigenvalue comes from `sweeps` block power iterations, its trace from the first of them (vᵀMv
        averages to it over random v). One pass multiplies M by as many vectors as there are classes, because at W = 0
        the squared one-vs-rest hinge has exactly 2·XᵀX as curvature.
        """
        second_moment = Loss("one_vs_rest", squared=True)
        zero = self.zero_weights()
        start = np.random.default_rng(seed).standard_normal(zero.shape)
        vectors = np.asarray(start, dtype=zero.dtype, order="F" if zero.flags.f_contiguous else "C")
        trace = largest = 0.0
        for sweep in range(sweeps):
            product = self.passes.curvature_product(second_moment, zero, vectors) / (2 * self.total_weight)
            if sweep == 0:
                trace = float((vectors * product).sum(axis=1, dtype=np.float64).mean())
            length = _lengths(product)
            largest = float((length / _lengths(vectors)).max())
            if not 0 < largest < np.inf:
                break
            vectors = (product / np.maximum(length, np.finfo(product.dtype).tiny)[:, None]).astype(zero.dtype)
        bend = score_curvature(self.loss, self.passes.n_classes)
        return Curvature(bend * largest + self.l2, bend * max(trace, largest) + self.l2)

    def _add_penalty(self, weights: FloatArray, gradient: FloatArray) -> float:
        D = self.penalized
        gradient[:, :D] += self.l2 * weights[:, :D]
        return 0.5 * self.l2 * float(np.sum(np.square(weights[:, :D]), dtype=np.float64))


def bind_objective(
    backend: Backend,
    X: Rows,
    y: Codes,
    row_weight: FloatArray | None,
    n_classes: int,
    *,
    loss: Loss,
    l2: float,
    intercept: bool,
    penalize_intercept: bool = False,
    l1: float = 0.0,
) -> LinearObjective:
    """Return P over these rows, computed by `backend`."""
    unweighted = backend.bind(X, y, None, n_classes)
    passes = unweighted if row_weight is None else backend.bind(X, y, row_weight, n_classes)
    total = float(X.shape[0]) if row_weight is None else float(row_weight.sum(dtype=np.float64))
    return LinearObjective(passes, unweighted, row_weight, total, loss, l2, intercept, penalize_intercept, l1)


def _lengths(rows: FloatArray) -> Array:
    """Return the Euclidean length of each row, also where its square would overflow."""
    size = np.maximum(np.abs(rows).max(axis=1), np.finfo(rows.dtype).tiny).astype(np.float64)
    lengths: Array = size * np.linalg.norm(rows / size[:, None], axis=1)
    return lengths


def score_curvature(loss: Loss, n_classes: int) -> float:
    """Return a bound on the largest eigenvalue of ∂²loss/∂scores².

    A plain hinge has none; it is taken as smoothed over its own margin, which gives steps of the right size.
    """
    if loss.kind == "softmax":
        return 0.5
    pairs = {"weston_watkins": float(n_classes), "crammer_singer": 2.0, "one_vs_rest": 1.0}[loss.kind]
    return 2 * pairs if loss.squared else pairs / loss.margin
