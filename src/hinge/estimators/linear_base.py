"""What the linear classifiers share: from validated rows to an objective, and from weights to predictions.

They minimise  mean loss + λ₁·‖W‖₁ + λ₂/2·‖W‖²  over rows (hinge.problems.objective) with a solver of hinge.solvers.

Two classes share one weight vector w, as in scikit-learn: the objective is ½‖w‖² + C·Σ φ(1 − t·(w·x + b)) with t = ±1,
or the logistic loss. It is solved as two columns (−w/2, w/2) at twice λ₂, which is the same problem: losses of score
differences see only w, and ‖(−w/2, w/2)‖² is half of ‖w‖², while ‖(−w/2, w/2)‖₁ is all of ‖w‖₁. All multiclass hinges
agree there.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from hinge.config import resolve_threads
from hinge.errors import DataError, UsageError
from hinge.estimators.validation import (
    checked_rows,
    checked_rows_and_labels,
    checked_weights,
    class_codes,
    require_two_classes,
    require_weight_in_each_class,
)
from hinge.ops import CpuBackend, Loss
from hinge.problems.objective import LinearObjective, bind_objective
from hinge.solvers.choice import SOLVER_NAMES, named_solver
from hinge.solvers.result import ENDED, INTERRUPTED, STUCK, Callback, Iteration, Solver, SolverResult, print_iteration
from hinge.solvers.sgd import SGD, State, run_epoch, start_state
from hinge.typing import Array, Codes, FloatArray, Rows


def _takes_stochastic_steps(estimator: Any) -> bool:
    if estimator.penalty == "l1" or (estimator.penalty == "elasticnet" and estimator.l1_ratio):
        raise AttributeError(
            f"partial_fit takes stochastic steps, which cannot take an L1 penalty as in penalty={estimator.penalty!r}; "
            "use fit, or penalty='l2'"
        )
    if isinstance(estimator.solver, SGD) or estimator.solver in ("auto", "sgd"):
        return True
    raise AttributeError(
        f"partial_fit takes stochastic steps and solver={estimator.solver!r} does not; "
        "use solver='auto' or hinge.solvers.SGD()"
    )


class LinearScores(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier by scores W x + b."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def decision_function(self, X: Any) -> FloatArray:
        """Return scores, one column a class; for two classes a single score, positive for the second."""
        check_is_fitted(self)
        X = checked_rows(self, X, reset=False)
        scores: FloatArray = X @ self.coef_.T + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """Return the class of the highest score; the first of equal ones."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: Array = self.classes_[codes]
        return labels


