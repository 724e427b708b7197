"""The penalty chosen by cross-validation: one sweep whose fits share their work.

1. All rows are solved under every C, from the strongest penalty to the weakest (hinge.solvers.path).
2. Each fold follows the same Cs near these solutions: what is predicted is only how far the rows held out move them.
   Folds run side by side, each with its share of the threads.
3. The C of the best mean score is chosen, the smallest of equal ones; its fit to all rows is there already.
Every fit stops on its own certificate, as a fit alone would.
"""

from __future__ import annotations

import copy
import threading
from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from scipy import sparse

from hinge.config import available_memory, resolve_threads
from hinge.errors import DataError
from hinge.estimators.linear import CalibratedProbabilities, LinearSVM, SoftmaxProbabilities, SoftmaxRegression
from hinge.estimators.linear_base import LinearClassifier, LinearScores, deciding_rows
from hinge.estimators.validation import checked_rows_and_labels, checked_weights, class_codes, require_two_classes
from hinge.ops import single_threaded_blas
from hinge.problems.objective import LinearObjective
from hinge.selection.folds import Fold, Scorer, make_folds, make_scorer
from hinge.selection.path import Sweep, checked_penalties, like, warn_of_gaps
from hinge.solvers.result import Callback, SolverResult
from hinge.solvers.shared import Shared
from hinge.typing import Array, FloatArray, Rows

MOST_SCORES = 1 << 22  # of held-out rows that are computed at a time
OWN_PARAMETERS = ("Cs", "cv", "scoring", "refit")
FINAL_FIT = ("coef_", "intercept_", "classes_", "n_features_in_", "objective_", "duality_gap_", "history_")


@dataclass(frozen=True)
class _Rows:
    """Checked rows, labels and weights."""

    X: Rows
    y: Array
    classes: Array
    weight: FloatArray | None

    def part(self, rows: Array) -> _Rows:
        return replace(self, X=self.X[rows], y=self.y[rows], weight=None if self.weight is None else self.weight[rows])

    def counted(self, rows: Array) -> _Rows:
        """Return all rows, those left out with weight 0."""
        weight = np.zeros(len(self.y), dtype=self.X.dtype)
        np.add.at(weight, rows, 1 if self.weight is None else self.weight[rows])
        return replace(self, weight=weight)

    @property
    def copies_fit(self) -> bool:
        """Whether memory allows for a copy of most rows, and as much again for everything else."""
        needed, free = (self.X.data if sparse.issparse(self.X) else self.X).nbytes, available_memory()
        return free is None or 2 * needed <= free


@dataclass(frozen=True)
class _FoldFits:
    """The fits of one fold and their scores, a column a C."""

    results: list[SolverResult]
    scores: Array


