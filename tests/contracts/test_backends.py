"""Every back end computes the same: loops, NumPy and the native kernels of the instruction set in use.

`test_instruction_sets.py` runs this file once more for each other instruction set.
"""

import os

import numpy as np
import pytest
from scipy import sparse

from hinge.ops import CpuBackend, Loss, ReferenceBackend, system_info, vectorized

LOSSES = [Loss("softmax", margin=1.5)] + [
    Loss(kind, squared, 1.5)
    for kind in ("weston_watkins", "crammer_singer", "one_vs_rest")
    for squared in (False, True)
]
HINGES = LOSSES[1:]
CURVED = [loss for loss in LOSSES if loss.has_curvature]
NATIVE = CpuBackend(1)
LOOPS, VECTORIZED = ReferenceBackend("loops"), ReferenceBackend("vectorized")


def name(loss):
    return f"squared_{loss.kind}" if loss.squared else loss.kind


def problem(rng, *, most_rows, most_features, most_classes, whole, dtype=np.float64):
    """Rows, labels, row weights, weights and a direction. Whole numbers make ties and margins of 0 exact."""
    N, D = int(rng.integers(1, most_rows + 1)), int(rng.integers(1, most_features + 1))
    C = int(rng.integers(2, most_classes + 1))
    columns = D + int(rng.integers(0, 2))
    y = rng.integers(0, C, N).astype(np.int32)
    if whole:  # with the margin of 1.5, steps of a half
        X = rng.integers(-2, 3, (N, D)).astype(dtype)
        W, V = (rng.integers(-2, 3, (C, columns)).astype(dtype) / 2 for _ in range(2))
        v = rng.integers(0, 4, N).astype(dtype)
    else:
        X = rng.standard_normal((N, D)).astype(dtype)
        W, V = (rng.standard_normal((C, columns)).astype(dtype) for _ in range(2))
        v = rng.uniform(0, 2, N).astype(dtype)
    if rng.integers(0, 8) == 0:
        W[:] = 0
    return X, y, v if rng.integers(0, 2) else None, W, V, C


def assert_close(got, want, tolerance):
    """Compare with the largest entry: entries that cancel to nothing carry the rounding of the others."""
    atol = tolerance * max(1.0, float(np.abs(want).max(initial=0.0)))
    np.testing.assert_allclose(got, want, rtol=0, atol=atol, equal_nan=False)


