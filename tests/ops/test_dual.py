"""Dual coordinate ascent below the solver: a row's exact solution by sorting, by kernels and by a generic program."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import LinearConstraint, minimize

from hinge.ops import CpuBackend, DualPasses, Loss, ReferenceBackend
from hinge.ops.dual import best_row, dual_slopes

HINGES = [
    Loss(kind, squared, margin)
    for kind in ("weston_watkins", "crammer_singer", "one_vs_rest")
    for squared, margin in ((False, 1.0), (True, 1.0), (False, 0.3), (True, 2.5))
]

SOFTMAX = Loss("softmax")
LOSSES = [*HINGES, SOFTMAX]


def ids(loss):
    return f"{loss.kind}{'-squared' if loss.squared else ''}-{loss.margin}"


def row_value(loss, s, before, y, q, alpha):
    """The row's own objective at α, from its definition."""
    (gain,), (u,) = dual_slopes(loss, np.array([alpha]), np.array([y], dtype=np.int32))
    (_,), (u_before,) = dual_slopes(loss, np.array([before]), np.array([y], dtype=np.int32))
    change = u - u_before
    return gain + s @ change - q / 2 * change @ change


def by_generic_program(loss, s, before, y, q):
    C = len(s)
    rivals = [c for c in range(C) if c != y or loss.kind in ("one_vs_rest", "softmax")]
    sum_bounded = loss.kind == "crammer_singer" and not loss.squared
    least = 1.0 if loss.kind == "softmax" else -np.inf
    upper = 1.0 if not loss.squared and not sum_bounded else None

    def full(a):
        alpha = np.zeros(C)
        alpha[rivals] = a
        return alpha

    return minimize(
        lambda a: -row_value(loss, s, before, y, q, full(a)),
        before[rivals],
        method="SLSQP",
        bounds=[(0, upper)] * len(rivals),
        constraints=[LinearConstraint(np.ones((1, len(rivals))), lb=least, ub=1)] if sum_bounded or least == 1 else [],
        options={"ftol": 1e-14, "maxiter": 1000},
    )


def feasible(rng, loss, C, y):
    if loss.kind == "softmax":
        return rng.dirichlet(np.ones(C))
    alpha = rng.choice([0.0, 1.0, 0.5, 0.2], C) if loss.kind != "crammer_singer" else rng.dirichlet(np.ones(C))
    if loss.kind != "one_vs_rest":
        alpha[y] = 0
    return alpha


def rows_of_scores(C):
    rng = np.random.default_rng(C)
    for case in range(12):
        s = rng.standard_normal(C) * rng.choice([0.3, 2.0])
        if case % 3 == 0:
            s = np.round(s)  # ties
        if case == 4:
            s[:] = 0
        y = int(rng.integers(C))
        yield rng, s, y, float(rng.choice([0.05, 0.7, 10.0]))


@pytest.mark.parametrize("loss", LOSSES, ids=ids)
@pytest.mark.parametrize("C", [2, 3, 6])
def test_the_best_row_by_sorting_is_the_best(loss, C):
    for rng, s, y, q in rows_of_scores(C):
        before = feasible(rng, loss, C, y)
        best = np.array(best_row(loss, s.tolist(), before.tolist(), y, q))
        assert np.all(best >= 0)
        if loss.kind == "softmax":
            assert best.sum() == pytest.approx(1, abs=1e-12)
        elif loss.kind != "one_vs_rest":
            assert best[y] == 0
        if not loss.squared:
            assert (best.sum() if loss.kind == "crammer_singer" else best.max()) <= 1 + 1e-13
        value = row_value(loss, s, before, y, q, best)
        program = by_generic_program(loss, s, before, y, q)
        assert value >= -program.fun - 1e-9 * max(1, abs(value))
        for share in (1e-4, 1e-2, 0.3):  # no feasible point near it is better, either
            for other in (feasible(rng, loss, C, y) for _ in range(20)):
                nearby = best + share * (other - best)
                assert value >= row_value(loss, s, before, y, q, nearby) - 1e-12 * max(1, abs(value))


def native_best(loss, s, before, y, q, form, dtype):
    """One row with features e_0 and W = s e_0ᵀ: an epoch solves exactly this row's problem."""
    x = np.zeros((1, 3))
    x[0, 0] = 1.0
    x[0, 1:] = 0 if form == "compressed" else 1e-30
    rows = sparse.csr_array(x.astype(dtype)) if form == "sparse" else x.astype(dtype)
    passes = CpuBackend(1).bind(rows, np.array([y], dtype=np.int32), None, len(s))
    ascent = passes.dual_ascent(loss, penalty=1 / q, intercept=False, penalize_intercept=False, seed=0)
    assert ascent._sparse == (form != "dense")
    W = np.zeros((len(s), 3))
    W[:, 0] = s
    ascent.refresh(-W)
    groups, _, width = ascent._alpha.shape
    lanes = np.zeros(groups * width)
    lanes[: len(s)] = before
    if loss.kind == "softmax":
        lanes.fill(ascent._alpha.min())
        lanes[: len(s)] = np.log(before)
    ascent._alpha[:, 0] = lanes.reshape(groups, width)
    assert ascent.epoch() == 1.0
    return ascent


