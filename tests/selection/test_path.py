"""A path of fits is the separate fits, only sooner."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from hinge import LinearSVM, SoftmaxRegression, solvers
from hinge.errors import DataError, UsageError
from hinge.selection import path
from hinge.selection.path import checked_penalties

rng = np.random.default_rng(0)
y = rng.integers(0, 3, 240)
X = rng.normal(size=(3, 5))[y] + rng.normal(size=(240, 5))
CS = np.logspace(-3, 1, 9)

MODELS = [
    SoftmaxRegression(random_state=0),
    SoftmaxRegression(random_state=0, fit_intercept="penalized", class_weight="balanced"),
    SoftmaxRegression(random_state=0, solver="newton_cg", fit_intercept=False),
    LinearSVM(random_state=0),
    LinearSVM(random_state=0, multi_class="crammer_singer", margin=0.5),
    LinearSVM(random_state=0, loss="squared_hinge"),
    LinearSVM(random_state=0, loss="squared_hinge", multi_class="one_vs_rest"),
    SoftmaxRegression(random_state=0, penalty="elasticnet", l1_ratio=0.5),
    LinearSVM(random_state=0, loss="squared_hinge", penalty="elasticnet", l1_ratio=0.1),
]


def separate(model, C, *data, **options):
    return type(model)(**{**model.get_params(), "C": C}).fit(*data, **options)


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_a_path_is_the_separate_fits(model, form):
    weight = rng.uniform(0, 2, len(y))
    result = path(model, form(X), y, CS, sample_weight=weight)
    assert np.all(result.gaps <= model.tol)
    np.testing.assert_array_equal(result.Cs, CS)
    for k, C in enumerate(CS):
        alone = separate(model, C, form(X), y, sample_weight=weight)
        scale = max(alone.objective_, 1 / (C * weight.sum()))  # as gaps are relative to
        assert abs(result.objectives[k] - alone.objective_) <= model.tol * scale * 1.01
        assert result.coefs[k].shape == alone.coef_.shape
        assert result.intercepts[k].shape == alone.intercept_.shape
        # Strong convexity: λ₂/2·‖W − W*‖² is at most what is left of P.
        far = np.sqrt(2 * model.tol * scale * C * weight.sum() * 4 / (1 - (model.l1_ratio or 0)))
        assert np.linalg.norm(result.coefs[k] - alone.coef_) <= 2 * far


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_path_under_an_l1_penalty_is_the_separate_fits(form, classes):
    kept = y < classes
    noise = np.hstack([X, np.random.default_rng(1).normal(size=(240, 200))])[kept]
    model, Cs = SoftmaxRegression(random_state=0, penalty="l1"), np.geomspace(0.01, 1, 6)
    result = path(model, form(noise), y[kept], Cs)
    assert np.all(result.gaps <= model.tol)
    held = (result.coefs != 0).any(axis=1).sum(axis=1)
    assert held[0] <= 1
    assert held[0] < held[-1] < 205
    for k, C in enumerate(Cs):
        alone = separate(model, C, form(noise), y[kept])
        scale = max(alone.objective_, 1 / (C * kept.sum()))
        assert abs(result.objectives[k] - alone.objective_) <= 1.01 * model.tol * scale


@pytest.mark.parametrize("model", [SoftmaxRegression(random_state=0), LinearSVM(random_state=0)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_two_classes_have_one_row_of_weights(model, dtype):
    two = y < 2
    result = path(model, X[two].astype(dtype), y[two], CS)
    assert result.coefs.shape == (len(CS), 1, 5)
    assert result.intercepts.shape == (len(CS), 1)
    assert result.coefs.dtype == dtype
    for k, C in enumerate(CS):
        alone = separate(model, C, X[two], y[two])
        assert abs(result.objectives[k] - alone.objective_) <= 1.01e-4 * max(alone.objective_, 2 / (C * two.sum()))


def test_neighbours_save_most_of_the_passes():
    wide = rng.normal(size=(2000, 40)) * np.linspace(0.1, 3, 40)
    labels = (wide @ rng.normal(size=(40, 6)) + 3 * rng.gumbel(size=(2000, 6))).argmax(axis=1)
    model, Cs = SoftmaxRegression(random_state=0), np.logspace(-4, 0, 12)
    together = path(model, wide, labels, Cs).passes.sum()
    alone = sum(separate(model, C, wide, labels).history_[-1].passes for C in Cs)
    assert together < 0.75 * alone


def test_any_order_and_repeated_penalties():
    model = SoftmaxRegression(random_state=0)
    sorted_path, mixed = path(model, X, y, [0.01, 0.1, 1.0]), path(model, X, y, [1.0, 0.01, 1.0, 0.1])
    np.testing.assert_array_equal(mixed.coefs, sorted_path.coefs[[2, 0, 2, 1]])
    np.testing.assert_array_equal(mixed.Cs, [1.0, 0.01, 1.0, 0.1])


def test_uneven_penalties_do_not_mislead_the_prediction():
    Cs = [1e-3, 1.0001e-3, 1.0002e-3, 1e3, 1.1e3]
    result = path(SoftmaxRegression(random_state=0), X, y, Cs)
    assert np.all(result.gaps <= 1e-4)


def test_the_same_bits_again_and_the_estimator_is_left_alone():
    model = SoftmaxRegression(random_state=0, n_jobs=2)
    first, again = path(model, X, y, CS), path(model, X, y, CS)
    np.testing.assert_array_equal(first.coefs, again.coefs)
    assert not hasattr(model, "coef_")
    assert model.C == 1.0


def test_callbacks_hear_of_every_fit_and_limits_hold():
    told = []
    model = SoftmaxRegression(random_state=0, callbacks=[told.append])
    path(model, X, y, CS)
    assert [line.iteration for line in told].count(0) == len(CS)
    stopped = path(SoftmaxRegression(callbacks=lambda line: line.iteration == 1, tol=1e-12), X, y, CS)
    assert np.all(stopped.n_iter == 1)
    with pytest.warns(ConvergenceWarning, match="9 of 9 fits ended above tol=0"):
        path(SoftmaxRegression(tol=0.0, max_iter=1), X, y, CS)


def test_an_interrupt_ends_the_path():
    def interrupt(line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        path(SoftmaxRegression(callbacks=interrupt), X, y, CS)


def test_solvers_that_share_nothing_walk_the_path_too():
    for solver in (solvers.GradientDescent(), solvers.SGD(average=True)):
        model = SoftmaxRegression(solver=solver, max_iter=50, random_state=0)
        result = path(model, X, y, [0.01, 0.1])
        best = path(SoftmaxRegression(random_state=0), X, y, [0.01, 0.1])
        assert np.all(result.objectives < 1.2 * best.objectives)


@pytest.mark.parametrize(
    ("Cs", "message"),
    [
        ([], "there are no penalties"),
        ([1.0, 0.0], "holds 0, which is not a positive"),
        ([-1.0], "holds -1"),
        ([1.0, np.nan], "holds nan"),
        ([np.inf], "holds inf"),
        ("many", "Cs='many'"),
        (0, "Cs=0"),
        (2.5, "Cs=2.5"),
        (None, "Cs=None"),
        (["a"], "Cs="),
        ([[1.0]], "Cs="),
    ],
)
def test_penalties_that_make_no_sense(Cs, message):
    with pytest.raises(UsageError, match=message):
        path(SoftmaxRegression(), X, y, Cs)


def test_a_number_of_penalties_is_scikit_learns_range():
    np.testing.assert_allclose(checked_penalties(5), [1e-4, 1e-2, 1, 1e2, 1e4])
    np.testing.assert_allclose(checked_penalties(np.int64(3)), [1e-4, 1, 1e4])


def test_estimators_without_a_path():
    with pytest.raises(UsageError, match="dict has no path"):
        path({}, X, y)
    with pytest.raises(UsageError, match="has its own penalty"):
        path(SoftmaxRegression(reg=0.1), X, y)
    with pytest.raises(DataError, match="only one class"):
        path(SoftmaxRegression(), X, np.zeros(len(y)))
