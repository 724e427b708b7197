"""Dual coordinate ascent: where it ends, what its gap promises, and how it goes there."""

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from hinge.errors import DivergenceError, ResourceError, UsageError
from hinge.ops import CpuBackend, Loss, ReferenceBackend
from hinge.problems.certificate import lower_bound, slopes_as_dual_point
from hinge.problems.objective import bind_objective
from hinge.solvers import DualCoordinateAscent

HINGES = [
    Loss(kind, squared) for kind in ("weston_watkins", "crammer_singer", "one_vs_rest") for squared in (False, True)
]
LOSSES = [*HINGES, Loss("softmax")]
SOLVER = DualCoordinateAscent()


def ids(loss):
    return f"{loss.kind}{'-squared' if loss.squared else ''}"


def problem(loss, *, N=200, D=12, C=4, l2=0.02, dtype=np.float64, form="C", weights=None, intercept=True, backend=None):
    rng = np.random.default_rng(N + D)
    X = rng.standard_normal((N, D)) + 1.0
    y = (X @ rng.standard_normal((D, C)) + 2 * rng.gumbel(size=(N, C))).argmax(axis=1)
    y[:C] = np.arange(C)
    X[rng.random((N, D)) < (0.7 if "csr" in form or form == "zeros" else 0.1)] = 0
    if weights == "repeats":
        times = rng.integers(0, 3, N)
        times[:C] = 1
        X, y, v = np.repeat(X, times, axis=0), np.repeat(y, times), None
    else:
        v = None
    if weights == "counts":
        v = rng.integers(0, 3, N).astype(dtype)
        v[:C] = 1
    X = X.astype(dtype)
    if "csr" in form:
        X = sparse.csr_array(X)
        if form == "csr64":
            X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    elif form == "F":
        X = np.asfortranarray(X)
    elif form == "strided":
        X = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    elif form == "reversed":
        X = X[::-1].copy()[::-1]
    backend = backend or CpuBackend(2)
    return bind_objective(backend, X, y.astype(np.int32), v, C, loss=loss, l2=l2, intercept=intercept)


def fit(objective, tol=1e-6, max_iter=20_000, **rest):
    return SOLVER.minimize(objective, max_iter=max_iter, seed=rest.pop("seed", 0), tol=tol, **rest)


@pytest.mark.parametrize("loss", HINGES, ids=ids)
def test_reaches_the_optimum_of_an_independent_program(make_objective, hinge_optimum, loss):
    objective = make_objective(loss, N=30)
    best = hinge_optimum(objective)
    result = fit(objective, tol=1e-7)
    assert result.stopped == "gap reached"
    assert result.objective == pytest.approx(best, rel=1e-6)
    assert best <= result.objective * (1 + 1e-8)
    assert result.objective - best <= (result.gap + 1e-8) * result.objective


@pytest.mark.parametrize("weighted", [False, True])
def test_softmax_ends_where_a_generic_program_does(make_objective, optimum, weighted):
    objective = make_objective(Loss("softmax"), weighted=weighted)
    result = fit(objective, tol=1e-9)
    assert result.stopped == "gap reached"
    assert result.objective == pytest.approx(optimum(objective), rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=ids)
@pytest.mark.parametrize("intercept", [False, True])
def test_all_forms_of_rows_end_alike(loss, intercept):
    for forms in (("C", "F", "strided", "reversed"), ("zeros", "csr32", "csr64")):
        values = []
        for form in forms:
            result = fit(problem(loss, form=form, intercept=intercept))
            assert result.gap <= 1e-6
            assert result.weights.shape == (4, 12 + intercept)
            values.append(result.objective)
        np.testing.assert_allclose(values, values[0], rtol=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=ids)
def test_a_row_of_weight_two_is_the_row_twice(loss):
    weighted, repeated = (fit(problem(loss, weights=kind), tol=1e-8) for kind in ("counts", "repeats"))
    assert weighted.objective == pytest.approx(repeated.objective, rel=2e-8)
    if loss.squared:
        np.testing.assert_allclose(weighted.weights[:, :12], repeated.weights[:, :12], rtol=0, atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES, ids=ids)