class LinearClassifier(LinearScores):
    """A classifier by scores W x + b and how it is trained; final classes name their loss and what else they can do."""

    @abstractmethod
    def _loss(self, n_classes: int) -> Loss: ...

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to rows X and labels y; a weight of 2 counts a row twice."""
        X, y = checked_rows_and_labels(self, X, y, reset=True)
        self._check_parameters()
        classes = np.unique(y)
        require_two_classes(classes)
        start = self._warm_weights(classes, X.shape[1]) if self.warm_start else None
        objective = self._bind(X, y, classes, sample_weight)
        solver = self._solver(objective)
        limit = solver.default_iterations if self.max_iter is None else self.max_iter
        result = solver.minimize(
            objective,
            max_iter=limit,
            seed=self._seed(),
            tol=self.tol,
            start=start,
            callbacks=self._callbacks(),
        )
        self._publish(result.weights, objective)
        self._seen_weight = objective.total_weight
        self.objective_ = result.objective
        self.duality_gap_ = result.gap
        self.converged_ = bool(result.gap <= self.tol)
        self.n_iter_ = result.n_iter
        self.history_ = result.history
        self._stream: State | None = None
        self._calibrate(X, y, objective, result.weights)
        if result.stopped == INTERRUPTED:
            raise KeyboardInterrupt
        if solver.certifies and not self.converged_ and result.stopped != ENDED:
            _warn_of_the_gap(result, self.tol)
        return self

    @available_if(_takes_stochastic_steps)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Take one epoch of steps over these rows; `classes` names all classes, at an unfitted model's first call.

        The penalty is that of all rows seen so far: λ = 1/(C·their total weight), or 2·reg. `objective_` is the mean
        over the batches of this call.
        """
        begun = hasattr(self, "classes_")
        X, y = checked_rows_and_labels(self, X, y, reset=not begun)
        self._check_parameters()
        self._name_classes(classes, begun)
        objective = self._objective(X, y, sample_weight, seen=self._seen_weight if begun else 0.0)
        options = self.solver if isinstance(self.solver, SGD) else SGD(average=True)
        state: State | None = getattr(self, "_stream", None)
        if state is None:
            start = self._warm_weights(self.classes_, X.shape[1])
            state = start_state(options, objective, start, self._seed())
        state, value = run_epoch(options, objective, state, epochs=None)
        self._stream = state
        self._publish(state.solution(options), objective)
        self._seen_weight = objective.total_weight + (self._seen_weight if begun else 0.0)
        self.objective_ = value
        self.n_iter_ = (self.n_iter_ if begun else 0) + 1
        self.history_ = (*(self.history_ if begun else ()), Iteration(self.n_iter_, state.passes, 0.0, value))
        return self

    def _name_classes(self, classes: Any, begun: bool) -> None:
        named = None if classes is None else np.unique(np.asarray(classes))
        if not begun:
            if named is None:
                raise UsageError(
                    "classes must be passed on the first call to partial_fit",
                    remedy="Pass all labels that will ever occur, for example classes=np.unique(y).",
                )
            require_two_classes(named)
            self.classes_ = named
        elif named is not None and not np.array_equal(named, self.classes_):
            raise UsageError(
                f"classes={classes!r} differs from the {self.classes_!r} known so far",
                remedy="Leave it out after the first call to partial_fit.",
            )

    def _bind(self, X: Rows, y: Array, classes: Array, sample_weight: Any) -> LinearObjective:
        """Return what a fit to these checked rows minimises."""
        self.classes_ = classes
        objective = self._objective(X, y, sample_weight)
        require_weight_in_each_class(y, classes, objective.row_weight)
        return objective

    def _objective(self, X: Rows, y: Array, sample_weight: Any, seen: float = 0.0) -> LinearObjective:
        codes = class_codes(y, self.classes_)
        weight = checked_weights(sample_weight, X)
        if self.class_weight is not None:
            per_class = self._class_weights(codes, weight)
            weight = per_class[codes].astype(X.dtype) * (1 if weight is None else weight)
        _require_representable(X)
        return self._weighted_objective(X, codes, weight, seen)

    def _weighted_objective(
        self, X: Rows, codes: Codes, weight: FloatArray | None, seen: float = 0.0
    ) -> LinearObjective:
        n_classes = len(self.classes_)
        total = seen + (float(X.shape[0]) if weight is None else float(weight.sum(dtype=np.float64)))
        loss = self._loss(n_classes)
        share = self._l1_share(loss)
        penalty = 2 * self.reg if self.reg is not None else 1 / (self.C * total)
        l2 = (1 - share) * penalty
        return bind_objective(
            CpuBackend(resolve_threads(self.n_jobs)),
            X,
            codes,
            weight,
            n_classes,
            loss=loss,
            l1=share * penalty,
            l2=2 * l2 if n_classes == 2 else l2,
            intercept=bool(self.fit_intercept),
            penalize_intercept=self.fit_intercept == "penalized",
        )

    def _l1_share(self, loss: Loss) -> float:
        """Return ρ, the share of the L1 penalty; only smooth losses take one."""
        if self.penalty not in ("l2", "l1", "elasticnet"):
            raise UsageError(f"penalty={self.penalty!r}", remedy="Use 'l2', 'l1' or 'elasticnet'.")
        ratio: Any = self.l1_ratio
        if self.penalty != "elasticnet":
            if ratio is not None:
                raise UsageError(
                    f"l1_ratio={ratio!r} with penalty={self.penalty!r}",
                    remedy="Leave it out, or use penalty='elasticnet'.",
                )
            ratio = float(self.penalty == "l1")
        elif not isinstance(ratio, int | float | np.number) or not 0 <= ratio <= 1:
            raise UsageError(
                f"l1_ratio={ratio!r} with penalty='elasticnet'",
                remedy="Use a number from 0 (all L2) to 1 (all L1), for example l1_ratio=0.5.",
            )
        if ratio > 0 and not loss.is_smooth:
            form = "squared " if loss.squared else ""
            raise UsageError(
                f"penalty={self.penalty!r} with the {form}hinge of {loss.kind}, whose slope jumps",
                remedy="Use loss='squared_hinge' with multi_class='weston_watkins' or 'one_vs_rest', "
                "SoftmaxRegression, or penalty='l2'.",
            )
        return float(ratio)

    def _class_weights(self, codes: Codes, sample_weight: FloatArray | None) -> Array:
        """Return a factor a class; "balanced" gives all classes that occur the same total weight."""
        if isinstance(self.class_weight, dict):
            unknown = [label for label in self.class_weight if label not in self.classes_]
            if unknown:
                raise UsageError(
                    f"class_weight names {unknown[0]!r}, which is not a class",
                    remedy=f"The classes are {', '.join(map(repr, self.classes_.tolist()[:20]))}.",
                )
        elif self.class_weight != "balanced":
            raise UsageError(
                f"class_weight={self.class_weight!r}",
                remedy="Use 'balanced', a dict of label: weight, or None.",
            )
        if isinstance(self.class_weight, dict):
            return np.array([self.class_weight.get(label, 1.0) for label in self.classes_.tolist()])
        held = np.bincount(codes, weights=sample_weight, minlength=len(self.classes_))
        present = held > 0
        weights: Array = np.where(present, held.sum() / (present.sum() * np.where(present, held, 1.0)), 0.0)
        return weights

    def _calibrate(self, X: Rows, y: Array, objective: LinearObjective, weights: FloatArray) -> None:
        """Learn what probabilities need beyond the scores; nothing, unless a classifier says otherwise."""

    def _publish(self, weights: FloatArray, objective: LinearObjective) -> None:
        """Set `coef_` and `intercept_`; two columns of opposite sign become the one difference that decides."""
        rows = deciding_rows(weights)
        D = objective.passes.n_features
        self.coef_ = np.ascontiguousarray(rows[:, :D])
        self.intercept_ = rows[:, D].copy() if objective.intercept else np.zeros(len(rows), dtype=rows.dtype)

    def _warm_weights(self, classes: Array, n_features: int) -> FloatArray | None:
        if not hasattr(self, "coef_") or not np.array_equal(classes, self.classes_):
            return None
        if self.coef_.shape[1] != n_features:
            return None
        columns = [self.coef_, self.intercept_[:, None]] if self.fit_intercept else [self.coef_]
        rows: FloatArray = np.hstack(columns)
        return np.concatenate([-rows / 2, rows / 2]) if len(classes) == 2 else rows

    def _solver(self, objective: LinearObjective) -> Solver:
        if isinstance(self.solver, str):
            return named_solver(self.solver, objective)
        if not hasattr(self.solver, "minimize"):
            raise UsageError(
                f"solver={self.solver!r} is not a solver",
                remedy=f"Use one of {', '.join(map(repr, SOLVER_NAMES))}, or an object such as hinge.solvers.SGD().",
            )
        solver: Solver = self.solver
        return solver

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _callbacks(self) -> Sequence[Callback]:
        given = () if self.callbacks is None else self.callbacks
        told = (given,) if callable(given) else tuple(given)
        return (*told, print_iteration) if self.verbose else told

    def _check_parameters(self) -> None:
        if self.reg is None:
            _require_positive("C", self.C)
        else:
            if self.C != 1.0:
                raise UsageError("both C and reg are given", remedy="Give one: C = 1/(2·reg·N).")
            _require_positive("reg", self.reg)
        if self.max_iter is not None and (self.max_iter != int(self.max_iter) or self.max_iter < 1):
            raise UsageError(
                f"max_iter={self.max_iter!r}", remedy="Use a whole number of iterations, at least 1, or None."
            )
        if isinstance(self.tol, str) or not 0 <= self.tol < np.inf:
            raise UsageError(f"tol={self.tol!r}", remedy="Use a relative duality gap such as 1e-4.")
        if self.fit_intercept not in (True, False, "penalized"):
            raise UsageError(f"fit_intercept={self.fit_intercept!r}", remedy="Use True, False or 'penalized'.")


