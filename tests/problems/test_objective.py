"""The training objective and its estimate of curvature."""

import numpy as np
import pytest
from scipy import sparse

from hinge.errors import UsageError
from hinge.ops import CpuBackend, Loss, ReferenceBackend
from hinge.problems.gradient_check import check_gradient
from hinge.problems.objective import bind_objective, score_curvature

LOSSES = [Loss("softmax")] + [
    Loss(kind, squared, 0.8)
    for kind in ("weston_watkins", "crammer_singer", "one_vs_rest")
    for squared in (False, True)
]


def name(loss):
    return f"squared_{loss.kind}" if loss.squared else loss.kind


def problem(N=40, D=5, C=4):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) * rng.uniform(0.5, 3, D)
    return X, rng.integers(0, C, N).astype(np.int32), rng.uniform(0, 2, N)


def objective(loss, *, weighted=True, intercept=True, l2=0.3, form=np.asarray, C=4):
    X, y, v = problem(C=C)
    weight = v if weighted else None
    return bind_objective(CpuBackend(1), form(X), y, weight, C, loss=loss, l2=l2, intercept=intercept)


def with_intercept(intercept):
    X, _, _ = problem()
    return np.hstack([X, np.ones((len(X), 1))]) if intercept else X


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_value_is_the_definition_and_the_gradient_its_slope(loss, intercept, form):
    X, y, v = problem()
    P = objective(loss, intercept=intercept, form=form)
    W = np.random.default_rng(1).standard_normal((4, 5 + intercept))
    mean = ReferenceBackend("loops").bind(X, y, v, 4).loss_and_gradient(loss, W)[0] / v.sum()
    value, _ = P.value_and_gradient(W)
    assert value == pytest.approx(mean + 0.15 * (W[:, :5] ** 2).sum(), rel=1e-13)
    assert check_gradient(P.value_and_gradient, W).worst_relative_error <= 1e-6


@pytest.mark.parametrize("weighted", [False, True])
def test_intercepts_are_not_penalised(weighted):
    loss = Loss("one_vs_rest")
    W = np.zeros((4, 6))
    W[:, 5] = 1e9
    free = objective(loss, weighted=weighted, l2=0.0).value_and_gradient(W)
    held = objective(loss, weighted=weighted, l2=7.0).value_and_gradient(W)
    assert held[0] == free[0]
    np.testing.assert_array_equal(held[1], free[1])


def test_batches_average_to_the_whole():
    P = objective(Loss("softmax"), weighted=False)
    W = np.random.default_rng(2).standard_normal((4, 6))
    parts = [P.batch_value_and_gradient(W, rows) for rows in np.arange(40).reshape(5, 8)]
    value, gradient = P.value_and_gradient(W)
    assert np.mean([part[0] for part in parts]) == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(np.mean([part[1] for part in parts], axis=0), gradient, rtol=0, atol=1e-14)


def test_batches_leave_row_weights_to_the_draw():
    P, W = objective(Loss("softmax")), np.random.default_rng(2).standard_normal((4, 6))
    rows = np.arange(8)
    weighted = P.batch_value_and_gradient(W, rows)
    plain = objective(Loss("softmax"), weighted=False).batch_value_and_gradient(W, rows)
    assert weighted[0] == plain[0]


