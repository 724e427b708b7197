"""L1 penalties against proximal gradients in NumPy: the same optimum, and proofs that never promise too much."""

import numpy as np
import pytest
from scipy import sparse

from hinge.errors import DivergenceError, UsageError
from hinge.ops import CpuBackend, Loss, ReferenceBackend
from hinge.ops.vectorized import LOSSES
from hinge.problems.objective import bind_objective, score_curvature
from hinge.solvers import LBFGS, SGD, DualCoordinateAscent, GradientDescent, InteriorPoint, NewtonCG, OrthantNewton

SMOOTH = [Loss("softmax"), Loss("weston_watkins", True, 1.5), Loss("one_vs_rest", True)]
SOLVER = OrthantNewton()


def name(loss):
    return f"squared_{loss.kind}" if loss.squared else loss.kind


each_loss = pytest.mark.parametrize("loss", SMOOTH, ids=name)


def rows(N=120, D=10, C=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    W = rng.standard_normal((C, D)) * (rng.random((C, D)) < 0.3)
    y = (X @ W.T + 0.5 * rng.gumbel(size=(N, C))).argmax(axis=1).astype(np.int32)
    y[:C] = np.arange(C)
    return X, y, rng.uniform(0.2, 2, N)


def bind(loss, X, y, v=None, *, l1=0.01, l2=0.0, C=4, backend=None, **intercept):
    intercept = intercept or {"intercept": True}
    return bind_objective(backend or CpuBackend(1), X, y, v, C, loss=loss, l1=l1, l2=l2, **intercept)


def by_proximal_gradients(objective, X, y, v, most=20_000):
    """FISTA with restarts (O'Donoghue & Candès, 2015), until a step moves nothing: the oracle, and its objective."""
    C, D = objective.passes.n_classes, X.shape[1]
    v = np.ones(len(y)) if v is None else v
    Z = np.hstack([X, np.ones((len(y), 1))]) if objective.intercept else X
    penal = np.where(np.arange(Z.shape[1]) < objective.penalized, 1.0, 0.0)
    p = v / v.sum()

    def slope(W):
        value, R = LOSSES[objective.loss.kind](Z @ W.T, y, objective.loss)
        return p @ value, (p[:, None] * R).T @ Z + objective.l2 * penal * W

    def total(W):
        return slope(W)[0] + objective.l1 * np.abs(W * penal).sum() + objective.l2 / 2 * np.sum(penal * W**2)

    rate = 1 / (score_curvature(objective.loss, C) * np.linalg.eigvalsh((Z.T * p) @ Z)[-1] + objective.l2)
    W = look = np.zeros((C, Z.shape[1]))
    t = 1.0
    for _ in range(most):
        step = look - rate * slope(look)[1]
        new = np.sign(step) * np.maximum(np.abs(step) - rate * objective.l1 * penal, 0)
        if np.abs(new - W).max() <= 1e-15 * max(1.0, np.abs(new).max()) and t > 1:
            break
        if np.vdot(look - new, new - W) > 0:
            t, look = 1.0, new
        else:
            after = (1 + np.sqrt(1 + 4 * t * t)) / 2
            look, t = new + (t - 1) / after * (new - W), after
        W = new
    assert W.shape == (C, D + objective.intercept)
    return total(W), W


@each_loss
@pytest.mark.parametrize(("l1", "l2"), [(0.1, 0.0), (0.01, 0.0), (0.01, 0.02), (0.02, 1e-9), (1e-3, 0.1)])
@pytest.mark.parametrize(
    "intercept",
    [{"intercept": True}, {"intercept": True, "penalize_intercept": True}, {"intercept": False}],
    ids=["free", "penalized", "none"],
)
def test_it_ends_at_the_optimum_with_a_proof(loss, l1, l2, intercept):
    X, y, v = rows()
    objective = bind(loss, X, y, v, l1=l1, l2=l2, **intercept)
    result = SOLVER.minimize(objective, max_iter=500, seed=0, tol=1e-9)
    assert result.stopped == "gap reached"
    assert result.gap <= 1e-9
    best, _ = by_proximal_gradients(objective, X, y, v)
    assert result.objective == pytest.approx(best, rel=1e-8)
    assert result.objective == objective.evaluate(result.weights).value


@each_loss
def test_it_satisfies_the_optimality_conditions(loss):
    X, y, v = rows()
    objective = bind(loss, X, y, v, l2=0.01)
    result = SOLVER.minimize(objective, max_iter=500, seed=0, tol=1e-11)
    g = objective.evaluate(result.weights).gradient
    W, slopes = result.weights[:, :10], g[:, :10]
    held = W != 0
    assert held.any()
    assert not held.all()
    np.testing.assert_allclose(slopes[held], -0.01 * np.sign(W[held]), atol=1e-7)
    assert np.abs(slopes[~held]).max() <= 0.01 + 1e-7
    np.testing.assert_allclose(g[:, 10], 0, atol=1e-7)


@each_loss
@pytest.mark.parametrize("seed", range(4))
def test_gaps_are_never_optimistic(loss, seed):
    X, y, v = rows(seed=seed)
    rng = np.random.default_rng(seed)
    for l2 in (0.0, 1e-6, 0.05):
        for intercept in (True, False):
            objective = bind(loss, X, y, v, l1=0.02, l2=l2, intercept=intercept)
            exact = SOLVER.minimize(objective, max_iter=500, seed=0, tol=1e-12)
            best = exact.objective
            means = objective.class_means() if intercept else None
            for size in (3.0, 0.3, 1e-2, 1e-4, 1e-7):
                weights = exact.weights + size * rng.standard_normal(exact.weights.shape)
                weights[:, :10] *= rng.random((4, 10)) < 0.7
                at = objective.evaluate(weights)
                gap = objective.gap(weights, at, means)
                assert (at.value - best) / max(at.value, 0.02 + l2) <= gap + 1e-12
            told = []
            SOLVER.minimize(objective, max_iter=500, seed=0, tol=1e-6, callbacks=[told.append])
            for line in told:
                assert (line.objective - best) / line.objective <= line.gap + 1e-12


@each_loss
def test_a_penalty_beyond_the_first_slope_leaves_only_intercepts(loss):
    X, y, v = rows()
    free = bind(loss, X, y, v, l1=1e3)
    result = SOLVER.minimize(free, max_iter=100, seed=0, tol=1e-12)
    assert np.all(result.weights[:, :10] == 0)
    assert np.abs(free.evaluate(result.weights).gradient[:, 10]).max() < 1e-9
    if loss.kind == "softmax":
        share = np.bincount(y, weights=v) / v.sum()
        np.testing.assert_allclose(np.diff(result.weights[:, 10]), np.diff(np.log(share)), atol=1e-8)
    edge = float(np.abs(free.evaluate(result.weights).loss_gradient[:, :10]).max())
    for factor, some in ((1.001, False), (0.98, True)):
        objective = bind(loss, X, y, v, l1=factor * edge)
        weights = SOLVER.minimize(objective, max_iter=100, seed=0, tol=1e-10).weights
        assert np.any(weights[:, :10] != 0) == some


@each_loss
@pytest.mark.parametrize(
    ("make", "l1"),
    [
        ("more columns than rows", 1e-3),
        ("more columns than rows", 0.03),
        ("duplicates", 0.01),
        ("badly scaled", 0.01),
        ("constant column", 0.01),
    ],
)
def test_hard_rows(loss, make, l1):
    X, y, v = rows(60, 400) if make.startswith("more") else rows(200, 30)
    if make == "duplicates":
        X = np.hstack([X, X, X[:, :5]])
    if make == "badly scaled":
        X = X * np.geomspace(1e-3, 1e3, 30)
    if make == "constant column":
        X[:, 3] = 7.0
    objective = bind(loss, X, y, v, l1=l1)
    result = SOLVER.minimize(objective, max_iter=1000, seed=0, tol=1e-7)
    assert result.stopped == "gap reached"


@each_loss
@pytest.mark.parametrize("D", [10, 400])
def test_sparse_rows_have_the_dense_optimum(loss, D):
    X, y, v = rows(300, D)
    X = np.where(np.abs(X) > 1, X, 0)
    results = [
        SOLVER.minimize(bind(loss, form(X), y, v, l1=0.02), max_iter=500, seed=0, tol=1e-9)
        for form in (np.asarray, sparse.csr_matrix, sparse.csr_array)
    ]
    for result in results:
        assert result.objective == pytest.approx(results[0].objective, rel=2e-9)
        assert result.weights.shape == (4, D + 1)
        assert 0 < np.count_nonzero(result.weights[:, :D]) < 4 * D


@pytest.mark.parametrize("loss", [SMOOTH[0], SMOOTH[2]], ids=name)
def test_rare_words_that_a_sample_of_rows_misses(loss):
    """More rows than are sampled, most of them alike where it counts: conjugate gradients must not stop on a few."""
    rng = np.random.default_rng(0)
    N, D, C = 10_000, 1500, 4
    share = 1 / np.arange(1, D + 1)
    columns = rng.choice(D, size=(N, 6), p=share / share.sum())
    y = (columns.max(axis=1) % C).astype(np.int32)
    X = sparse.csr_array((np.ones(6 * N, np.float32), (np.repeat(np.arange(N), 6), columns.ravel())), shape=(N, D))
    X.sum_duplicates()
    result = SOLVER.minimize(bind(loss, X, y, l1=1e-3), max_iter=300, seed=0, tol=1e-4)
    assert result.stopped == "gap reached"


def test_the_reference_back_end_will_do():
    X, y, v = rows()
    for form in (np.asarray, sparse.csr_array):
        ours = SOLVER.minimize(bind(SMOOTH[0], form(X), y, v), max_iter=100, seed=0, tol=1e-10)
        objective = bind(SMOOTH[0], form(X), y, v, backend=ReferenceBackend())
        theirs = SOLVER.minimize(objective, max_iter=100, seed=0, tol=1e-10)
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-9)


