"""What `linear` measures: training problems, the rows they are on, hinge's side and its rivals'.

Everyone minimises  P = mean loss + λ/2·‖W‖²  with λ = 1/(C·N); `objective` values every solution in float64, by NumPy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.rivals import LinearFit, sklearn_linear_svc, sklearn_logistic, sklearnex_logistic
from hinge import LinearSVM, SoftmaxRegression, datasets
from hinge.ops import Loss
from hinge.ops.vectorized import LOSSES

VALUED_ROWS = 8192  # whose scores exist at a time
FEW_ITERATIONS = 5  # after which a rival holds all the memory that it ever will

Rows = tuple[Any, np.ndarray]


@dataclass(frozen=True)
class Source:
    """Rows by name; a stand-in is a small likeness for quick runs."""

    name: str
    load: Callable[[], Rows | None]
    stand_in: Callable[[], Rows]
    remedy: str = ""


def _digits() -> Rows:
    digits = datasets.load_digits()
    return digits.X / np.float32(16), digits.y


_few_clouds = partial(data.clouds, 200, 12, 4)
_few_words = partial(data.zipf_words, rows=300, features=200, per_row=6, classes=4)

DIGITS = Source("digits, 1,797×64", _digits, _few_clouds)
MNIST = Source("MNIST, 60,000×784", data.mnist, _few_clouds, data.MNIST.remedy)
FASHION = Source("Fashion-MNIST, 60,000×784", data.fashion_mnist, _few_clouds, data.FASHION_MNIST.remedy)
WORDS = Source("words, 50,000×50,000, 12 a row", data.zipf_words, _few_words)


@cache
def rows_of(source: Source, quick: bool) -> Rows | None:
    """Return the rows, kept from one problem to the next."""
    return source.stand_in() if quick else source.load()


@dataclass(frozen=True)
class Rival:
    """Another library's fit. Of several tolerances the loosest that comes near enough to the optimum counts."""

    name: str
    fit: Callable[..., LinearFit]
    present: bool
    tolerances: tuple[float, ...]


@dataclass(frozen=True)
class Problem:
    """One training problem.

    hinge's tolerance is `tol`, or, where there is none, the loosest of a ladder that ends at the fastest rival's
    objective or below, or `near` the optimum if nobody else is there. `tight` is the gap of the fit that stands for the
    optimum. C is given, or follows from `l2` = λ. Intercepts are free, or as rivals have them: penalised, or none.
    """

    label: str
    source: Source
    loss: Loss
    model: Callable[..., Any]
    rivals: tuple[Rival, ...] = ()
    C: float | None = None
    l2: float = 0.0
    tol: float | None = None
    near: float = 1e-4
    tight: float = 1e-8
    intercept: bool | str = True
    weighed: bool = True
    remark: str = ""

    def weight(self, rows: int) -> float:
        """Return C."""
        return 1 / (self.l2 * rows) if self.C is None else self.C


def _logistic(solver: str, *tolerances: float) -> Rival:
    fit = partial(sklearn_logistic.fit, solver=solver)
    return Rival(f"{sklearn_logistic.NAME} {solver}", fit, sklearn_logistic.present, tolerances)


def _svc(tol: float, **options: Any) -> Rival:
    fit = partial(sklearn_linear_svc.fit, **options)
    return Rival(sklearn_linear_svc.NAME, fit, sklearn_linear_svc.present, (tol,))


_sklearnex = Rival(sklearnex_logistic.NAME, sklearnex_logistic.fit, sklearnex_logistic.present, (1e-4,))
_one_vs_rest = partial(LinearSVM, loss="squared_hinge", multi_class="one_vs_rest")
_crammer_singer = partial(LinearSVM, multi_class="crammer_singer")
_NEARING = (3e-5, 1e-5, 3e-6, 1e-6)
_SQUARES = Loss("one_vs_rest", squared=True)

