"""Fits end at the optimum, and their certificates tell the truth: every loss on many data sets against optima found by
independent means (conftest.py), or by two solvers that share nothing.

Two fits are made of each. The default one has to keep its word: it is at most `duality_gap_` above the optimum. The
tight one has to be there, to 1e-6.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse
from sklearn import datasets as sklearn_datasets

from hinge import LinearSVM, SoftmaxRegression

LOSSES = {
    "softmax": ("softmax", False),
    **{
        f"{'squared_' if squared else ''}{kind}": (kind, squared)
        for kind in ("weston_watkins", "crammer_singer", "one_vs_rest")
        for squared in (False, True)
    },
}
ROUNDING = 1e-9
"""Of max(P, λ): the reference's own error, and that of P in float64."""


@dataclass(frozen=True)
class Data:
    """Rows and how they are to be fitted."""

    X: np.ndarray
    y: np.ndarray
    reg: float = 1e-2
    v: np.ndarray | None = None
    intercept: bool | str = True
    form: str = "dense"
    margin: float = 1.0


@dataclass(frozen=True)
class Problem:
    """What the references solve: mean loss + l2/2·‖W‖²."""

    X: np.ndarray
    y: np.ndarray
    v: np.ndarray
    n_classes: int
    l2: float
    kind: str
    squared: bool
    margin: float
    intercept: bool | str