@pytest.mark.parametrize("loss", LOSSES, ids=ids)
@pytest.mark.parametrize("C", [2, 3, 4, 5, 8, 9, 16, 17, 40, 70])
@pytest.mark.parametrize("form", ["sparse", "compressed", "dense"])
def test_the_kernels_find_the_same_row(loss, C, form):
    for dtype in (np.float64, np.float32):
        for rng, s, y, q in rows_of_scores(C):
            s, q = s.astype(dtype).astype(np.float64), float(dtype(q))
            before = feasible(rng, loss, C, y).astype(dtype).astype(np.float64)
            want = np.array(best_row(loss, s.tolist(), before.tolist(), y, q))
            ascent = native_best(loss, s, before, y, q, form, dtype)
            # Scores and q·α lose an ulp of their size each, and α is their difference over q.
            scale = (np.abs(s).max() * 2 + loss.margin + q * (1 + before.sum())) / min(q, 1)
            tolerance = 16 * np.finfo(dtype).eps * max(scale, 1)
            np.testing.assert_allclose(ascent.alpha[0], want, rtol=0, atol=tolerance)
            (_,), (u,) = dual_slopes(loss, ascent.alpha.astype(float), np.array([y]))
            (_,), (u_before,) = dual_slopes(loss, before[None], np.array([y]))
            np.testing.assert_allclose(ascent.weights[:, 0], s - q * (u - u_before), rtol=0, atol=q * 4 * tolerance)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(LOSSES),
    st.lists(st.integers(-3, 3), min_size=2, max_size=7),
    st.integers(0, 100),
    st.sampled_from([1e-3, 0.25, 1.0, 64.0]),
)
def test_whole_scores_where_ties_abound(loss, scores, which, q):
    y, s = which % len(scores), np.array(scores, dtype=float)
    before = feasible(np.random.default_rng(which), loss, len(s), y)
    want = best_row(loss, s.tolist(), before.tolist(), y, q)
    got = native_best(loss, s, before, y, q, "sparse", np.float64).alpha[0]
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-10)


# --- dual points -----------------------------------------------------------------------------------------------------


def data(N=37, D=9, C=5, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.5)
    return X.astype(dtype), rng.integers(0, C, N).astype(np.int32), rng.uniform(0, 2, N).astype(dtype), rng


@pytest.mark.parametrize("loss", LOSSES, ids=ids)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("form", ["dense", "sparse", "gemm"])
def test_dual_points_agree_with_the_reference(loss, intercept, form):
    C = 40 if form == "gemm" else 5
    X, y, v, rng = data(C=C)
    weights = rng.standard_normal((C, 9 + intercept))
    alpha = rng.random((37, C)) if loss.squared else np.stack([feasible(rng, loss, C, y[i]) for i in range(37)])
    if loss.kind not in ("one_vs_rest", "softmax"):
        alpha[np.arange(37), y] = 0
    rows = sparse.csr_array(X) if form == "sparse" else X
    for threads in (1, 2):
        got = CpuBackend(threads).bind(rows, y, v, C).loss_and_dual_point(loss, weights, alpha)
        want = ReferenceBackend().bind(X, y, v, C).loss_and_dual_point(loss, weights, alpha)
        assert got[0] == pytest.approx(want[0], rel=1e-12)
        assert got[1] == pytest.approx(want[1], rel=1e-12)
        np.testing.assert_allclose(got[2], want[2], rtol=0, atol=1e-12)


def test_a_sum_that_rounding_pushed_over_its_bound_is_scaled_back():
    X, y, v, _ = data()
    alpha = np.full((37, 5), 0.25 * (1 + 1e-6))
    alpha[np.arange(37), y] = 0
    loss = Loss("crammer_singer")
    gain = CpuBackend(1).bind(X, y, v, 5).loss_and_dual_point(loss, np.zeros((5, 9)), alpha)[1]
    assert gain == pytest.approx(v.sum(), rel=1e-14)


@pytest.mark.parametrize("backend", [CpuBackend(1), CpuBackend(2), ReferenceBackend()], ids=lambda b: b.name)
def test_weights_follow_the_dual_variables(backend):
    """W = −Σ vᵢ uᵢ xᵢᵀ / penalty after any number of visits, whatever centring and resting did on the way."""
    for loss in LOSSES:
        for intercept in (False, True):
            X, y, v, _ = data()
            passes = backend.bind(X, y, v, 5)
            assert isinstance(passes, DualPasses)
            ascent = passes.dual_ascent(loss, penalty=3.0, intercept=intercept, penalize_intercept=False, seed=1)
            for _ in range(7):
                ascent.epoch()
            u = dual_slopes(loss, ascent.alpha, y)[1]
            G = (v[:, None] * u).T @ X
            if intercept and backend.name == "cpu":
                share = v / v.sum()
                G -= np.outer((v[:, None] * u).sum(axis=0), share @ X)
            np.testing.assert_allclose(ascent.weights[:, :9], -G / 3.0, rtol=0, atol=1e-12)
