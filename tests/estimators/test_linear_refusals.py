"""What a user may get wrong with a linear classifier ends in an error that says what to do, or in a finite model."""

import numpy as np
import pytest
from scipy import sparse

from hinge import LinearSVM, SoftmaxRegression, solvers
from hinge.errors import DataError, DivergenceError, UsageError


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 6)) * 1.5
    y = rng.integers(0, 4, 240)
    return centres[y] + rng.normal(size=(240, 6)), np.array(["ant", "bee", "cat", "dog"])[y]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": 0}, "C=0 is not a positive number"),
        ({"C": "1"}, "C='1' is not a positive number"),
        ({"C": float("nan")}, "C=nan"),
        ({"reg": -1.0}, "reg=-1.0"),
        ({"C": 2.0, "reg": 1e-3}, "both C and reg"),
        ({"loss": "log"}, "loss='log'"),
        ({"multi_class": "ovo"}, "multi_class='ovo'"),
        ({"margin": 0}, "margin=0"),
        ({"solver": "smo"}, "solver='smo'"),
        ({"solver": 3}, "solver=3 is not a solver"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"class_weight": "even"}, "class_weight='even'"),
        ({"class_weight": {"eel": 1}}, "names 'eel', which is not a class"),
    ],
)
def test_parameters_that_make_no_sense(blobs, change, message):
    with pytest.raises(UsageError) as caught:
        LinearSVM(**change).fit(*blobs)
    assert message in str(caught.value)


def damaged(blobs, row, column, value):
    X = blobs[0].copy()
    X[row, column] = value
    return X, blobs[1]


def test_values_that_are_not_finite_are_named_by_place(blobs):
    with pytest.raises(DataError, match=r"X, row 17, column 3: Input X contains NaN\. Drop these rows"):
        LinearSVM().fit(*damaged(blobs, 17, 3, np.nan))
    with pytest.raises(DataError, match=r"X, row 2, column 0: Input X contains infinity"):
        LinearSVM().fit(*damaged(blobs, 2, 0, -np.inf))
    X, y = damaged(blobs, 5, 4, np.nan)
    with pytest.raises(DataError, match="row 5, column 4"):
        LinearSVM().fit(sparse.csr_array(X), y)
    model = LinearSVM().fit(*blobs)
    with pytest.raises(DataError, match="row 5, column 4"):
        model.predict(X)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((0, 3)), [], "0 sample"),
        (np.zeros((3, 0)), [0, 1, 0], "0 feature"),
        (np.zeros((3, 2)), [0, 1], "inconsistent numbers of samples"),
        (np.zeros((3, 2)), ["a", "a", "a"], "only one class, 'a'"),
        (np.zeros((3, 2)), [0.0, np.nan, 1.0], "y, row 1: Input y contains NaN"),
        (np.arange(60.0).reshape(30, 2), np.linspace(0, 1, 30), "measurements rather than classes"),
        (np.array([[1e200, 0], [0, 1.0], [1, 1]]), [0, 1, 0], "squares overflow float64"),
        (np.zeros(3), [0, 1, 0], "1D array"),
        ([["a"], ["b"]], [0, 1], "could not convert"),
    ],
)
def test_data_that_cannot_be_learnt_from(X, y, message):
    with pytest.raises(DataError) as caught:
        LinearSVM().fit(X, y)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("weight", "message"), [([-1.0, 1, 1], "egative"), ([0.0, 0, 0], "all weights are 0|at least one non-zero")]
)
def test_weights_that_make_no_sense(weight, message):
    with pytest.raises(DataError, match=message):
        LinearSVM().fit(np.eye(3), [0, 1, 0], sample_weight=weight)


def test_a_rate_that_is_too_high_ends_in_an_error_that_says_so(blobs):
    X, y = blobs
    model = LinearSVM(loss="squared_hinge", solver=solvers.SGD(learning_rate=1e6, batch_size=32))
    with pytest.raises(DivergenceError, match="Lower learning_rate"), np.errstate(over="ignore", invalid="ignore"):
        model.fit(X, y)


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((20, 3)),
        np.ones((20, 3)) * [1, 2, 3],
        np.full((20, 3), 1e-300),
        np.repeat(np.eye(2), 10, axis=0) @ np.ones((2, 3)) * 1e100,
    ],
    ids=["zeros", "constant columns", "tiny", "huge duplicates"],
)
@pytest.mark.filterwarnings("ignore:The fit ended")  # no float64 gradient of 1e100 can prove a gap
def test_rows_that_tell_nothing_give_a_finite_model(X):
    y = np.arange(20) % 3
    for model in (LinearSVM(), SoftmaxRegression(), LinearSVM(loss="squared_hinge", solver=solvers.GradientDescent())):
        model.fit(X, y)
        assert np.all(np.isfinite(model.coef_))
        assert np.all(np.isfinite(model.decision_function(X)))


def test_fewer_rows_than_classes():
    model = LinearSVM().fit(np.eye(3), ["a", "b", "c"])
    assert list(model.predict(np.eye(3))) == ["a", "b", "c"]