def scores_hessian(loss, X, y, v, W):
    """The Hessian of the weighted mean loss in all weights, column by column of differences of the gradient."""
    passes = ReferenceBackend().bind(X, y, v, len(W))
    columns = []
    for k in range(W.size):
        step = np.zeros(W.size)
        step[k] = 1e-5
        step = step.reshape(W.shape)
        ahead, behind = passes.loss_and_gradient(loss, W + step)[1], passes.loss_and_gradient(loss, W - step)[1]
        columns.append(((ahead - behind) / 2e-5).ravel())
    return np.array(columns) / v.sum()


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.has_curvature], ids=name)
@pytest.mark.parametrize("backend", [CpuBackend(1), ReferenceBackend()], ids=["native", "vectorized"])
def test_curvature_product_is_the_hessian_times_a_direction(loss, backend):
    X, y, v = problem()
    rng = np.random.default_rng(3)
    W, V = rng.standard_normal((4, 5)), rng.standard_normal((4, 5))
    H = scores_hessian(loss, X, y, v, W)
    np.testing.assert_allclose(H, H.T, atol=1e-8)
    product = backend.bind(X, y, v, 4).curvature_product(loss, W, V) / v.sum()
    np.testing.assert_allclose(product.ravel(), H @ V.ravel(), rtol=0, atol=1e-7 * np.abs(H).max())


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if not loss.has_curvature], ids=name)
def test_a_plain_hinge_has_none(loss):
    X, y, v = problem()
    with pytest.raises(UsageError, match="plain hinge has no curvature"):
        CpuBackend(1).bind(X, y, v, 4).curvature_product(loss, np.zeros((4, 5)), np.ones((4, 5)))


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("intercept", [False, True])
def test_curvature_estimate_is_the_largest_eigenvalue(loss, weighted, form, intercept):
    _, _, v = problem()
    v = v if weighted else np.ones(40)
    rows = with_intercept(intercept)
    exact = float(np.linalg.eigvalsh((rows.T * v) @ rows / v.sum())[-1])
    estimate = objective(loss, weighted=weighted, form=form, intercept=intercept).curvature(sweeps=200, seed=0)
    assert estimate.largest == pytest.approx(score_curvature(loss, 4) * exact + 0.3, rel=1e-10)
    quick = objective(loss, weighted=weighted, form=form, intercept=intercept).curvature(sweeps=10, seed=0)
    assert 0.9 * estimate.largest <= quick.largest <= estimate.largest * (1 + 1e-12)
    assert quick.single_row >= quick.largest


def test_curvature_of_a_single_row_is_the_trace():
    """vᵀMv averages to the trace over random v: here over many seeds."""
    rows = with_intercept(True)
    P = objective(Loss("one_vs_rest", squared=True), weighted=False, l2=0.0)
    estimates = [P.curvature(sweeps=1, seed=seed).single_row / 2 for seed in range(400)]
    assert np.mean(estimates) == pytest.approx(float((rows**2).sum() / len(rows)), rel=0.05)


def test_curvature_of_rows_that_are_all_zero():
    y = np.array([0, 1, 0], dtype=np.int32)
    P = bind_objective(CpuBackend(1), np.zeros((3, 2)), y, None, 2, loss=Loss("softmax"), l2=0.5, intercept=False)
    assert P.curvature(sweeps=5, seed=0).largest == 0.5


@pytest.mark.parametrize("C", [2, 3, 6])
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.has_curvature], ids=name)
def test_bound_on_the_curvature_in_the_scores(loss, C):
    """The Hessian in the scores of one row never exceeds the bound, and comes close for some row."""
    rng = np.random.default_rng(4)
    largest = 0.0
    for k in range(60):
        scores = rng.standard_normal(C) * (0.1 if k % 2 else 1.0)
        if k == 0:  # two classes that share everything, all margins violated
            scores = np.array([0.0, 0.0] + [-50.0] * (C - 2)) if loss.kind == "softmax" else np.zeros(C)
        passes = ReferenceBackend().bind(np.ones((1, 1)), np.zeros(1, dtype=np.int32), None, C)
        H = np.array([passes.curvature_product(loss, scores[:, None], e[:, None]).ravel() for e in np.eye(C)])
        largest = max(largest, float(np.linalg.eigvalsh((H + H.T) / 2)[-1]))
        assert largest <= score_curvature(loss, C) * (1 + 1e-12)
    assert largest >= 0.5 * score_curvature(loss, C)


def test_zero_weights_lie_as_the_rows_want_them():
    assert objective(Loss("softmax")).zero_weights().flags.c_contiguous
    assert objective(Loss("softmax"), form=sparse.csr_array).zero_weights().flags.f_contiguous
    assert objective(Loss("softmax"), intercept=False).zero_weights().shape == (4, 5)