@each_loss
def test_float32_reaches_a_gap_of_its_own_precision(loss):
    X, y, v = rows(400, 200)
    exact = SOLVER.minimize(bind(loss, X, y, v), max_iter=500, seed=0, tol=1e-9)
    objective = bind(loss, X.astype(np.float32), y, v.astype(np.float32))
    result = SOLVER.minimize(objective, max_iter=500, seed=0, tol=1e-4)
    assert result.gap <= 1e-4
    assert result.weights.dtype == np.float32
    assert abs(result.objective / exact.objective - 1) < 1e-4
    stuck = SOLVER.minimize(objective, max_iter=2000, seed=0, tol=0.0)
    assert stuck.stopped == "no further progress: rounding hides the descent"
    assert stuck.gap < 1e-3


def test_two_classes_stay_opposite_to_the_last_bit():
    X, y, v = rows(200, 20, 2)
    for loss in SMOOTH[:2]:
        weights = SOLVER.minimize(bind(loss, X, y, v, C=2, l1=0.02), max_iter=100, seed=0, tol=1e-9).weights
        np.testing.assert_array_equal(weights[0], -weights[1])


def test_a_start_saves_the_way():
    X, y, v = rows(300, 300)
    objective = bind(SMOOTH[0], X, y, v)
    cold = SOLVER.minimize(objective, max_iter=200, seed=0, tol=1e-8)
    warm = SOLVER.minimize(objective, max_iter=200, seed=0, tol=1e-6, start=cold.weights)
    assert warm.n_iter == 0
    np.testing.assert_array_equal(warm.weights, cold.weights)
    lower = bind(SMOOTH[0], X, y, v, l1=0.009)
    assert SOLVER.minimize(lower, max_iter=200, seed=0, tol=1e-8, start=cold.weights).n_iter < cold.n_iter