PROBLEMS = (
    Problem(
        "softmax, MNIST, λ = 1e-4", MNIST, Loss("softmax"), SoftmaxRegression,
        (_logistic("newton-cg", 1e-4), _sklearnex), l2=1e-4, tol=1e-6, tight=1e-9,
    ),
    Problem(
        "softmax, Fashion-MNIST, λ = 1e-5", FASHION, Loss("softmax"), SoftmaxRegression,
        (_logistic("newton-cg", *_NEARING), _logistic("lbfgs", *_NEARING[1:])), l2=1e-5, tol=1e-4,
    ),
    Problem(
        "one-vs-rest squared hinge, MNIST, λ = 1e-4", MNIST, _SQUARES, _one_vs_rest,
        (_svc(1e-3),), l2=1e-4, tol=1e-4, intercept="penalized",
    ),
    Problem(
        "one-vs-rest squared hinge, MNIST, C = 1", MNIST, _SQUARES, _one_vs_rest,
        (_svc(1e-3),), C=1.0, tol=1e-4, intercept="penalized",
    ),
    Problem(
        "Crammer–Singer hinge, MNIST, λ = 1e-4", MNIST, Loss("crammer_singer"), _crammer_singer,
        (_svc(1e-2, multi_class="crammer_singer"),), l2=1e-4, tight=1e-3, intercept="penalized",
    ),
    Problem(
        "Weston–Watkins hinge, MNIST, C = 1/6", MNIST, Loss("weston_watkins"), LinearSVM,
        C=1 / 6, near=1e-3, tight=1e-4, intercept=False, remark="to 0.1 % above the optimum",
    ),
    Problem(
        "one-vs-rest squared hinge, words, C = 1", WORDS, _SQUARES, _one_vs_rest,
        (_svc(1e-4, dual=True),), C=1.0, tight=1e-6, intercept="penalized", weighed=False,
    ),
    Problem(
        "softmax, words, C = 1", WORDS, Loss("softmax"), SoftmaxRegression,
        (_logistic("lbfgs", 1e-4),), C=1.0, tight=1e-6, weighed=False,
    ),
    Problem(
        "softmax, digits, C = 1", DIGITS, Loss("softmax"), SoftmaxRegression,
        (_logistic("lbfgs", 1e-4),), C=1.0, weighed=False,
    ),
    Problem(
        "Crammer–Singer hinge, digits, C = 1", DIGITS, Loss("crammer_singer"), _crammer_singer,
        (_svc(1e-4, multi_class="crammer_singer"),), C=1.0, tight=1e-6, intercept="penalized", weighed=False,
    ),
)  # fmt: skip


@dataclass
class Contest:
    """A problem on its rows, and the last fit of everyone with its objective and the warnings that it ended in."""

    problem: Problem
    X: Any
    y: np.ndarray
    threads: int
    fits: dict[str, tuple[LinearFit, float, str]] = field(default_factory=dict)

    @property
    def C(self) -> float:
        return self.problem.weight(self.X.shape[0])

    def hinge(self, tol: float, X: Any = None) -> LinearFit:
        """Fit hinge, to these rows or to other ones."""
        model = self.problem.model(
            C=self.C, tol=tol, fit_intercept=self.problem.intercept, n_jobs=self.threads, random_state=0
        )
        model.fit(self.X if X is None else X, self.y)
        return LinearFit(model.coef_, model.intercept_, float(model.duality_gap_), model.history_[-1].passes)

    def rival(self, rival: Rival, tol: float, **options: Any) -> LinearFit:
        """Fit a rival."""
        return rival.fit(self.X, self.y, C=self.C, threads=self.threads, tol=tol, **options)

    def keep(self, who: str, fit: Callable[[], LinearFit]) -> None:
        """Run a fit and keep it; valued later, so that the clock does not run meanwhile."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = fit()
        remark = ", ".join(sorted({warning.category.__name__ for warning in caught}))
        self.fits[who] = found, np.nan, remark

    def objective(self, who: str) -> float:
        """Return P of someone's last fit."""
        fit, value, remark = self.fits[who]
        if np.isnan(value):
            value = objective(self.problem, fit, self.X, self.y)
            self.fits[who] = fit, value, remark
        return value


def objective(problem: Problem, fit: LinearFit, X: Any, y: np.ndarray) -> float:
    """Return P in float64, block by block; it counts the intercepts' penalty where the problem has one."""
    codes = np.unique(y, return_inverse=True)[1]
    W, b = fit.coef.astype(np.float64), fit.intercept.astype(np.float64)
    total = 0.0
    for first in range(0, len(codes), VALUED_ROWS):
        block = slice(first, first + VALUED_ROWS)
        scores = X[block].astype(np.float64) @ W.T + b
        total += float(LOSSES[problem.loss.kind](scores, codes[block], problem.loss)[0].sum())
    penalised = float(np.square(W).sum()) + (float(b @ b) if problem.intercept == "penalized" else 0.0)
    return total / len(codes) + penalised / (2 * problem.weight(len(codes)) * len(codes))
