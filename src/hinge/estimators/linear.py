"""Linear classifiers: the multiclass support vector machine and softmax regression.

What they share, from rows to weights to predictions, is in hinge.estimators.linear_base.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from hinge.errors import UsageError
from hinge.estimators.calibration import fit_temperature, held_out_parts
from hinge.estimators.linear_base import LinearClassifier, columns_of, deciding_rows
from hinge.estimators.validation import class_codes
from hinge.ops import Loss
from hinge.ops.vectorized import log_softmax, softmax
from hinge.problems.objective import LinearObjective
from hinge.typing import Array, FloatArray, Rows


def _is_calibrated(estimator: Any) -> bool:
    if estimator.calibrate is not None:
        return True
    raise AttributeError("a LinearSVM has probabilities only with calibrate='temperature'")


@final
class LinearSVM(LinearClassifier):
    """Multiclass support vector machine.

    Minimises ½‖W‖² + C·Σ loss, or with `reg` the course's mean loss + reg·ΣW²; C = 1/(2·reg·N). Give one of them.
    An L1 penalty ‖W‖₁ in the place of ½‖W‖² makes most weights exactly 0. Intercepts are not penalised.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the penalty.
    reg : float or None, default=None
        Weight of the penalty against the mean loss, instead of C.
    loss : {"hinge", "squared_hinge"}, default="hinge"
    multi_class : {"weston_watkins", "crammer_singer", "one_vs_rest"}, default="weston_watkins"
        Who pays: every wrong class within the margin of the true one, the strongest of them, or each class on its own
        against all others. With two classes they are the same machine.
    margin : float, default=1.0
        The Δ of max(0, Δ + s_c − s_y).
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        ½‖W‖², ‖W‖₁, or (1 − ρ)/2·‖W‖² + ρ·‖W‖₁ with ρ the `l1_ratio`. With `reg`, 2·reg times that. "l1" and
        "elasticnet" need loss="squared_hinge" and one of the multi_class forms "weston_watkins" and "one_vs_rest".
    l1_ratio : float in [0, 1] or None, default=None
        The ρ of penalty="elasticnet", and of no other.
    fit_intercept : bool or "penalized", default=True
        Intercepts cost nothing unless "penalized", as if rows had a column of ones.
    class_weight : "balanced", dict or None, default=None
    calibrate : "temperature" or None, default=None
        "temperature" adds `predict_proba`: scores of rows held out in five folds, each started at the solution, fit one
        number T such that softmax(scores/T) is likeliest. The most probable class is always the predicted one.
    solver : "auto", a name or a solver object, default="auto"
        Names are "lbfgs", "newton_cg", "orthant_newton", "dual", "interior_point", "sgd" and "gradient_descent"; only
        "orthant_newton" takes an L1 penalty. "auto" picks by penalty, loss, shape and sparsity
        (docs/algorithms/solver_choice.md). An object carries its own options.
    tol : float, default=1e-4
        Relative duality gap at which a fit is done; a fit that stops above it says so in a `ConvergenceWarning`.
    max_iter : int or None, default=None
        Iterations, or epochs of a stochastic solver; None means the solver's own limit.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Threads; None means all that the process may use.
    warm_start : bool, default=False
        Start from the last solution.
    callbacks : callable, sequence of callables or None, default=None
        Called with a `solvers.Iteration` after each iteration; one that returns True ends the fit.
    verbose : int, default=0
        1 prints each iteration's pass, time, objective and gap to stderr.

    Attributes
    ----------
    coef_ : (n_classes, n_features), or (1, n_features) for two classes
    intercept_ : (n_classes,) or (1,)
    classes_ : sorted labels
    objective_ : mean loss + penalty at the solution; with two classes, of the two-column form
    duality_gap_ : certified bound on (objective_ − optimum) / optimum
    converged_ : whether duality_gap_ ≤ tol
    history_ : tuple of `solvers.Iteration`: passes over the rows, seconds, objective, gap
    n_iter_ : iterations done
    temperature_ : T, with calibrate="temperature"
    n_features_in_, feature_names_in_ : as in scikit-learn
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        reg: float | None = None,
        loss: str = "hinge",
        multi_class: str = "weston_watkins",
        margin: float = 1.0,
        penalty: str = "l2",
        l1_ratio: float | None = None,
        fit_intercept: bool | str = True,
        class_weight: Any = None,
        calibrate: str | None = None,
        solver: Any = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.reg = reg
        self.loss = loss
        self.multi_class = multi_class
        self.margin = margin
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.verbose = verbose

    def _loss(self, n_classes: int) -> Loss:
        if self.loss not in ("hinge", "squared_hinge"):
            raise UsageError(f"loss={self.loss!r}", remedy="Use 'hinge' or 'squared_hinge'.")
        if self.multi_class not in ("weston_watkins", "crammer_singer", "one_vs_rest"):
            raise UsageError(
                f"multi_class={self.multi_class!r}",
                remedy="Use 'weston_watkins', 'crammer_singer' or 'one_vs_rest'.",
            )
        kind: Any = "weston_watkins" if n_classes == 2 else self.multi_class
        return Loss(kind, squared=self.loss == "squared_hinge", margin=self.margin)

    @available_if(_is_calibrated)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return one probability a class; each row sums to 1 and its largest is the predicted class."""
        check_is_fitted(self, "temperature_")
        return softmax(columns_of(self.decision_function(X)) / self.temperature_)

    @available_if(_is_calibrated)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of `predict_proba`, exact where probabilities vanish."""
        check_is_fitted(self, "temperature_")
        return log_softmax(columns_of(self.decision_function(X)) / self.temperature_)

    def _calibrate(self, X: Rows, y: Array, objective: LinearObjective, weights: FloatArray) -> None:
        if self.calibrate is None:
            return
        if self.calibrate != "temperature":
            raise UsageError(f"calibrate={self.calibrate!r}", remedy="Use 'temperature' or None.")
        codes, weight = class_codes(y, self.classes_), objective.row_weight
        scores = np.empty((len(codes), len(deciding_rows(weights))), dtype=weights.dtype)
        seed = self._seed()
        held_out = held_out_parts(codes, weight, seed)
        for held in held_out:
            kept = np.ones(len(codes), dtype=X.dtype) if weight is None else weight.copy()
            kept[held] = 0
            part = self._weighted_objective(X, codes, kept)
            solver = self._solver(part)
            limit = solver.default_iterations if self.max_iter is None else self.max_iter
            rows = deciding_rows(solver.minimize(part, max_iter=limit, seed=seed, tol=self.tol, start=weights).weights)
            D = X.shape[1]
            scores[held] = X[held] @ rows[:, :D].T + (rows[:, D] if part.intercept else 0)
        seen = np.concatenate(held_out)
        out_of_fold = columns_of(scores[seen, 0] if scores.shape[1] == 1 else scores[seen])
        self.temperature_ = fit_temperature(out_of_fold, codes[seen], None if weight is None else weight[seen])


@final
class SoftmaxRegression(LinearClassifier):
    """Multinomial logistic regression.

    Minimises ½‖W‖² + C·Σ loss with loss = log Σ_c exp(s_c) − s_y, or with `reg` the course's mean loss + reg·ΣW²; with
    an L1 penalty (`penalty`, `l1_ratio`) most weights are exactly 0.
    The parameters and attributes are those of `LinearSVM`, without its loss, margin and multi_class; two classes share
    one weight vector and the logistic loss.
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        reg: float | None = None,
        penalty: str = "l2",
        l1_ratio: float | None = None,
        fit_intercept: bool | str = True,
        class_weight: Any = None,
        solver: Any = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.reg = reg
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.verbose = verbose

    def _loss(self, n_classes: int) -> Loss:
        return Loss("softmax")

    def predict_proba(self, X: Any) -> FloatArray:
        """Return one probability a class; each row sums to 1 and its largest is the predicted class."""
        return softmax(columns_of(self.decision_function(X)))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of `predict_proba`, exact where probabilities vanish."""
        return log_softmax(columns_of(self.decision_function(X)))