class _CrossValidated(LinearScores):
    """What both sweeps are; final classes name the classifier that they sweep."""

    @abstractmethod
    def _classifier(self) -> LinearClassifier: ...

    def _passed_on(self) -> dict[str, Any]:
        names = (name for name in self._get_param_names() if name not in OWN_PARAMETERS)
        return {name: getattr(self, name) for name in names}

    @property
    def best_estimator_(self) -> LinearClassifier:
        """The best C's fit to all rows as a plain classifier, which can be saved and trained on; with refit only."""
        if not hasattr(self, "objective_"):
            raise AttributeError("there is a best estimator after a fit with refit=True only")
        model = self._classifier()
        model.set_params(C=self.C_)
        for name in (*FINAL_FIT, "feature_names_in_", "temperature_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        model.n_iter_ = self.history_[-1].iteration if self.history_ else 0
        model.converged_ = bool(self.duality_gap_ <= self.tol)
        model._seen_weight = self._total_weight
        return model

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Score every C on held-out rows, and keep the fit of the best one to all rows."""
        X, y = checked_rows_and_labels(self, X, y, reset=True)
        Cs, model, scorer = checked_penalties(self.Cs), self._classifier(), make_scorer(self.scoring)
        model._check_parameters()
        classes = np.unique(y)
        require_two_classes(classes)
        rows = _Rows(X, y, classes, checked_weights(sample_weight, X))
        objective = model._bind(X, y, classes, rows.weight)
        folds = make_folds(self.cv, X, y, classes, rows.weight)
        sweep, seed, shared = Sweep(model, Cs), model._seed(), Shared()
        whole = sweep.solve(objective, seed=seed, shared=shared, callbacks=model._callbacks()) if self.refit else None
        fits = _solve_folds(sweep, rows, folds, scorer, seed, whole, shared)
        self.classes_, self.Cs_ = classes, Cs
        self.scores_ = np.stack([fit.scores for fit in fits])
        self.gaps_ = np.array([[result.gap for result in fit.results] for fit in fits])
        self.n_iter_ = np.array([[max(1, result.n_iter) for result in fit.results] for fit in fits])
        self.mean_scores_ = self.scores_.mean(axis=0)
        self._keep_best(model, rows, objective, whole, fits)
        everything = [result for fit in fits for result in fit.results] + (whole or [])
        self.converged_ = all(result.gap <= self.tol for result in everything)
        warn_of_gaps(sweep.short(everything, objective), len(everything), self.tol)
        return self

    def _keep_best(
        self,
        model: LinearClassifier,
        rows: _Rows,
        objective: LinearObjective,
        whole: list[SolverResult] | None,
        fits: Sequence[_FoldFits],
    ) -> None:
        """Publish the best C's fit to all rows, or without one the mean over the folds of each one's best."""
        if whole is not None:
            best = best_penalty(self.mean_scores_, self.Cs_)
            weights = whole[best].weights
            self.C_, self.best_score_ = float(self.Cs_[best]), float(self.mean_scores_[best])
            self.objective_, self.duality_gap_ = whole[best].objective, whole[best].gap
            self.history_ = whole[best].history
        else:
            for name in ("objective_", "duality_gap_", "history_"):
                self.__dict__.pop(name, None)  # of an earlier fit
            chosen = [best_penalty(fit.scores, self.Cs_) for fit in fits]
            weights = np.mean([fit.results[k].weights for fit, k in zip(fits, chosen, strict=True)], axis=0)
            self.C_ = float(self.Cs_[chosen].mean())
            self.best_score_ = float(np.mean([fit.scores[k] for fit, k in zip(fits, chosen, strict=True)]))
        model.set_params(C=self.C_)
        model._publish(weights, objective)
        model._calibrate(rows.X, rows.y, objective.scaled_penalty(1 / self.C_), weights)
        self.coef_, self.intercept_ = model.coef_, model.intercept_
        self._total_weight = objective.total_weight
        if hasattr(model, "temperature_"):
            self.temperature_ = model.temperature_


def best_penalty(scores: Array, Cs: Array) -> int:
    """Return the position of the best score; among equals that of the strongest penalty."""
    if np.all(np.isnan(scores)):
        raise DataError("no score is a number", where="scoring", remedy="Use a scorer that suits these labels.")
    best = np.nanmax(scores)
    equal = np.flatnonzero(scores >= best - 1e-12 * max(abs(best), 1.0))
    return int(equal[np.argmin(Cs[equal])])


def _solve_folds(
    sweep: Sweep,
    rows: _Rows,
    folds: Sequence[Fold],
    scorer: Scorer | None,
    seed: int,
    whole: list[SolverResult] | None,
    shared: Shared,
) -> list[_FoldFits]:
    """Run the folds side by side, the last of an uneven number with all threads.

    One after the other where callbacks are told, because they may not expect threads.
    """
    told = sweep.model._callbacks()
    threads = resolve_threads(sweep.model.n_jobs)
    workers = 1 if told else min(threads, len(folds))
    ended = threading.Event()

    def run(fold: Fold, n_jobs: int) -> _FoldFits:
        model = like(sweep.model, n_jobs=n_jobs)
        part = Sweep(model, sweep.Cs)
        end: Callback = lambda iteration: ended.is_set()  # noqa: E731
        return _solve_fold(part, rows, fold, scorer, seed, whole, shared.for_other_rows(), (*told, end))

    even = 0 if workers == 1 else len(folds) - len(folds) % workers
    with single_threaded_blas(), ThreadPoolExecutor(workers) as pool:
        try:
            side_by_side = list(pool.map(lambda fold: run(fold, threads // workers), folds[:even]))
            return [*side_by_side, *(run(fold, threads) for fold in folds[even:])]
        except BaseException:
            ended.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _solve_fold(
    sweep: Sweep,
    rows: _Rows,
    fold: Fold,
    scorer: Scorer | None,
    seed: int,
    whole: list[SolverResult] | None,
    shared: Shared,
    callbacks: Sequence[Callback],
) -> _FoldFits:
    """Solve every C on a fold's training rows. A copy of them is read faster than rows picked out of all."""
    train, held = fold
    part = rows.part(train) if rows.copies_fit else rows.counted(train)
    objective = sweep.model._bind(part.X, part.y, rows.classes, part.weight)
    results = sweep.solve(objective, seed=seed, near=whole, shared=shared, callbacks=callbacks)
    test = rows.part(held)
    if scorer is None:
        scores = _accuracies(results, objective, test)
    else:
        scores = np.array([scorer(_fitted(sweep.model, r, objective), test.X, test.y, test.weight) for r in results])
    return _FoldFits(results, scores)


def _accuracies(results: Sequence[SolverResult], objective: LinearObjective, test: _Rows) -> Array:
    """Return the share of weight that each fit gets right; many fits read the rows in one product."""
    codes, D = class_codes(test.y, test.classes), objective.passes.n_features
    published = [deciding_rows(result.weights) for result in results]
    at_once = max(1, MOST_SCORES // (len(codes) * len(published[0])))
    accuracies: list[float] = []
    for first in range(0, len(published), at_once):
        some = published[first : first + at_once]
        W = np.concatenate(some)
        scores = test.X @ W[:, :D].T + (W[:, D] if objective.intercept else 0)
        for columns in np.split(scores, len(some), axis=1):
            found = columns[:, 0] > 0 if columns.shape[1] == 1 else columns.argmax(axis=1)
            accuracies.append(float(np.average(found == codes, weights=test.weight)))
    return np.array(accuracies)


def _fitted(model: LinearClassifier, result: SolverResult, objective: LinearObjective) -> LinearClassifier:
    """Return a classifier with the weights of one fit, for a scorer to ask."""
    fitted = copy.copy(model)
    fitted.n_features_in_ = objective.passes.n_features
    fitted._publish(result.weights, objective)
    return fitted


@final
class LinearSVMCV(CalibratedProbabilities, _CrossValidated):
    """Multiclass support vector machine whose C is chosen by cross-validation.

    All fits share work, and each stops on its own certificate: scores are those of separate `LinearSVM` fits.

    Parameters
    ----------
    Cs : int or array, default=10
        The penalties to try; an int means so many, evenly in log C from 1e-4 to 1e4.
    cv : int, splitter, iterable of (train, held-out) positions or None, default=None
        None means five stratified folds, or as many as the smallest class has rows. Every fold has to train on all
        classes.
    scoring : str, callable or None, default=None
        A scikit-learn scorer's name, or scorer(estimator, X, y); None means accuracy. Row weights count where the
        scorer takes `sample_weight`.
    refit : bool, default=True
        Keep the best C's fit to all rows. Otherwise the coefficients are the mean over the folds of each one's best.
    loss, multi_class, margin, penalty, l1_ratio, fit_intercept, class_weight : as in `LinearSVM`
    calibrate : as in `LinearSVM`, for the final fit alone
    solver, tol, max_iter, random_state, verbose : as in `LinearSVM`
    n_jobs : int or None, default=None
        Threads; None means all that the process may use. Folds share them.
    callbacks : callable, sequence of callables or None, default=None
        Called with a `solvers.Iteration` after each iteration of every fit; one that returns True ends the fit at
        hand. Folds then run one after the other.

    Attributes
    ----------
    C_ : the chosen penalty: the smallest C of the best mean score
    Cs_ : (n_Cs,)
    scores_ : (n_folds, n_Cs)
    mean_scores_ : (n_Cs,)
    best_score_ : the mean score of `C_`
    gaps_ : (n_folds, n_Cs), each fit's certified relative duality gap
    n_iter_ : (n_folds, n_Cs); 1 where the start was good enough
    converged_ : whether every fit reached tol
    coef_, intercept_, classes_, n_features_in_, feature_names_in_, temperature_ : as in `LinearSVM`
    objective_, duality_gap_, history_ : of the final fit; with refit only
    best_estimator_ : the final fit as a `LinearSVM`; with refit only
    """

    def __init__(
        self,
        Cs: Any = 10,
        *,
        cv: Any = None,
        scoring: Any = None,
        refit: bool = True,
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
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
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
        self.callbacks = callbacks
        self.verbose = verbose

    def _classifier(self) -> LinearClassifier:
        return LinearSVM(**self._passed_on())


@final
class SoftmaxRegressionCV(SoftmaxProbabilities, _CrossValidated):
    """Multinomial logistic regression whose C is chosen by cross-validation.

    All fits share work, and each stops on its own certificate: scores are those of separate `SoftmaxRegression` fits.
    The parameters and attributes are those of `LinearSVMCV`, without its loss, multi_class, margin and calibrate.
    """

    def __init__(
        self,
        Cs: Any = 10,
        *,
        cv: Any = None,
        scoring: Any = None,
        refit: bool = True,
        penalty: str = "l2",
        l1_ratio: float | None = None,
        fit_intercept: bool | str = True,
        class_weight: Any = None,
        solver: Any = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.verbose = verbose

    def _classifier(self) -> LinearClassifier:
        return SoftmaxRegression(**self._passed_on())
