"""The losses as functions: values, gradients, the three forms, and what they refuse."""

import numpy as np
import pytest
from scipy import sparse

from hinge import losses
from hinge.errors import DataError, UsageError

HINGES = [losses.multiclass_hinge, losses.crammer_singer_hinge, losses.one_vs_rest_hinge]
ALL = [losses.softmax_cross_entropy, *HINGES]
IMPLEMENTATIONS = ["loops", "vectorized", "native"]


def problem(seed=0, N=12, D=4, C=5):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((D, C)), rng.standard_normal((N, D)), rng.integers(0, C, N)


def by_definition(loss, W, x, y, margin, squared):
    """The loss of one row, as its docstring has it."""
    s = (x @ W).tolist()
    phi = (lambda m: max(0.0, m) ** 2) if squared else (lambda m: max(0.0, m))
    others = [score for c, score in enumerate(s) if c != y]
    if loss is losses.softmax_cross_entropy:
        return float(np.log(np.exp(s).sum()) - s[y])
    if loss is losses.multiclass_hinge:
        return sum(phi(margin + score - s[y]) for score in others)
    if loss is losses.crammer_singer_hinge:
        return phi(margin + max(others) - s[y])
    return phi(margin - s[y]) + sum(phi(margin + score) for score in others)


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
@pytest.mark.parametrize("loss", ALL)
@pytest.mark.parametrize("squared", [False, True])
def test_value_is_weighted_mean_plus_penalty(loss, impl, squared):
    W, X, y = problem()
    v = np.random.default_rng(1).uniform(0, 3, len(y))
    options = {} if loss is losses.softmax_cross_entropy else {"margin": 0.7, "squared": squared}
    each = [by_definition(loss, W, X[i], y[i], 0.7, squared) for i in range(len(y))]
    expected = np.average(each, weights=v) + 0.3 * (W**2).sum()
    value, gradient = loss(W, X, y, reg=0.3, sample_weight=v, impl=impl, **options)
    assert value == pytest.approx(expected, rel=1e-13)
    assert isinstance(value, float)
    assert gradient.shape == W.shape


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
@pytest.mark.parametrize("loss", ALL)
@pytest.mark.parametrize("options", [{}, {"margin": 2.5}, {"squared": True}, {"squared": True, "margin": 0.4}])
def test_gradient(loss, impl, options):
    if loss is losses.softmax_cross_entropy:
        options = {}
    for seed in range(3):
        W, X, y = problem(seed)
        v = np.random.default_rng(seed).uniform(0, 2, len(y))
        for extra in ({}, {"reg": 0.2, "sample_weight": v}):
            check = losses.check_gradient(loss, W, X, y, impl=impl, **options, **extra)
            assert check.n_checked == W.size
            assert check.worst_relative_error <= 1e-6, check


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
@pytest.mark.parametrize("loss", ALL)
def test_weight_two_is_the_row_twice(loss, impl):
    W, X, y = problem()
    copies = np.repeat(np.arange(len(y)), 1 + np.arange(len(y)) % 3)
    weighted = loss(W, X, y, reg=0.1, sample_weight=1 + np.arange(len(y)) % 3, impl=impl)
    repeated = loss(W, X[copies], y[copies], reg=0.1, impl=impl)
    assert weighted[0] == pytest.approx(repeated[0], rel=1e-14)
    np.testing.assert_allclose(weighted[1], repeated[1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
@pytest.mark.parametrize("loss", ALL)
@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.coo_matrix, sparse.dok_array])
def test_sparse_rows(loss, impl, form):
    W, X, y = problem()
    X[X < 0.3] = 0
    value, gradient = loss(W, X, y, reg=0.1, impl=impl)
    other_value, other_gradient = loss(W, form(X), y, reg=0.1, impl=impl)
    assert other_value == pytest.approx(value, rel=1e-14)
    assert isinstance(other_gradient, np.ndarray)
    np.testing.assert_allclose(other_gradient, gradient, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
@pytest.mark.parametrize("dtype", ["f4", ">f4", ">f8", "f2", "i4", "u1", "?"])
def test_types_of_numbers(impl, dtype):
    W, X, y = problem()
    rows = np.abs(np.round(X)).astype(dtype)
    expected = losses.multiclass_hinge(np.round(W), rows.astype(np.float64), y)
    value, gradient = losses.multiclass_hinge(np.round(W).astype("f4"), rows, y, impl=impl)
    assert value == pytest.approx(expected[0], rel=1e-6)
    assert gradient.dtype == (np.float32 if rows.dtype == np.float32 else np.float64)
    np.testing.assert_allclose(gradient, expected[1], atol=1e-6)


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
def test_lists_do(impl):
    value, gradient = losses.multiclass_hinge([[0, 0], [0, 0]], [[1, 2], [3, 4]], [0, 1], impl=impl)
    assert value == 1
    np.testing.assert_array_equal(gradient, [[1, -1], [1, -1]])


def test_arguments_stay_as_they_were():
    W, X, y = problem()
    for array in (W, X, y):
        array.flags.writeable = False
    for loss in ALL:
        for impl in IMPLEMENTATIONS:
            loss(W, X, y, reg=0.5, impl=impl)


# --- numbers of extreme size -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
@pytest.mark.parametrize("size", [1e4, 1e300])
def test_softmax_of_large_scores(impl, size):
    """Rows with the largest score right, wrong and right; all warnings are errors here."""
    W, X, y = np.array([[size, -size]]), np.array([[1.0], [1.0], [-1.0]]), np.array([0, 1, 1])
    value, gradient = losses.softmax_cross_entropy(W, X, y, impl=impl)
    assert value == pytest.approx(2 * size / 3, rel=1e-15)
    np.testing.assert_allclose(gradient, [[1 / 3, -1 / 3]], rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax(dtype):
    limit = np.finfo(dtype).max
    scores = np.array([[0, 0, 0, 0], [1, 2, 3, 4], [limit, -limit, 0, 1], [1e4, -1e4, 1e4, 0]], dtype=dtype)
    p = losses.softmax(scores)
    assert p.dtype == dtype
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(p[0], 0.25)
    np.testing.assert_allclose(p[1], np.exp([1, 2, 3, 4]) / np.exp([1, 2, 3, 4]).sum(), rtol=1e-6)
    np.testing.assert_array_equal(p[2], [1, 0, 0, 0])
    np.testing.assert_array_equal(p[3], [0.5, 0, 0.5, 0])
    np.testing.assert_array_equal(losses.softmax(scores[1]), p[1])
    assert losses.softmax(np.array([1, 1])).dtype == np.float64


def test_cross_entropy():
    p = np.array([[0.5, 0.5], [0.25, 0.75]])
    assert losses.cross_entropy(p, np.array([0, 1])) == pytest.approx(-(np.log(0.5) + np.log(0.75)) / 2)
    assert losses.cross_entropy([[0.0, 1.0]], [0]) == np.inf
    W, X, y = problem()
    value = losses.cross_entropy(losses.softmax(X @ W), y)
    assert value == pytest.approx(losses.softmax_cross_entropy(W, X, y)[0], rel=1e-14)


def test_one_hot():
    np.testing.assert_array_equal(losses.one_hot(np.array([2, 0])), [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(losses.one_hot([1], 4), [[0, 1, 0, 0]])
    assert losses.one_hot(np.zeros(0, dtype=int)).shape == (0, 0)
    assert losses.one_hot(np.zeros(0, dtype=int), 3).shape == (0, 3)


def test_l2_penalty():
    value, gradient = losses.l2_penalty(np.array([[1.0, -2.0], [3.0, 0.0]]), 0.25)
    assert value == 3.5
    np.testing.assert_array_equal(gradient, [[0.5, -1.0], [1.5, 0.0]])
    value, gradient = losses.l2_penalty(np.full((2, 2), 1e300), 0.0)
    assert value == 0
    assert not gradient.any()


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
@pytest.mark.parametrize("loss", ALL)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"W": np.zeros((3, 5))}, r"X of shape \(12, 4\) and W of shape \(3, 5\) do not multiply"),
        ({"W": np.zeros(4)}, "do not multiply"),
        ({"X": np.zeros(4)}, "do not multiply"),
        ({"X": np.zeros((12, 4, 1))}, "do not multiply"),
        ({"X": sparse.csr_array(np.zeros((12, 3)))}, "do not multiply"),
        ({"X": sparse.coo_array(np.zeros(4))}, "do not multiply"),
        ({"W": np.zeros((4, 1))}, "single column"),
        ({"X": np.zeros((0, 4)), "y": np.zeros(0, dtype=int)}, "X has no rows"),
        ({"y": np.zeros(11, dtype=int)}, "does not give 12 rows a label each"),
        ({"y": np.zeros((12, 1), dtype=int)}, "does not give 12 rows a label each"),
        ({"y": np.full(12, 5)}, "labels must be integers from 0 to 4"),
        ({"y": np.full(12, -1)}, "labels must be integers from 0 to 4"),
        ({"y": np.full(12, 2**32)}, "labels must be integers from 0 to 4"),
        ({"y": np.full(12, 1.0)}, "labels must be integers from 0 to 4"),
        ({"y": np.full(12, "a")}, "labels must be integers from 0 to 4"),
        ({"X": np.full((12, 4), "a")}, "X: values of type <U1 are not numbers"),
        ({"X": np.zeros((12, 4), dtype=complex)}, "X: values of type complex128 are not numbers"),
        ({"X": sparse.csr_array(np.ones((12, 4), dtype=complex))}, "X: values of type complex128 are not numbers"),
        ({"W": np.full((4, 5), "a")}, "W: values of type <U1 are not numbers"),
        ({"sample_weight": np.ones(11)}, "weights must be 12 finite numbers"),
        ({"sample_weight": np.ones((12, 1))}, "weights must be 12 finite numbers"),
        ({"sample_weight": np.r_[-1.0, np.ones(11)]}, "none negative"),
        ({"sample_weight": np.zeros(12)}, "not all 0"),
        ({"sample_weight": np.full(12, np.nan)}, "finite"),
        ({"sample_weight": np.full(12, np.inf)}, "finite"),
        ({"sample_weight": np.full(12, "a")}, "sample_weight: values of type <U1 are not numbers"),
    ],
)
def test_data_errors(loss, impl, changes, message):
    W, X, y = problem()
    with pytest.raises(DataError, match=message):
        loss(**{"W": W, "X": X, "y": y, **changes}, impl=impl)


