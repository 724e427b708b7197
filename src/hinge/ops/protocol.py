"""The compute protocol: what a back end must be able to do with rows, so that solvers never touch data themselves.

Notation: N rows of D features; C ≥ 2 classes; weights are C×D, or C×(D + 1) with the intercepts as last column.
All results are sums over rows, never means: sums over row blocks, files or machines add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

from hinge.errors import UsageError
from hinge.typing import Array, Codes, FloatArray, Rows

LossKind: TypeAlias = Literal["softmax", "weston_watkins", "crammer_singer", "one_vs_rest"]
LOSS_KINDS: tuple[LossKind, ...] = ("softmax", "weston_watkins", "crammer_singer", "one_vs_rest")


@dataclass(frozen=True)
class Loss:
    """A multiclass loss as data. `margin` is Δ; `squared` squares the hinge; softmax has neither."""

    kind: LossKind
    squared: bool = False
    margin: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in LOSS_KINDS:
            raise UsageError(f"unknown loss {self.kind!r}", remedy=f"Use one of {', '.join(LOSS_KINDS)}.")
        if not 0 < self.margin < float("inf"):
            raise UsageError(f"margin={self.margin!r} is not a positive number", remedy="Use for example margin=1.0.")

    @property
    def has_curvature(self) -> bool:
        """Return whether the loss bends: a plain hinge is made of straight pieces."""
        return self.kind == "softmax" or self.squared

    @property
    def is_smooth(self) -> bool:
        """Return whether the slope is continuous: Crammer–Singer's jumps where two rivals tie, squared or not."""
        return self.has_curvature and self.kind != "crammer_singer"


class LinearPasses(Protocol):
    """Rows, labels and row weights bound to one back end."""

    @property
    def n_rows(self) -> int:
        """N."""
        ...

    @property
    def n_features(self) -> int:
        """D."""
        ...

    @property
    def n_classes(self) -> int:
        """C."""
        ...

    @property
    def n_values(self) -> int:
        """How many values of X are stored: N·D, or the non-zeros."""
        ...

    @property
    def threads(self) -> int:
        """How many threads may be used."""
        ...

    @property
    def dtype(self) -> type:
        """The floating type of rows, weights and gradients."""
        ...

    def zero_weights(self, *, intercept: bool) -> FloatArray:
        """Return C×(D + intercept) zeros in the memory order that this back end reads fastest."""
        ...

    def loss_and_gradient(
        self,
        loss: Loss,
        weights: FloatArray,
        subset: Array | None = None,
        row_curvature: FloatArray | None = None,
    ) -> tuple[float, FloatArray]:
        """Return Σ vᵢ·loss(W xᵢ, yᵢ) over the rows, or over those that `subset` names, and its gradient in W.

        `row_curvature`, if given, receives vᵢ·trace(∂²lossᵢ/∂s²) of each of these rows: how much a row bends the sum.
        """
        ...

    def rows(self, subset: Array) -> tuple[Rows, Codes, FloatArray]:
        """Return these rows, their labels and their weights, as they are stored."""
        ...

    def curvature_product(
        self, loss: Loss, weights: FloatArray, direction: FloatArray, subset: Array | None = None
    ) -> FloatArray:
        """Return the (generalised) Hessian of that sum times `direction`."""
        ...


@runtime_checkable
class ColumnPasses(LinearPasses, Protocol):
    """Rows of which a back end can read some columns alone."""

    def columns(self, subset: Array) -> ColumnPasses:
        """Return the same rows, labels and row weights with these columns only, copied."""
        ...

    def column_squares(self) -> Array:
        """Return Σ vᵢ xᵢⱼ² for each column j, in float64."""
        ...


class DualAscent(Protocol):
    """A run of dual coordinate ascent in progress: its dual variables, and the weights that belong to them."""

    def epoch(self) -> float:
        """Visit the rows in random order, each time solving the row's dual problem with all others held fixed.

        Rows that keep being found at their best may be left at rest for a while; return the share that was visited.
        """
        ...

    @property
    def alpha(self) -> FloatArray:
        """N×C dual variables ≥ 0; what they stand for is in hinge.ops.dual."""
        ...

    @property
    def weights(self) -> FloatArray:
        """The weights that the dual variables give, up to rounding; the intercepts are those reached."""
        ...

    @property
    def mean_weights(self) -> FloatArray:
        """The weights averaged over the last epochs."""
        ...

    def start_intercepts(self, weights: FloatArray) -> None:
        """Begin with the scores that these weights give the mean row."""
        ...

    def refresh(self, gradient: FloatArray) -> None:
        """Replace the weights by −`gradient`, which is Σ vᵢ uᵢ xᵢᵀ / penalty of `alpha`, summed anew."""
        ...


@runtime_checkable
class DualPasses(LinearPasses, Protocol):
    """Rows whose dual variables a back end can keep."""

    def dual_memory(self, loss: Loss) -> int:
        """Return about how many bytes a run of dual coordinate ascent takes."""
        ...

    def dual_ascent(
        self, loss: Loss, *, penalty: float, intercept: bool, penalize_intercept: bool, seed: int
    ) -> DualAscent:
        """Start a run at α = 0 for Σ vᵢ·loss(W xᵢ + b, yᵢ) + penalty/2·‖W‖², or ‖(W, b)‖²."""
        ...

    def loss_and_dual_point(
        self, loss: Loss, weights: FloatArray, alpha: FloatArray
    ) -> tuple[float, float, FloatArray]:
        """Return Σ vᵢ·loss(W xᵢ, yᵢ) at the weights, and of the dual point u(α) Σ vᵢ·(−loss*(uᵢ)) and Σ vᵢ uᵢ xᵢᵀ."""
        ...


class Backend(Protocol):
    """A way to compute."""

    name: ClassVar[str]

    def bind(self, X: Rows, y: Codes, sample_weight: FloatArray | None, n_classes: int) -> LinearPasses:
        """Return passes over these rows. Labels are codes below `n_classes`; all types match X's."""
        ...