def test_the_instruction_set_is_the_one_asked_for():
    forced = os.environ.get("HINGE_ISA")
    assert system_info()["isa"] == (forced or system_info()["supported"][-1])


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "real"])
def test_loops_vectorized_and_native_agree(loss, whole):
    rng = np.random.default_rng(1)
    exact = whole and loss.kind != "softmax"
    ties = 0
    for _ in range(200):
        X, y, v, W, _, C = problem(rng, most_rows=7, most_features=4, most_classes=6, whole=whole)
        value, gradient = LOOPS.bind(X, y, v, C).loss_and_gradient(loss, W)
        ties += not W.any()
        for backend in (VECTORIZED, NATIVE):
            other_value, other_gradient = backend.bind(X, y, v, C).loss_and_gradient(loss, W)
            assert_close(other_value, value, 0 if exact else 1e-12)
            assert_close(other_gradient, gradient, 0 if exact else 1e-12)
    assert ties > 10


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("form", ["dense", "csr32", "csr64"])
def test_native_and_vectorized_agree_on_larger_problems(loss, form):
    rng = np.random.default_rng(2)
    for k in range(70):
        whole = k % 2 == 0
        X, y, v, W, V, C = problem(rng, most_rows=300, most_features=70, most_classes=45, whole=whole)
        exact = whole and loss.kind != "softmax"
        subset = rng.integers(0, len(y), rng.integers(1, 400)) if k % 3 == 0 else None
        rows = X
        if form != "dense":
            rows = sparse.csr_array(X)
            wide = np.int32 if form == "csr32" else np.int64
            rows.indices, rows.indptr = rows.indices.astype(wide), rows.indptr.astype(wide)
        native, reference = NATIVE.bind(rows, y, v, C), VECTORIZED.bind(X, y, v, C)
        value, gradient = native.loss_and_gradient(loss, W, subset)
        expected_value, expected_gradient = reference.loss_and_gradient(loss, W, subset)
        assert isinstance(value, float)
        assert_close(value, expected_value, 0 if exact else 1e-10)
        assert_close(gradient, expected_gradient, 0 if exact else 1e-10)
        if loss.has_curvature:
            product = native.curvature_product(loss, W, V, subset)
            assert_close(product, reference.curvature_product(loss, W, V, subset), 0 if exact else 1e-10)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_row_curvature_is_the_trace_of_each_rows_second_derivative(loss, form):
    rng = np.random.default_rng(9)
    for k in range(40):
        X, y, v, W, _, C = problem(rng, most_rows=90, most_features=9, most_classes=40, whole=k % 2 == 0)
        rows = sparse.csr_array(X) if form == "csr" else X
        subset = rng.permutation(len(y))[: rng.integers(1, len(y) + 1)] if k % 3 == 0 else None
        visited = slice(None) if subset is None else subset
        got, want, oracle = np.full(len(y), -1.0), np.full(len(y), -1.0), np.full(len(y), -1.0)
        NATIVE.bind(rows, y, v, C).loss_and_gradient(loss, W, subset, got)
        VECTORIZED.bind(X, y, v, C).loss_and_gradient(loss, W, subset, want)
        scores = X @ W[:, : X.shape[1]].T + (W[:, -1] if W.shape[1] > X.shape[1] else 0)
        trace = np.zeros(len(y))
        if loss.has_curvature:  # Σ_c of the c-th entry of D e_c
            for c in range(C):
                unit = np.zeros_like(scores)
                unit[:, c] = 1
                trace += vectorized.CURVATURES[loss.kind](scores, unit, y, loss)[:, c]
        oracle[visited] = (trace * (1 if v is None else v))[visited]
        assert_close(want, oracle, 1e-12)
        assert_close(got, oracle, 1e-12)


@pytest.mark.parametrize("loss", CURVED, ids=name)
def test_curvature_factors_multiply_as_the_curvature_does(loss):
    rng = np.random.default_rng(10)
    for k in range(40):
        X, y, _, W, V, _ = problem(rng, most_rows=30, most_features=4, most_classes=8, whole=k % 2 == 0)
        S, U = (X @ M[:, : X.shape[1]].T for M in (W, V))
        parts = vectorized.FACTORS[loss.kind](S, y, loss)
        product = parts.diagonal * U
        for sign, factor in ((-1, parts.minus), (1, parts.plus)):
            if factor is not None:
                product = product + sign * factor * (factor * U).sum(axis=1, keepdims=True)
        assert_close(product, vectorized.CURVATURES[loss.kind](S, U, y, loss), 1e-12)