@pytest.mark.parametrize("loss", ALL)
@pytest.mark.parametrize("reg", [-1.0, float("nan"), float("inf")])
def test_penalties_that_are_none(loss, reg):
    with pytest.raises(UsageError, match=r"reg=.* is not a finite number"):
        loss(*problem(), reg=reg)


@pytest.mark.parametrize("loss", HINGES)
@pytest.mark.parametrize("margin", [0.0, -1.0, float("nan"), float("inf")])
def test_margins_that_are_none(loss, margin):
    with pytest.raises(UsageError, match=r"margin=.* is not a positive number"):
        loss(*problem(), margin=margin)


@pytest.mark.parametrize("impl", ["", "numpy", "Loops", "cpu"])
def test_unknown_implementation(impl):
    with pytest.raises(UsageError, match=r"unknown impl.*'loops', 'vectorized' or 'native'"):
        losses.softmax_cross_entropy(*problem(), impl=impl)


def test_helpers_refuse_too():
    for labels in ([-1], [0.5], ["a"]):
        with pytest.raises(DataError, match="labels must be integers"):
            losses.one_hot(np.array(labels))
    for labels in (np.array(1), np.array([[1]])):
        with pytest.raises(DataError, match="does not give 1 rows a label each"):
            losses.one_hot(labels)
    with pytest.raises(DataError, match="labels must be integers from 0 to 1"):
        losses.one_hot(np.array([2]), 2)
    with pytest.raises(DataError, match="not N×C"):
        losses.cross_entropy(np.ones(3), np.zeros(3, dtype=int))
    with pytest.raises(DataError, match="no rows"):
        losses.cross_entropy(np.ones((0, 3)), np.zeros(0, dtype=int))
    with pytest.raises(DataError, match="labels must be integers from 0 to 2"):
        losses.cross_entropy(np.ones((1, 3)), np.array([3]))
    with pytest.raises(DataError, match="not numbers"):
        losses.softmax(np.array(["a"]))
