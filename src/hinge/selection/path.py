"""One classifier under many penalties: the fits share their rows, their preconditioner and each other's solutions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hinge.errors import UsageError
from hinge.estimators.linear_base import LinearClassifier
from hinge.estimators.validation import checked_rows_and_labels, require_two_classes
from hinge.problems.objective import LinearObjective
from hinge.solvers.path import follow_path
from hinge.solvers.result import ENDED, INTERRUPTED, Callback, SolverResult
from hinge.solvers.shared import Shared
from hinge.typing import Array, FloatArray

DEFAULT_RANGE = (-4, 4)  # as in scikit-learn's LogisticRegressionCV


@dataclass(frozen=True)
class PenaltyPath:
    """A fit for each C, in the order in which they were given.

    `coefs` is n_Cs × rows of `coef_` × n_features, `objectives` and `gaps` are as the classifier's `objective_` and
    `duality_gap_`, `passes` counts readings of all rows and `seconds` what each fit took.
    """

    Cs: Array
    classes: Array
    coefs: FloatArray
    intercepts: FloatArray
    objectives: Array
    gaps: Array
    n_iter: Array
    passes: Array
    seconds: Array


def path(estimator: Any, X: Any, y: Any, Cs: Any = 10, *, sample_weight: Any = None) -> PenaltyPath:
    """Fit a `LinearSVM` or a `SoftmaxRegression` for each of the penalties `Cs`; an int means so many from 1e-4 to 1e4.

    Each fit stops on its own certificate, as a fit alone would. `estimator` itself is not changed.
    """
    if not isinstance(estimator, LinearClassifier):
        raise UsageError(
            f"{type(estimator).__name__} has no path", remedy="Use a LinearSVM or a SoftmaxRegression of hinge."
        )
    if estimator.reg is not None:
        raise UsageError("the estimator has its own penalty, reg", remedy="Leave reg=None: Cs are the penalties.")
    values = checked_penalties(Cs)
    model = like(estimator, C=1.0)
    X, y = checked_rows_and_labels(model, X, y, reset=True)
    model._check_parameters()
    classes = np.unique(y)
    require_two_classes(classes)
    sweep = Sweep(model, values)
    objective = model._bind(X, y, classes, sample_weight)
    results = sweep.solve(objective, seed=model._seed(), callbacks=model._callbacks())
    warn_of_gaps(sweep.short(results, objective), len(values), model.tol)
    published = [_published(model, result.weights, objective) for result in results]
    return PenaltyPath(
        values,
        classes,
        np.stack([coef for coef, _ in published]),
        np.stack([intercept for _, intercept in published]),
        np.array([result.objective for result in results]),
        np.array([result.gap for result in results]),
        np.array([result.n_iter for result in results]),
        np.array([result.history[-1].passes if result.history else 0.0 for result in results]),
        np.array([result.history[-1].seconds if result.history else 0.0 for result in results]),
    )


class Sweep:
    """A classifier, at C = 1, and the penalties that it is to be fitted under."""

    def __init__(self, model: LinearClassifier, Cs: Array) -> None:
        self.model, self.Cs = model, Cs
        self.strong_to_weak, self._place = np.unique(Cs, return_inverse=True)

    def solve(
        self,
        objective: LinearObjective,
        *,
        seed: int,
        near: Sequence[SolverResult] | None = None,
        shared: Shared | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> list[SolverResult]:
        """Return a solution for each C, in their order; `near` are those of the same Cs on much the same rows."""
        around = None if near is None else [near[int(np.argmax(self._place == k))].weights for k in range(self._count)]
        found = list(
            follow_path(
                [objective.scaled_penalty(1 / C) for C in self.strong_to_weak.tolist()],
                self.model._solver,
                max_iter=self.model.max_iter,
                seed=seed,
                tol=self.model.tol,
                near=around,
                shared=shared,
                callbacks=callbacks,
            )
        )
        if found[-1].stopped == INTERRUPTED:
            raise KeyboardInterrupt
        return [found[int(k)] for k in self._place]

    def short(self, results: Sequence[SolverResult], objective: LinearObjective) -> list[SolverResult]:
        """Return the fits that should have reached the tolerance and did not."""
        if not self.model._solver(objective).certifies:
            return []
        return [result for result in results if not result.gap <= self.model.tol and result.stopped != ENDED]

    @property
    def _count(self) -> int:
        return len(self.strong_to_weak)


def like(model: LinearClassifier, **changes: Any) -> LinearClassifier:
    """Return an unfitted classifier with these changes; unlike a clone, it tells the same callbacks."""
    return type(model)(**(model.get_params(deep=False) | changes))


def checked_penalties(Cs: Any) -> Array:
    """Return the penalties as floats; an int stands for so many, evenly in log C from 1e-4 to 1e4."""
    remedy = "Use a number of penalties, or positive numbers such as [0.01, 1, 100]."
    if isinstance(Cs, str) or Cs is None or isinstance(Cs, bool):
        raise UsageError(f"Cs={Cs!r}", remedy=remedy)
    if np.ndim(Cs) == 0:
        if Cs != int(Cs) or Cs < 1:
            raise UsageError(f"Cs={Cs!r}", remedy=remedy)
        return np.logspace(*DEFAULT_RANGE, int(Cs))
    try:
        values = np.asarray(list(Cs), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"Cs={Cs!r}", remedy=remedy) from error
    if values.ndim != 1 or not len(values):
        raise UsageError("there are no penalties in Cs" if not values.size else f"Cs={Cs!r}", remedy=remedy)
    bad = values[~((values > 0) & np.isfinite(values))]
    if len(bad):
        raise UsageError(f"Cs holds {bad[0]:g}, which is not a positive number", remedy=remedy)
    return values


def warn_of_gaps(short: Sequence[SolverResult], n_fits: int, tol: float) -> None:
    """Say once that some fits ended above the tolerance, and how far the worst one did."""
    if short:
        worst = max(short, key=lambda result: result.gap)
        warnings.warn(
            f"{len(short)} of {n_fits} fits ended above tol={tol:g}; the largest relative duality gap is "
            f"{worst.gap:.2g} ({worst.stopped}). Leave out the weakest penalties, pass float64 rows, scale the "
            "columns, or raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=3,
        )


def _published(model: LinearClassifier, weights: FloatArray, objective: LinearObjective) -> tuple[Array, Array]:
    model._publish(weights, objective)
    return model.coef_, model.intercept_
