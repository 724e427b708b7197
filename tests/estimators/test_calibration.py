import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax as scipy_log_softmax

from hinge import LinearSVM, datasets, load_model, save_model
from hinge.errors import DataError, UsageError
from hinge.estimators.calibration import fit_temperature


def cost(a, scores, y, v):
    return -float(v @ scipy_log_softmax(a * scores, axis=1)[np.arange(len(y)), y])


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_the_temperature_is_the_likeliest(size):
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((300, 4))
    y = np.array([rng.choice(4, p=p) for p in np.exp(scipy_log_softmax(1.7 * scores, axis=1))])
    v = rng.uniform(0, 2, 300)
    best = minimize_scalar(cost, bounds=(0.1, 10), args=(scores, y, v), method="bounded", options={"xatol": 1e-10})
    assert 1 / (fit_temperature(scores * size, y, v) / size) == pytest.approx(best.x, rel=1e-5)


@pytest.mark.parametrize("separable", [True, False])
def test_scores_that_always_or_never_tell_the_class_give_a_finite_temperature(separable):
    scores = np.eye(3)[np.arange(30) % 3]
    y = np.arange(30) % 3 if separable else np.arange(30) // 3 % 3
    assert 0 < fit_temperature(scores, y, None) < np.inf
    assert 0 < fit_temperature(-scores, y, None) < np.inf


@pytest.fixture(scope="module", params=["two", "ten"])
def digits(request):
    data = datasets.load_digits()
    kept = data.y < 2 if request.param == "two" else slice(None)
    noise = np.random.default_rng(0).normal(0, 4, data.X[kept].shape)
    X, y = (data.X[kept] + noise).astype(np.float32), data.y[kept]
    return X[::2], y[::2], X[1::2], y[1::2]


@pytest.mark.parametrize(
    "options", [{"loss": "squared_hinge"}, {"loss": "squared_hinge", "multi_class": "one_vs_rest"}]
)
def test_probabilities_agree_with_predictions_and_tell_how_often_they_are_right(digits, options):
    X, y, X_test, y_test = digits
    model = LinearSVM(reg=3.0, calibrate="temperature", **options).fit(X, y)
    p = model.predict_proba(X_test)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X_test))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X_test)), p, rtol=1e-5)
    assert abs(p.max(axis=1).mean() - model.score(X_test, y_test)) < 0.05
    plain = LinearSVM(reg=3.0, **options).fit(X, y)
    np.testing.assert_array_equal(plain.coef_, model.coef_)
    assert not hasattr(plain, "predict_proba")


def test_a_row_of_weight_two_counts_twice(digits):
    X, y, _, _ = digits
    v = np.random.default_rng(0).integers(0, 3, len(y))
    model = LinearSVM(reg=3.0, loss="squared_hinge", calibrate="temperature", random_state=0)
    model.fit(X, y, sample_weight=v)
    assert 0 < model.temperature_ < np.inf


def test_a_model_file_keeps_the_temperature(digits, tmp_path):
    X, y, X_test, _ = digits
    model = LinearSVM(reg=3.0, loss="squared_hinge", calibrate="temperature").fit(X, y)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X_test), model.predict_proba(X_test))
    assert again.duality_gap_ == model.duality_gap_
    assert again.converged_


def test_a_class_of_one_row_cannot_be_held_out():
    with pytest.raises(DataError, match="single row"):
        LinearSVM(calibrate="temperature", loss="squared_hinge").fit(np.eye(5), [0, 0, 0, 0, 1])


def test_a_method_that_does_not_exist():
    with pytest.raises(UsageError, match="calibrate='platt'"):
        LinearSVM(calibrate="platt", loss="squared_hinge").fit(np.eye(4), [0, 0, 1, 1])