@pytest.mark.parametrize("form", ["C", "csr32"])
def test_float32(loss, form):
    precise = fit(problem(loss, form=form), tol=1e-7)
    result = fit(problem(loss, form=form, dtype=np.float32), tol=1e-5)
    assert result.weights.dtype == np.float32
    assert result.gap <= 1e-5
    assert result.objective == pytest.approx(precise.objective, rel=1.1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=ids)
@pytest.mark.parametrize(
    "shape",
    [
        {"C": 2},
        {"C": 50, "N": 300},
        {"N": 10, "D": 40},
        {"N": 60, "l2": 1e-6, "D": 80},  # separable
        {"l2": 30.0},
        {"C": 17, "N": 100, "form": "csr32"},
    ],
    ids=str,
)
def test_shapes(loss, shape):
    degenerate = loss.kind == "crammer_singer" and shape.get("C") == 50  # 15,000 α for 600 weights: the end is slow
    if loss.kind == "softmax" and shape.get("l2") == 1e-6:  # rows so heavy that each undoes the last: for L-BFGS
        shape = shape | {"l2": 1e-3}
    result = fit(problem(loss, **shape), tol=1e-4 if degenerate else 1e-6)
    assert result.stopped == "gap reached"


@pytest.mark.parametrize("loss", [Loss(h.kind, h.squared, 2.5) for h in HINGES], ids=ids)
def test_margins_scale_the_problem(loss):
    """W/Δ solves the problem of margin 1, with l2·Δ for plain hinges; P/Δ, or P/Δ² for squared ones, is its optimum."""
    power = 2 if loss.squared else 1
    plain = problem(Loss(loss.kind, loss.squared), l2=0.02 * 2.5 ** (2 - power))
    result, unit = fit(problem(loss), tol=1e-8), fit(plain, tol=1e-8)
    assert result.objective == pytest.approx(unit.objective * 2.5**power, rel=2e-8)


@pytest.mark.parametrize("loss", LOSSES, ids=ids)
def test_rows_of_zeros_and_equal_rows(loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    X[::4] = 0
    X[1::4] = X[1]
    y = rng.integers(0, 3, 40).astype(np.int32)
    for intercept in (False, True):
        for backend in (CpuBackend(1), ReferenceBackend()):
            objective = bind_objective(backend, X, y, None, 3, loss=loss, l2=0.1, intercept=intercept)
            assert fit(objective, max_iter=3000).gap <= 1e-6


@pytest.mark.parametrize("loss", LOSSES, ids=ids)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_gap_is_never_optimistic(loss, dtype):
    best = fit(problem(loss), tol=1e-9, max_iter=50_000)
    for epochs in (1, 2, 3, 5, 8, 13, 30, 100):
        result = fit(problem(loss, dtype=dtype), tol=0.0, max_iter=epochs)
        assert result.n_iter == epochs
        scale = max(result.objective, 0.02)
        noise = 1e-6 if dtype == np.float32 else 1e-8
        assert (result.objective - best.objective) / scale <= result.gap + noise
        assert result.gap == result.history[-1].gap
        value = problem(loss, dtype=dtype).value_and_gradient(result.weights)[0]
        assert result.objective == pytest.approx(value, rel=1e-6 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.has_curvature], ids=ids)
def test_its_end_has_a_small_gap_by_its_slopes_too(loss):
    """Another dual point: the slopes at the weights, which know nothing of α."""
    objective = problem(loss, intercept=False)
    result = fit(objective, tol=1e-10)
    at = objective.evaluate(result.weights)
    point = slopes_as_dual_point(at.mean_loss, at.loss_gradient, result.weights, None)
    bound = lower_bound(loss, objective.l2, point, None)
    assert bound <= result.objective * (1 + 1e-12)
    if loss.kind != "crammer_singer":  # its slopes jump where rivals are equal
        assert bound == pytest.approx(result.objective, rel=1e-3)


@pytest.mark.parametrize("loss", LOSSES, ids=ids)
def test_the_reference_ends_at_the_same_place(loss):
    for intercept in (False, True):
        ours = fit(problem(loss, N=40, D=5, intercept=intercept), tol=1e-7)
        reference = problem(loss, N=40, D=5, intercept=intercept, backend=ReferenceBackend())
        assert fit(reference, tol=1e-5, max_iter=3000).objective == pytest.approx(ours.objective, rel=1.1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=ids)