def _warn_of_the_gap(result: SolverResult, tol: float) -> None:
    remedy = (
        "Pass float64 rows, scale the columns, or raise tol or reg."
        if result.stopped == STUCK
        else "Raise max_iter, scale the columns, or raise tol."
    )
    warnings.warn(
        f"The fit ended after {result.n_iter} iterations ({result.stopped}) with a relative duality gap of "
        f"{result.gap:.2g}, above tol={tol:g}. {remedy}",
        ConvergenceWarning,
        stacklevel=3,
    )


def deciding_rows(weights: FloatArray) -> FloatArray:
    """Return the weights as they are published: two columns of opposite sign become their difference."""
    rows: FloatArray = weights[1:] - weights[:1] if len(weights) == 2 else weights
    return rows


def columns_of(scores: FloatArray) -> FloatArray:
    """Return scores with one column a class, also where two classes share one."""
    return np.stack([np.zeros_like(scores), scores], axis=1) if scores.ndim == 1 else scores


def _require_positive(name: str, value: Any) -> None:
    if isinstance(value, str) or not 0 < value < np.inf:
        raise UsageError(f"{name}={value!r} is not a positive number", remedy=f"Use for example {name}=1.0.")


def _require_representable(X: Rows) -> None:
    """Squares of the values must stay finite in the type that X is computed in."""
    values = X.data if sparse.issparse(X) else X
    if not values.size:
        return
    largest = max(abs(float(values.max())), abs(float(values.min())))
    limit = float(np.finfo(X.dtype).max) ** 0.5 / max(1, X.shape[1])
    if largest > limit:
        raise DataError(
            f"values reach {largest:.3g}; their squares overflow {X.dtype}",
            where="X",
            remedy="Scale the columns first, for example by sklearn.preprocessing.StandardScaler or MaxAbsScaler.",
        )