def noisy(N, D, C, *, seed=0, signal=1.0):
    """Rows whose best linear classifier errs now and then."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    y = (signal * X @ rng.standard_normal((D, C)) + rng.gumbel(size=(N, C))).argmax(axis=1)
    y[:C] = np.arange(C)
    return X, y


def loaded(name, rows=None, scaled=True):
    X, y = getattr(sklearn_datasets, f"load_{name}")(return_X_y=True)
    if scaled:
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    pick = np.arange(len(y)) if rows is None else np.random.default_rng(0).permutation(len(y))[:rows]
    return X[pick], y[pick]


def data_sets():
    """Return all data sets by name."""
    rng = np.random.default_rng(1)
    X, y = noisy(120, 6, 4)
    two = noisy(120, 6, 2)
    far = X + 1e3
    weights = rng.integers(0, 4, 120).astype(float)
    weights[:4] = 1
    holes = np.where(rng.random(X.shape) < 0.7, 0.0, X)
    apart = np.repeat(10 * np.eye(3, 5), 15, axis=0) + 0.1 * rng.standard_normal((45, 5))
    wide_sparse = np.where(rng.random((60, 300)) < 0.03, rng.standard_normal((60, 300)), 0.0)
    return {
        "iris": Data(*loaded("iris", scaled=False)),
        "iris, weak penalty": Data(*loaded("iris", scaled=False), reg=1e-6),
        "wine": Data(*loaded("wine")),
        "wine as it comes": Data(*loaded("wine", rows=100, scaled=False), reg=1e-4),
        "breast cancer": Data(*loaded("breast_cancer", rows=300)),
        "breast cancer as it comes": Data(*loaded("breast_cancer", rows=200, scaled=False), reg=1e-3),
        "two classes": Data(*two),
        "two classes, one feature": Data(two[0][:, :1], two[1]),
        "four classes": Data(X, y),
        "strong penalty": Data(X, y, reg=1e3),
        "weak penalty": Data(X, y, reg=1e-7),
        "margin of 3": Data(X, y, margin=3.0),
        "no intercept": Data(X, y, intercept=False),
        "penalised intercept": Data(X, y, intercept="penalized"),
        "two classes, penalised intercept": Data(*two, intercept="penalized"),
        "twelve classes": Data(*noisy(40, 6, 12)),
        "fewer rows than columns": Data(*noisy(15, 40, 3)),
        "fewer rows than columns, two classes": Data(*noisy(12, 80, 2), reg=1e-4),
        "rows many times over": Data(np.repeat(X[:30], 4, axis=0), np.repeat(y[:30], 4)),
        "contradictory duplicates": Data(np.repeat(X[:30], 4, axis=0), np.tile(np.arange(4), 30)),
        "separable": Data(apart, np.repeat(np.arange(3), 15), reg=1 / (2 * 1e6 * 45)),
        "separable, two classes": Data(apart[:30], np.repeat(np.arange(2), 15), reg=1 / (2 * 1e6 * 30)),
        "one row a class": Data(rng.standard_normal((10, 7)), np.arange(10)),
        "two rows": Data(rng.standard_normal((2, 3)), np.arange(2)),
        "columns from 1e-8 to 1e8": Data(X * np.logspace(-8, 8, 6), y),
        "columns from 1e-3 to 1e3": Data(X * np.logspace(-3, 3, 6), y),
        "tiny columns": Data(X * 1e-8, y),
        "huge columns": Data(X * 1e8, y),
        "far from the origin": Data(far, y),
        "constant columns": Data(np.hstack([X, np.full((120, 2), 7.0), np.zeros((120, 1))]), y),
        "equal columns": Data(np.hstack([X, X, X]), y, reg=1e-4),
        "rows of zeros": Data(np.vstack([X[:60], np.zeros((20, 6))]), y[:80]),
        "weights, some of them 0": Data(X, y, v=weights),
        "weights from 1e-4 to 1e4": Data(X, y, v=10 ** rng.uniform(-4, 4, 120)),
        "one class is rare": Data(*_rare()),
        "labels without reason": Data(X, rng.integers(0, 4, 120)),
        "zeros and ones": Data((X > 0).astype(float), y),
        "sparse": Data(holes, y, form="csr"),
        "sparse and wide": Data(wide_sparse[:40], rng.integers(0, 3, 40), form="csr64", reg=1e-3),
        "sparse, no intercept": Data(holes, y, form="csr", intercept=False),
        "dense with holes": Data(holes, y),
    }


def _rare():
    X, y = noisy(150, 4, 3)
    kept = (y > 0) | (np.cumsum(y == 0) <= 2)
    return X[kept], y[kept]


DATA = data_sets()


def estimator(loss, data, **options):
    kind, squared = LOSSES[loss]
    common = {"reg": data.reg, "fit_intercept": data.intercept, "n_jobs": 2, "random_state": 0, **options}
    if kind == "softmax":
        return SoftmaxRegression(**common)
    form = "squared_hinge" if squared else "hinge"
    return LinearSVM(loss=form, multi_class=kind, margin=data.margin, **common)


def rows_of(data):
    if data.form == "dense":
        return data.X
    X = sparse.csr_array(data.X)
    if data.form == "csr64":
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def problem_of(loss, data):
    kind, squared = LOSSES[loss]
    C = int(data.y.max()) + 1
    if C == 2 and kind != "softmax":
        kind = "weston_watkins"
    v = np.ones(len(data.y)) if data.v is None else data.v
    l2 = 2 * data.reg * (2 if C == 2 else 1)
    return Problem(data.X, data.y, v, C, l2, kind, squared, data.margin, data.intercept)


def weights_of(model):
    if len(model.coef_) > 1:
        return model.coef_, model.intercept_
    return np.vstack([-model.coef_, model.coef_]) / 2, np.concatenate([-model.intercept_, model.intercept_]) / 2


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", DATA)
def test_fits_end_at_the_optimum_and_their_gaps_are_honest(name, loss, optimum, objective):
    data, problem = DATA[name], problem_of(loss, DATA[name])
    best = optimum(problem)
    values = {}
    for tol in (1e-4, 1e-8):
        model = estimator(loss, data, tol=tol).fit(rows_of(data), data.y, sample_weight=data.v)
        assert model.converged_
        assert model.duality_gap_ <= tol
        values[tol] = objective(problem, *weights_of(model))
        unit = max(values[tol], problem.l2)
        assert model.objective_ == pytest.approx(values[tol], rel=1e-9 if problem.n_classes > 2 else 1e-6)
        assert model.objective_ - best <= (model.duality_gap_ + ROUNDING) * unit
        assert best - model.objective_ <= ROUNDING * unit
    assert values[1e-8] == pytest.approx(best, rel=1e-6, abs=1e-8 * problem.l2)


def many_rows(name):
    if name == "digits":
        X, y = loaded("digits", scaled=False)
        return Data(X / 16, y, reg=1e-2)
    X, y = noisy(400, 4, 200)
    return Data(X, y, reg=1e-1)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["digits", "200 classes"])
def test_two_solvers_that_share_nothing_agree(name, loss, objective):
    """Descent along gradients or an interior point on one side, coordinate ascent on the other."""
    data = many_rows(name)
    kind, squared = LOSSES[loss]
    bends = squared and kind != "crammer_singer"  # the squares of a maximum bend, but have kinks too
    pair = ("lbfgs", "newton_cg") if kind == "softmax" else ("dual", "lbfgs" if bends else "interior_point")
    if name == "200 classes" and kind != "one_vs_rest" and not bends and kind != "softmax":
        pair = ("dual", "auto")  # the matrix of all classes' weights is beyond a quick test
    tol = 1e-6 if bends or name == "digits" else 1e-4
    problem, fits = problem_of(loss, data), []
    for solver in pair:
        model = estimator(loss, data, solver=solver, tol=tol, max_iter=20_000).fit(data.X, data.y)
        assert model.converged_
        value = objective(problem, *weights_of(model))
        assert model.objective_ == pytest.approx(value, rel=1e-9)
        fits.append((value, model.duality_gap_))
    best = min(value for value, _ in fits)
    for value, gap in fits:
        assert value - best <= (gap + ROUNDING) * value


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_threads_change_rounding_only_and_seeds_nothing_else(loss, form):
    X, y = noisy(3000, 40, 6)
    data = Data(np.where(np.random.default_rng(2).random(X.shape) < 0.5, 0.0, X), y, form=form)
    rows = rows_of(data)
    fits = [estimator(loss, data, n_jobs=jobs).fit(rows, y) for jobs in (1, 1, 2, 2, 4)]
    for first, second in ((0, 1), (2, 3)):
        assert fits[first].coef_.tobytes() == fits[second].coef_.tobytes()
        assert fits[first].intercept_.tobytes() == fits[second].intercept_.tobytes()
        assert fits[first].duality_gap_ == fits[second].duality_gap_
    for other in fits[1:]:
        assert other.objective_ == pytest.approx(fits[0].objective_, rel=1e-6)
        np.testing.assert_allclose(other.coef_, fits[0].coef_, rtol=0, atol=1e-6 * np.abs(fits[0].coef_).max())


@pytest.mark.parametrize("loss", LOSSES)
def test_a_row_of_weight_two_is_the_row_twice_at_the_optimum(loss):
    X, y = noisy(200, 5, 4)
    times = np.random.default_rng(3).integers(0, 4, 200)
    times[:4] = 1
    data = Data(X, y)
    model = estimator(loss, data, tol=1e-9)
    weighted = model.fit(X, y, sample_weight=times)
    values = [weighted.objective_, weighted.coef_.copy()]
    repeated = model.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert repeated.objective_ == pytest.approx(values[0], rel=1e-8)
    # λ/2·‖ΔW‖² is at most the gap of 1e-9·P on each side: 2·sqrt(2e-9·P/λ) with λ = 0.02 and P ≤ 4.
    np.testing.assert_allclose(repeated.coef_, values[1], rtol=0, atol=2e-3)


@pytest.mark.parametrize("kind", ["weston_watkins", "crammer_singer", "one_vs_rest"])
def test_interior_point_takes_the_same_path_for_weights_and_repeats(kind):
    X, y = noisy(200, 5, 4)
    times = np.random.default_rng(3).integers(0, 4, 200)
    times[:4] = 1
    model = LinearSVM(reg=1e-2, multi_class=kind, solver="interior_point", tol=1e-9)
    weighted = model.fit(X, y, sample_weight=times).coef_.copy()
    repeated = model.fit(np.repeat(X, times, axis=0), np.repeat(y, times)).coef_
    np.testing.assert_allclose(repeated, weighted, rtol=0, atol=1e-8)