@pytest.mark.parametrize("loss", HINGES, ids=name)
def test_float32_is_exact_on_small_whole_numbers(loss):
    """All sums stay below 2²⁴ in steps of a quarter, so the hinges may not be off by a single bit."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        X, y, v, W, V, C = problem(rng, most_rows=200, most_features=40, most_classes=40, whole=True, dtype=np.float32)
        double = VECTORIZED.bind(X.astype(float), y, None if v is None else v.astype(float), C)
        native = NATIVE.bind(X, y, v, C)
        value, gradient = native.loss_and_gradient(loss, W)
        expected_value, expected_gradient = double.loss_and_gradient(loss, W.astype(float))
        assert value == expected_value
        assert gradient.dtype == np.float32
        np.testing.assert_array_equal(gradient, expected_gradient)
        if loss.has_curvature:
            np.testing.assert_array_equal(
                native.curvature_product(loss, W, V),
                double.curvature_product(loss, W.astype(float), V.astype(float)),
            )


def test_float32_softmax_is_off_by_rounding_only():
    """A score is off by at most ε·(D + 1)·Σ|w·x|, which is the relative error of its exponential; the sum of C of
    them, the division and their own rounding add C + 10 ε; n terms of a gradient add about 2√n ε."""
    rng = np.random.default_rng(4)
    loss, eps = Loss("softmax"), float(np.finfo(np.float32).eps)
    for _ in range(100):
        X, y, v, W, _, C = problem(rng, most_rows=300, most_features=40, most_classes=40, whole=False, dtype=np.float32)
        N, D = X.shape
        v64 = np.ones(N) if v is None else v.astype(float)
        double = VECTORIZED.bind(X.astype(float), y, v64, C)
        expected_value, expected_gradient = double.loss_and_gradient(loss, W.astype(float))
        value, gradient = NATIVE.bind(X, y, v, C).loss_and_gradient(loss, W)
        ones = np.abs(np.hstack([X.astype(float), np.ones((N, W.shape[1] - D))]))
        sizes = (ones @ np.abs(W.astype(float)).T).max(axis=1)
        slope_error = eps * (C + 10 + 2 * (D + 1) * sizes)
        assert abs(value - expected_value) <= v64 @ (slope_error * (1 + sizes))
        bound = (v64 * (slope_error + 2 * np.sqrt(N) * eps)) @ ones
        assert np.all(np.abs(gradient - expected_gradient) <= bound)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("backend", [LOOPS, VECTORIZED, NATIVE], ids=["loops", "vectorized", "native"])
def test_ties_go_to_the_first_rival_and_met_margins_are_free(loss, backend):
    """At W = 0 all rivals are equal; a score ahead by exactly the margin pays nothing and pulls nothing."""
    X, y = np.ones((1, 1)), np.array([1], dtype=np.int32)
    at_zero = backend.bind(X, y, None, 4).loss_and_gradient(loss, np.zeros((4, 1)))[1].ravel()
    slope = 2 * loss.margin if loss.squared else 1.0
    expected = {
        "softmax": [0.25, -0.75, 0.25, 0.25],
        "weston_watkins": [slope, -3 * slope, slope, slope],
        "crammer_singer": [slope, -slope, 0, 0],
        "one_vs_rest": [slope, -slope, slope, slope],
    }[loss.kind]
    np.testing.assert_allclose(at_zero, expected, rtol=1e-15)
    if loss.kind != "softmax":
        met = np.array([[-1.5], [1.5], [-1.5], [-1.5]]) / (1 if loss.kind == "one_vs_rest" else 2)
        value, gradient = backend.bind(X, y, None, 4).loss_and_gradient(loss, met)
        assert value == 0
        assert not gradient.any()


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("backend", [LOOPS, VECTORIZED, NATIVE], ids=["loops", "vectorized", "native"])
def test_nan_in_a_row_shows_in_the_loss(loss, backend):
    X = np.ones((40, 3))
    X[33, 1] = np.nan
    y = (np.arange(40) % 3).astype(np.int32)
    value, gradient = backend.bind(X, y, None, 3).loss_and_gradient(loss, np.zeros((3, 3)))
    assert np.isnan(value)
    assert not np.all(np.isfinite(gradient))


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("backend", [VECTORIZED, NATIVE], ids=["vectorized", "native"])
@pytest.mark.parametrize("broken", [0, 1, 2])
def test_nan_in_one_class_shows_in_the_loss(loss, backend, broken):
    """Also where no row belongs to that class."""
    W = np.array([[0.5], [1.0], [-1.0]])
    W[broken] = np.nan
    y = np.full(5, (broken + 1) % 3, dtype=np.int32)
    assert np.isnan(backend.bind(np.ones((5, 1)), y, None, 3).loss_and_gradient(loss, W)[0])


@pytest.mark.parametrize("loss", CURVED, ids=name)
def test_curvature_product_is_the_slope_of_the_gradient(loss):
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((60, 5)), rng.integers(0, 4, 60).astype(np.int32)
    v = rng.uniform(0, 2, 60)
    W, V, U = (rng.standard_normal((4, 6)) for _ in range(3))
    for backend in (VECTORIZED, NATIVE):
        passes = backend.bind(X, y, v, 4)
        step = 1e-6
        ahead, behind = (passes.loss_and_gradient(loss, W + sign * step * V)[1] for sign in (1, -1))
        product = passes.curvature_product(loss, W, V)
        assert_close(product, (ahead - behind) / (2 * step), 1e-7)
        other = passes.curvature_product(loss, W, U)
        assert float((product * U).sum()) == pytest.approx(float((other * V).sum()), rel=1e-12)
        assert (product * V).sum() >= 0