def test_columns_without_weights_are_read_less():
    X, y, v = rows(300, 2000)
    told = []
    SOLVER.minimize(bind(SMOOTH[0], X, y, v, l1=0.03), max_iter=200, seed=0, tol=1e-8, callbacks=[told.append])
    assert told[-1].passes < 2.5 * told[-1].iteration  # a Newton step over all columns takes that at least
    assert any(line.gap == np.inf for line in told)


@pytest.mark.parametrize("D", [10, 300])
def test_limits_callbacks_and_interrupts_end_a_run(D):
    X, y, v = rows(200, D)
    objective = bind(SMOOTH[0], X, y, v)
    result = SOLVER.minimize(objective, max_iter=3, seed=0, tol=0.0)
    assert (result.n_iter, result.stopped) == (3, "all iterations done")
    assert np.isfinite(result.gap)
    result = SOLVER.minimize(objective, max_iter=50, seed=0, tol=0.0, callbacks=[lambda line: line.iteration == 1])
    assert (result.n_iter, result.stopped) == (1, "ended by a callback")

    def interrupt(line):
        if line.iteration == 2:
            raise KeyboardInterrupt

    result = SOLVER.minimize(objective, max_iter=50, seed=0, tol=0.0, callbacks=[interrupt])
    assert result.stopped == "interrupted"
    assert result.n_iter == 2
    assert result.objective == result.history[-1].objective
    assert result.objective == pytest.approx(objective.evaluate(result.weights).value, rel=1e-14)


def test_the_same_seed_gives_the_same_bits():
    X, y, v = rows(500, 300)
    first, again = (
        SOLVER.minimize(bind(SMOOTH[0], X, y, v, backend=CpuBackend(2)), max_iter=200, seed=3, tol=1e-8)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.weights, again.weights)


@pytest.mark.parametrize(
    "solver", [LBFGS(), NewtonCG(), SGD(), GradientDescent(), DualCoordinateAscent(), InteriorPoint()]
)
def test_no_other_solver_takes_an_l1_penalty(solver):
    X, y, v = rows()
    with pytest.raises(UsageError, match="cannot take an L1 penalty"):
        solver.minimize(bind(SMOOTH[1], X, y, v), max_iter=3, seed=0)


@pytest.mark.parametrize("loss", [Loss("weston_watkins"), Loss("crammer_singer", True)], ids=name)
def test_losses_whose_slope_jumps_are_refused(loss):
    X, y, v = rows()
    with pytest.raises(UsageError, match="losses that bend"):
        SOLVER.minimize(bind(loss, X, y, v), max_iter=3, seed=0)


def test_a_start_beyond_all_numbers_is_an_error():
    X, y, v = rows()
    objective = bind(SMOOTH[2], X, y, v)
    with pytest.raises(DivergenceError, match="at its start"), np.errstate(over="ignore", invalid="ignore"):
        SOLVER.minimize(objective, max_iter=3, seed=0, start=np.full((4, 11), 1e300))


def test_options_that_make_no_sense():
    with pytest.raises(UsageError, match="at least 1"):
        OrthantNewton(0)
