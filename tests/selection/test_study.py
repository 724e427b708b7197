"""The main job: no leak from the test rows, scaling folded in, results that repeat."""

from dataclasses import replace

import numpy as np
import pytest

from hinge import datasets
from hinge.errors import DataError
from hinge.selection import run_study
from hinge.selection.scaling import Scaling


@pytest.fixture(scope="module")
def study():
    return run_study(datasets.load_digits(), seed=0, n_jobs=1)


def test_digits_pass_the_mark(study):
    assert [t.key for t in study.classifiers] == ["linear_svm", "softmax"]
    for trained in study.classifiers:
        assert trained.test_accuracy >= 0.95
        assert trained.confusion.counts.sum() == study.n_test == 359
        assert trained.confusion.accuracy == trained.test_accuracy
        assert trained.templates.shape == (10, 8, 8)
        assert trained.model.callbacks is None
    assert study.n_train + study.n_validation + study.n_test == 1797


def test_the_same_seed_gives_the_same_study(study):
    again = run_study(datasets.load_digits(), seed=0, n_jobs=1)
    for a, b in zip(study.classifiers, again.classifiers, strict=True):
        assert a.model.coef_.tobytes() == b.model.coef_.tobytes()


def test_test_rows_have_no_say(study):
    """Other values and labels in the test rows change nothing that was learnt."""
    data = datasets.load_digits()
    X_test, y_test = data.X[:300] * 0 + 7, data.y[:300][::-1]
    given = replace(data, X=data.X[300:], y=data.y[300:], test=(data.X[:300], data.y[:300]))
    changed = replace(given, test=(X_test, y_test))
    for a, b in zip(run_study(given).classifiers, run_study(changed).classifiers, strict=True):
        assert a.model.coef_.tobytes() == b.model.coef_.tobytes()
        assert a.test_accuracy >= 0.85 > b.test_accuracy  # on these rows the chosen fit gets 0.9


def test_progress_rises_to_one():
    shares = []
    run_study(datasets.load_iris(), progress=lambda doing, share: shares.append(share))
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_test_rows_with_an_unknown_class_are_refused():
    data = datasets.load_iris()
    with pytest.raises(DataError, match="which no training row has"):
        run_study(replace(data, test=(data.X[:2], np.array(["setosa", "rose"]))))


@pytest.mark.parametrize("pictures", [False, True])
def test_scaling_folds_into_a_linear_model(pictures):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5)) * [1, 1e3, 1e-3, 0, 5] + [0, 10, -4, 3, 0]
    scaling = Scaling.of(X, pictures=pictures)
    scaled = scaling.apply(X)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-9)
    if not pictures:
        np.testing.assert_allclose(scaled.std(axis=0), [1, 1, 1, 0, 1], atol=1e-9)

    class Model:
        coef_ = rng.normal(size=(3, 5))
        intercept_ = rng.normal(size=3)

    model = Model()
    scores = scaled @ model.coef_.T + model.intercept_
    scaling.fold_into(model)
    np.testing.assert_allclose(X @ model.coef_.T + model.intercept_, scores, rtol=1e-9, atol=1e-9)


def test_scaling_of_values_at_the_edge_of_float64():
    X = np.array([[1e300, 1e-300], [-1e300, 2e-300], [5e299, 0.0]])
    scaled = Scaling.of(X, pictures=False).apply(X)
    np.testing.assert_allclose(scaled.std(axis=0), 1, rtol=1e-6)
