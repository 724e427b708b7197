"""L1 and elastic-net penalties of the estimators: scikit-learn's objective, and everything a user may get wrong."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from hinge import LinearSVM, SoftmaxRegression, load_model, save_model, solvers
from hinge.errors import UsageError


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    X = rng.standard_normal((150, 8))
    X[:, :3] += 1.5 * np.eye(3)[y]
    return X, np.array(["ant", "bee", "cat"])[y]


def two(blobs):
    kept = blobs[1] != "cat"
    return blobs[0][kept], blobs[1][kept]


def saga(C, l1_ratio, **options):
    return LogisticRegression(C=C, l1_ratio=l1_ratio, solver="saga", tol=1e-10, max_iter=100_000, **options)


def penalized_losses(model, X, y, C, ratio, weight=1.0):
    """scikit-learn's objective at a model's weights."""
    losses = -np.take_along_axis(
        model.predict_log_proba(X), np.unique(y, return_inverse=True)[1][:, None], axis=1
    ).ravel()
    W = model.coef_
    return (1 - ratio) / 2 * np.sum(W**2) + ratio * np.abs(W).sum() + C * np.sum(weight * losses)


PENALTIES = [({"penalty": "l1"}, 1.0), ({"penalty": "elasticnet", "l1_ratio": 0.4}, 0.4)]


@pytest.mark.parametrize(("penalty", "ratio"), PENALTIES)
@pytest.mark.parametrize("C", [0.05, 0.5])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_two_classes_reach_scikit_learns_optimum(blobs, penalty, ratio, C, fit_intercept):
    X, y = two(blobs)
    ours = SoftmaxRegression(C, **penalty, fit_intercept=fit_intercept, tol=1e-11).fit(X, y)
    theirs = saga(C, ratio, fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_array_equal(ours.coef_ == 0, theirs.coef_ == 0)
    assert 0 < np.mean(ours.coef_ == 0) < 1
    # The published objective is the same number in mean form.
    assert ours.objective_ == pytest.approx(penalized_losses(ours, X, y, C, ratio) / (C * len(y)), rel=1e-9)


@pytest.mark.parametrize(("penalty", "ratio"), PENALTIES)
@pytest.mark.parametrize("C", [0.05, 0.5])
def test_softmax_reaches_scikit_learns_optimum(blobs, penalty, ratio, C):
    X, y = blobs
    ours = SoftmaxRegression(C, **penalty, tol=1e-9).fit(X, y)
    theirs = saga(C, ratio).fit(X, y)
    best = penalized_losses(theirs, X, y, C, ratio)
    assert penalized_losses(ours, X, y, C, ratio) == pytest.approx(best, rel=1e-6)
    assert ours.objective_ * C * len(y) == pytest.approx(best, rel=1e-6)
    assert 0 < np.mean(ours.coef_ == 0) < 1


@pytest.mark.parametrize("C", [0.01, 0.1])
def test_squared_hinges_reach_liblinears_optimum(blobs, C):
    X, y = blobs
    options = {"loss": "squared_hinge", "penalty": "l1", "fit_intercept": False}
    theirs = LinearSVC(C=C, dual=False, tol=1e-9, max_iter=100_000, **options).fit(X, y)
    ours = LinearSVM(C, multi_class="one_vs_rest", tol=1e-11, **options).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    X, y = two(blobs)
    theirs = LinearSVC(C=C, dual=False, tol=1e-9, max_iter=100_000, **options).fit(X, y)
    ours = LinearSVM(C, tol=1e-11, **options).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert ours.coef_.shape == (1, 8)


def test_reg_keeps_its_relation_to_c(blobs):
    X, y = blobs
    for penalty, _ in PENALTIES:
        by_reg = SoftmaxRegression(reg=1e-2, **penalty, tol=1e-10).fit(X, y)
        by_c = SoftmaxRegression(1 / (2 * 1e-2 * len(y)), **penalty, tol=1e-10).fit(X, y)
        assert by_reg.objective_ == pytest.approx(by_c.objective_, rel=1e-9)


def test_the_ends_of_the_elastic_net_are_the_other_penalties(blobs):
    X, y = blobs
    for ratio, penalty in ((0.0, "l2"), (1.0, "l1")):
        net = SoftmaxRegression(penalty="elasticnet", l1_ratio=ratio, tol=1e-9).fit(X, y)
        pure = SoftmaxRegression(penalty=penalty, tol=1e-9).fit(X, y)
        np.testing.assert_array_equal(net.coef_, pure.coef_)
    LinearSVM(penalty="elasticnet", l1_ratio=0).fit(X, y)  # no share of L1: any loss will do


def test_a_weight_of_two_is_a_row_twice(blobs):
    X, y = blobs
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    for model in (
        SoftmaxRegression(0.3, penalty="elasticnet", l1_ratio=0.7, tol=1e-12),
        LinearSVM(0.03, penalty="l1", loss="squared_hinge", multi_class="one_vs_rest", tol=1e-12),
    ):
        weighted = model.fit(X, y, sample_weight=weight).coef_.copy()
        repeated = model.fit(np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int))).coef_
        np.testing.assert_allclose(weighted, repeated, atol=1e-5)
        np.testing.assert_array_equal(weighted == 0, repeated == 0)


def test_class_weights_are_row_weights(blobs):
    X, y = blobs
    heavy = {"ant": 3.0, "bee": 1.0, "cat": 0.5}
    a = SoftmaxRegression(penalty="l1", class_weight=heavy, tol=1e-9).fit(X, y)
    b = SoftmaxRegression(penalty="l1", tol=1e-9).fit(X, y, sample_weight=np.vectorize(heavy.get)(y))
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-12)


def test_sparse_and_float32_rows(blobs):
    X, y = blobs
    X = np.where(np.abs(X) > 0.7, X, 0)
    options = {"penalty": "l1", "loss": "squared_hinge", "multi_class": "one_vs_rest"}
    dense = LinearSVM(0.05, tol=1e-10, **options).fit(X, y)
    spare = LinearSVM(0.05, tol=1e-10, **options).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(spare.coef_, dense.coef_, atol=1e-6)
    single = LinearSVM(0.05, tol=1e-5, **options).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == np.float32
    assert single.converged_
    np.testing.assert_allclose(single.coef_, dense.coef_, atol=1e-3)


def test_intercepts_may_be_penalized(blobs):
    X, y = two(blobs)
    ours = SoftmaxRegression(0.1, penalty="l1", fit_intercept="penalized", tol=1e-11).fit(X, y)
    ones = np.hstack([X, np.ones((len(y), 1))])
    theirs = saga(0.1, 1.0, fit_intercept=False).fit(ones, y)
    np.testing.assert_allclose(np.append(ours.coef_, ours.intercept_), theirs.coef_[0], atol=1e-6)


def test_rounding_ends_a_fit_with_a_warning(blobs):
    X, y = blobs
    with pytest.warns(ConvergenceWarning, match="rounding hides the descent"):
        SoftmaxRegression(penalty="l1", tol=0.0).fit(X.astype(np.float32), y)


def test_warm_starts_calibration_and_files(blobs, tmp_path):
    X, y = blobs
    model = SoftmaxRegression(penalty="l1", warm_start=True, solver=solvers.OrthantNewton(50)).fit(X, y)
    assert model.fit(X, y).n_iter_ == 0
    save_model(model, tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.coef_, model.coef_)
    svm = LinearSVM(0.05, penalty="l1", loss="squared_hinge", calibrate="temperature").fit(X, y)
    np.testing.assert_array_equal(svm.classes_[svm.predict_proba(X).argmax(axis=1)], svm.predict(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"penalty": "lasso"}, "penalty='lasso'"),
        ({"penalty": "elasticnet"}, "l1_ratio=None with penalty='elasticnet'"),
        ({"penalty": "elasticnet", "l1_ratio": 1.5}, "l1_ratio=1.5"),
        ({"penalty": "elasticnet", "l1_ratio": "half"}, "l1_ratio='half'"),
        ({"penalty": "elasticnet", "l1_ratio": float("nan")}, "l1_ratio=nan"),
        ({"l1_ratio": 0.5}, "l1_ratio=0.5 with penalty='l2'"),
        ({"penalty": "l1", "l1_ratio": 1.0}, "with penalty='l1'"),
        (
            {"penalty": "l1", "loss": "hinge"},
            "the hinge of weston_watkins, whose slope jumps. Use loss='squared_hinge'",
        ),
        ({"penalty": "l1", "multi_class": "crammer_singer"}, "squared hinge of crammer_singer"),
        ({"penalty": "l1", "solver": "sgd"}, "stochastic gradient descent cannot take an L1 penalty"),
        ({"penalty": "l1", "solver": "gradient_descent"}, "gradient descent cannot take an L1 penalty"),
        ({"penalty": "l1", "solver": "lbfgs"}, "L-BFGS cannot take an L1 penalty. Use fit with solver='auto'"),
        ({"penalty": "l1", "solver": "newton_cg"}, "Newton-CG cannot take an L1 penalty"),
        ({"penalty": "l1", "solver": "dual"}, "dual coordinate ascent cannot take an L1 penalty"),
        ({"penalty": "l1", "solver": "interior_point"}, "interior point cannot take an L1 penalty"),
    ],
)
def test_parameters_that_make_no_sense(blobs, change, message):
    with pytest.raises(UsageError) as caught:
        LinearSVM(**{"loss": "squared_hinge", **change}).fit(*blobs)
    assert message in str(caught.value)


def test_partial_fit_takes_no_l1_penalty(blobs):
    X, y = blobs
    for penalty, _ in PENALTIES:
        model = SoftmaxRegression().partial_fit(X, y, classes=np.unique(y)).set_params(**penalty)
        assert not hasattr(model, "partial_fit")
        with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as caught:
            model.partial_fit(X, y)
        assert "cannot take an L1 penalty" in str(caught.value.__cause__)
    assert hasattr(SoftmaxRegression(penalty="elasticnet", l1_ratio=0), "partial_fit")


@pytest.mark.parametrize("X", [np.zeros((20, 3)), np.ones((20, 3)) * [1, 2, 3], np.full((20, 3), 1e-300)])
def test_rows_that_tell_nothing_give_a_finite_model(X):
    y = np.arange(20) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for model in (SoftmaxRegression(penalty="l1"), LinearSVM(penalty="l1", loss="squared_hinge")):
            model.fit(X, y)
            assert np.all(np.isfinite(model.decision_function(X)))