@pytest.mark.parametrize("form", ["C", "csr32"])
def test_same_seed_same_bits_on_any_threads(loss, form):
    runs = [
        fit(problem(loss, C=40, form=form, backend=CpuBackend(threads)), tol=0.0, max_iter=12, seed=3)
        for threads in (1, 1, 3)
    ]
    np.testing.assert_array_equal(runs[0].weights, runs[1].weights)
    assert runs[0].gap == runs[1].gap
    assert runs[2].objective == pytest.approx(runs[0].objective, rel=1e-9)
    other = fit(problem(loss, C=40, form=form), tol=0.0, max_iter=12, seed=4)
    assert not np.array_equal(other.weights, runs[0].weights)


def test_history_and_callbacks():
    objective = problem(HINGES[0])
    lines = []
    result = fit(objective, callbacks=[lines.append])
    assert tuple(lines) == result.history
    assert [line.iteration for line in lines][:3] == [4, 6, 9]
    for before, after in pairwise(lines):
        assert after.gap <= before.gap
        assert after.objective <= before.objective
        assert after.passes > before.passes
        assert after.seconds >= before.seconds
    ended = fit(objective, callbacks=[lambda line: line.iteration == 6])
    assert (ended.n_iter, ended.stopped) == (6, "ended by a callback")
    short = fit(objective, tol=0.0, max_iter=7)
    assert ([line.iteration for line in short.history], short.stopped) == ([4, 6, 7], "all iterations done")
    none = fit(objective, max_iter=0)
    assert none.history == ()
    assert np.isfinite(none.gap)


def test_a_start_lends_its_intercepts():
    objective = problem(HINGES[0])
    best = fit(objective, tol=1e-6)
    kept = best.weights.copy()
    cold, warm = (fit(objective, tol=0.0, max_iter=4, start=start) for start in (None, best.weights))
    assert warm.gap < cold.gap
    np.testing.assert_array_equal(best.weights, kept)


def test_what_it_cannot_solve():
    with pytest.raises(UsageError, match="L2 penalty above 0"):
        fit(problem(HINGES[0], l2=0.0))


def test_memory_is_sized_before_it_is_taken(monkeypatch):
    objective = problem(HINGES[0])
    needed = objective.passes.dual_memory(objective.loss)
    assert needed >= 200 * 4 * 8
    monkeypatch.setattr("hinge.solvers.dual_coordinate_ascent.available_memory", lambda: needed - 1)
    with pytest.raises(ResourceError, match=r"and 0\.0 GB are free"):
        fit(objective)


def test_rows_beyond_the_type():
    X = np.full((20, 3), 1e30, dtype=np.float32)
    X[::2] *= -1
    y = (np.arange(20) % 2).astype(np.int32)
    objective = bind_objective(CpuBackend(1), X, y, None, 2, loss=HINGES[0], l2=1e-3, intercept=True)
    with pytest.raises(DivergenceError, match="left the finite numbers"):
        fit(objective, max_iter=20)


def test_ctrl_c_stops_an_epoch():
    program = """
import time
import numpy as np
from hinge.ops import CpuBackend, Loss
from hinge.problems.objective import bind_objective
from hinge.solvers import DualCoordinateAscent
rng = np.random.default_rng(0)
X, y = rng.standard_normal((40_000, 200)), rng.integers(0, 30, 40_000).astype(np.int32)
objective = bind_objective(CpuBackend(2), X, y, None, 30, loss=Loss("weston_watkins"), l2=1e-6, intercept=False)
print("ready", flush=True)
result = DualCoordinateAscent().minimize(objective, max_iter=1_000_000, seed=0)
print(result.stopped, np.isfinite(result.objective), np.isfinite(result.gap), flush=True)
"""
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env={**os.environ})
    assert run.stdout.readline() == "ready\n"
    time.sleep(1.5)
    run.send_signal(signal.SIGINT)
    began = time.perf_counter()
    out = run.communicate(timeout=20)[0]
    assert out == "interrupted True True\n"
    assert time.perf_counter() - began < 5
