import numpy as np
import pytest
from scipy import sparse

from hinge.ops import CpuBackend, Loss
from hinge.problems import preconditioner, row_sample
from hinge.problems.objective import bind_objective
from hinge.problems.preconditioner import ClassBlocks, PreconditionerBuilder, TwoScales
from hinge.solvers import LBFGS

LOSSES = [Loss("softmax"), Loss("weston_watkins", True), Loss("one_vs_rest", True)]


def name(loss):
    return f"squared_{loss.kind}" if loss.squared else loss.kind


def problem(loss, *, N=120, D=7, l2=0.02, dtype=np.float64, form=np.asarray, intercept=True):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((N, D)) * np.linspace(0.5, 2, D)
    y = (X @ rng.standard_normal((D, 3)) + rng.gumbel(size=(N, 3))).argmax(axis=1).astype(np.int32)
    v = rng.uniform(0.5, 2, N).astype(dtype)
    objective = bind_objective(CpuBackend(2), form(X.astype(dtype)), y, v, 3, loss=loss, l2=l2, intercept=intercept)
    weights = rng.standard_normal(objective.zero_weights().shape).astype(dtype) * 0.3
    curvature = np.empty(N, dtype)
    objective.evaluate(weights, curvature)
    return objective, weights, curvature


def dense_hessian(objective, weights, *, penalized=False):
    size = weights.size
    H = np.zeros((size, size))
    for k in range(size):
        unit = np.zeros(size, dtype=weights.dtype)
        unit[k] = 1
        product = objective.passes.curvature_product(objective.loss, weights, unit.reshape(weights.shape))
        H[:, k] = product.ravel() / objective.total_weight
    penalty = np.eye(size)
    if objective.free_intercept and objective.loss.kind != "one_vs_rest" and not penalized:
        # M keeps what all of them share.
        free = np.arange(size) % weights.shape[1] == weights.shape[1] - 1
        penalty[np.ix_(free, free)] = 1 / len(weights)
    return H + objective.l2 * penalty


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("intercept", [True, False])
def test_with_all_rows_and_room_for_all_coordinates_it_is_the_hessian(loss, form, intercept):
    objective, weights, curvature = problem(loss, form=form, intercept=intercept)
    model = PreconditionerBuilder(objective, 0).build(weights, curvature, budget=10)
    assert model.exact
    assert isinstance(model, ClassBlocks if loss.kind == "one_vs_rest" else TwoScales)
    R = np.random.default_rng(0).standard_normal((2, *weights.shape))
    H = dense_hessian(objective, weights)
    for right, solved in zip(R, model.solve(R), strict=True):
        np.testing.assert_allclose(solved.ravel(), np.linalg.solve(H, right.ravel()), rtol=1e-9, atol=1e-10)


def test_at_zero_the_kronecker_form_is_softmax_own_hessian():
    objective, weights, curvature = problem(LOSSES[0])
    weights[:] = 0
    objective.evaluate(weights, curvature)
    model = PreconditionerBuilder(objective, 0).build(weights, curvature, budget=10)
    R = np.random.default_rng(0).standard_normal((1, *weights.shape))
    H = dense_hessian(objective, weights, penalized=True)
    np.testing.assert_allclose(model.solve(R)[0].ravel(), np.linalg.solve(H, R.ravel()), rtol=1e-9, atol=1e-10)


def test_rows_far_from_the_origin_are_no_harder():
    rng = np.random.default_rng(0)
    X, y = rng.normal(loc=100, size=(80, 2)), rng.integers(0, 2, 80).astype(np.int32)
    for l2 in (1.0, 0.1, 1e-2, 1e-4):
        objective = bind_objective(CpuBackend(1), X, y, None, 2, loss=LOSSES[0], l2=l2, intercept=True)
        assert LBFGS().minimize(objective, max_iter=100, seed=0, tol=1e-8).n_iter < 20


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_a_model_of_few_rows_and_coordinates_is_close_and_positive(loss, monkeypatch):
    monkeypatch.setattr(preconditioner, "SAMPLE_ROWS", 1500)
    monkeypatch.setattr(preconditioner, "SMALL", 8)
    monkeypatch.setattr(preconditioner, "LEADING_COORDINATES", 12)
    monkeypatch.setattr(preconditioner, "PAIRS_PER_UNKNOWN", 60)
    objective, weights, curvature = problem(loss, N=6000, D=11)
    model = PreconditionerBuilder(objective, 0).build(weights, curvature, budget=100)
    assert not model.exact
    size = weights.size
    inverse = model.solve(np.eye(size).reshape(size, *weights.shape)).reshape(size, size)
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-10)
    spread = np.linalg.eigvals(inverse @ dense_hessian(objective, weights)).real
    assert spread.min() > 0.1
    assert spread.max() / spread.min() < 20


def test_columns_of_very_different_sizes_do_not_hide_each_other():
    rng = np.random.default_rng(2)
    scale = 10.0 ** np.linspace(-7, 7, 15)
    X = rng.standard_normal((200, 15)) * scale
    y = rng.integers(0, 3, 200).astype(np.int32)
    objective = bind_objective(CpuBackend(1), X, y, None, 3, loss=LOSSES[0], l2=1e-3, intercept=True)
    weights, curvature = objective.zero_weights(), np.empty(200)
    objective.evaluate(weights, curvature)
    model = PreconditionerBuilder(objective, 0).build(weights, curvature, budget=10)
    R = rng.standard_normal((1, *weights.shape)) * np.append(scale, 1)
    R -= R.mean(axis=1, keepdims=True)  # the loss is flat along what all classes share
    solved = model.solve(R)[0]
    H = dense_hessian(objective, weights)
    # In units in which the diagonal of H is 1, the model must undo H up to a moderate factor.
    unit = np.sqrt(np.diag(H)).reshape(weights.shape)
    ratio = np.linalg.norm(unit * solved) / np.linalg.norm(R[0] / unit)
    assert 0.1 < ratio < 10


def test_many_columns_serve_as_their_own_directions(monkeypatch):
    monkeypatch.setattr(preconditioner, "SMALL", 4)
    monkeypatch.setattr(preconditioner, "ITERATION_FLOPS", 0.0)
    objective, weights, curvature = problem(LOSSES[0], N=30, D=60)
    model = PreconditionerBuilder(objective, 0).build(weights, curvature, budget=1)
    assert model.U is None
    assert np.all(model.curvature > 0)


def test_rows_are_drawn_by_what_they_bend_and_stand_for_the_rest():
    rng = np.random.default_rng(0)
    curvature = rng.gamma(0.1, size=50_000)
    totals = []
    for seed in range(20):
        rows, drawn = row_sample.draw_rows(curvature, 2000, np.random.default_rng(seed))
        assert len(np.unique(rows)) == len(rows) <= 2001
        totals.append(float(drawn @ curvature[rows]))
    assert np.std(totals) < 0.02 * curvature.sum()
    assert abs(np.mean(totals) / curvature.sum() - 1) < 0.01


@pytest.mark.parametrize("curvature", [np.zeros(5000), np.eye(1, 5000)[0]])
def test_flat_rows_can_be_drawn_too(curvature):
    rows, drawn = row_sample.draw_rows(curvature, 100, np.random.default_rng(0))
    assert np.all(np.isfinite(drawn))
    assert drawn.sum() == pytest.approx(5000, rel=0.2)
    assert rows.max() < 5000
