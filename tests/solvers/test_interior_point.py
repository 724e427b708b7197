"""Interior point: where it ends, what its gap promises, and where it has to give up."""

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from hinge.errors import ResourceError, UsageError
from hinge.ops import CpuBackend, Loss
from hinge.problems.objective import bind_objective
from hinge.solvers import DualCoordinateAscent, InteriorPoint

HINGES = [
    Loss(kind, squared) for kind in ("weston_watkins", "crammer_singer", "one_vs_rest") for squared in (False, True)
]
SOLVER = InteriorPoint()


def ids(loss):
    return f"{'squared_' if loss.squared else ''}{loss.kind}"


def problem(loss, *, N=80, D=6, C=4, l2=0.05, form="dense", v=None, intercept=True, penalize=False, dtype=np.float64):
    rng = np.random.default_rng(N + D)
    X = rng.standard_normal((N, D)) + 1.0
    y = (X @ rng.standard_normal((D, C)) + 2 * rng.gumbel(size=(N, C))).argmax(axis=1)
    y[:C] = np.arange(C)
    X[rng.random((N, D)) < 0.4] = 0
    rows = sparse.csr_array(X.astype(dtype)) if form == "csr" else X.astype(dtype)
    v = None if v is None else v.astype(dtype)
    return bind_objective(
        CpuBackend(2),
        rows,
        y.astype(np.int32),
        v,
        C,
        loss=loss,
        l2=l2,
        intercept=intercept,
        penalize_intercept=penalize,
    )


def fit(objective, tol=1e-9, max_iter=200, **rest):
    return SOLVER.minimize(objective, max_iter=max_iter, seed=0, tol=tol, **rest)


@pytest.mark.parametrize("loss", HINGES, ids=ids)
def test_reaches_the_optimum_of_an_independent_program(make_objective, hinge_optimum, loss):
    objective = make_objective(loss, N=30)
    best = hinge_optimum(objective)
    result = fit(objective)
    assert result.stopped == "gap reached"
    assert result.objective == pytest.approx(best, rel=1e-7)
    assert result.objective - best <= (result.gap + 1e-8) * result.objective


@pytest.mark.parametrize("loss", HINGES, ids=ids)
@pytest.mark.parametrize(("intercept", "penalize"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("shape", [{}, {"N": 15, "D": 40}], ids=["tall", "wide"])
def test_ends_where_coordinate_ascent_does(loss, intercept, penalize, form, shape):
    v = np.random.default_rng(1).integers(0, 3, shape.get("N", 80)).astype(float)
    v[:4] = 1
    objective = problem(loss, form=form, v=v, intercept=intercept, penalize=penalize, **shape)
    result = fit(objective)
    assert result.gap <= 1e-9
    other = DualCoordinateAscent().minimize(objective, max_iter=30_000, seed=0, tol=1e-6)
    unit = max(other.objective, objective.l2)
    assert -1e-9 * unit <= other.objective - result.objective <= (other.gap + 1e-9) * unit
    assert result.weights.shape == objective.zero_weights().shape
    value = objective.value_and_gradient(result.weights)[0]
    assert result.objective == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("loss", HINGES, ids=ids)
@pytest.mark.parametrize("l2", [1e-7, 1e-3, 1e2])
def test_the_gap_is_never_optimistic(loss, l2):
    objective = problem(loss, l2=l2)
    best = fit(objective, tol=1e-10).objective
    for steps in range(0, 20, 2):
        result = fit(objective, tol=0.0, max_iter=steps)
        assert (result.objective - best) / max(result.objective, l2) <= result.gap + 1e-9
        assert result.gap == result.history[-1].gap


@pytest.mark.parametrize(
    ("loss", "l2"),
    [(Loss("weston_watkins"), 2e-2), (Loss("one_vs_rest"), 2e-5), (Loss("crammer_singer"), 2e-3)],
    ids=["weston_watkins", "one_vs_rest", "crammer_singer"],
)
def test_rounding_leaves_eight_digits_on_digits(loss, l2):
    """Raw pixels, free intercepts: differences of numbers that are equal at the bounds would end the run at 1e-6."""
    X, y = load_digits(return_X_y=True)
    objective = bind_objective(CpuBackend(2), X, y.astype(np.int32), None, 10, loss=loss, l2=l2, intercept=True)
    assert fit(objective, tol=5e-9).stopped == "gap reached"


@pytest.mark.parametrize("loss", HINGES, ids=ids)
@pytest.mark.parametrize("spread", [2, 4, 6])
def test_weights_of_very_different_sizes(loss, spread):
    v = np.random.default_rng(0).exponential(size=300) ** spread
    result = fit(problem(loss, N=300, v=v), tol=1e-7)
    assert result.stopped == "gap reached"
    assert result.n_iter < 60


@pytest.mark.parametrize("loss", [h for h in HINGES if not h.squared], ids=ids)
def test_labels_without_reason(loss):
    """All margins are met exactly, or W = 0 all but solves it: every pair is degenerate."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((600, 10)), rng.integers(0, 10, 600).astype(np.int32)
    objective = bind_objective(CpuBackend(1), X, y, None, 10, loss=loss, l2=0.02, intercept=True)
    assert fit(objective, tol=1e-8).stopped == "gap reached"


@pytest.mark.parametrize("loss", HINGES, ids=ids)
def test_float32_rows_are_solved_in_float64(loss):
    result = fit(problem(loss, dtype=np.float32), tol=1e-5)
    assert result.weights.dtype == np.float32
    assert result.gap <= 1e-5
    assert result.objective == pytest.approx(fit(problem(loss)).objective, rel=2e-5)


def test_a_run_ends_where_rounding_leaves_nothing_to_gain():
    result = fit(problem(HINGES[0]), tol=0.0)
    assert result.stopped == "no further progress: rounding hides the descent"
    assert result.gap < 1e-9
    assert result.n_iter < 40


def test_history_and_callbacks():
    objective = problem(HINGES[0])
    lines = []
    result = fit(objective, callbacks=[lines.append])
    assert tuple(lines) == result.history
    assert [line.iteration for line in lines] == list(range(result.n_iter + 1))
    for before, after in pairwise(lines):
        assert after.objective <= before.objective
        assert after.passes > before.passes
    ended = fit(objective, callbacks=[lambda line: line.iteration == 3])
    assert (ended.n_iter, ended.stopped) == (3, "ended by a callback")
    assert fit(objective, max_iter=2).stopped == "all iterations done"


def test_same_bits_every_time():
    for loss in HINGES:
        first, second = (fit(problem(loss, N=300)) for _ in range(2))
        assert first.weights.tobytes() == second.weights.tobytes()


def test_what_it_cannot_solve():
    with pytest.raises(UsageError, match="is for hinges"):
        fit(problem(Loss("softmax")))
    with pytest.raises(UsageError, match="L2 penalty above 0"):
        fit(problem(HINGES[0], l2=0.0))


def test_memory_is_sized_before_it_is_taken(monkeypatch):
    monkeypatch.setattr("hinge.solvers.interior_point.available_memory", lambda: 1000)
    with pytest.raises(ResourceError, match="the matrix of all weights takes"):
        fit(problem(HINGES[0]))


def test_ctrl_c_stops_a_run():
    program = """
import numpy as np
from hinge.ops import CpuBackend, Loss
from hinge.problems.objective import bind_objective
from hinge.solvers import InteriorPoint
rng = np.random.default_rng(0)
X, y = rng.standard_normal((20_000, 60)), rng.integers(0, 10, 20_000).astype(np.int32)
objective = bind_objective(CpuBackend(2), X, y, None, 10, loss=Loss("weston_watkins"), l2=1e-6, intercept=False)
def say(iteration):
    if iteration.iteration == 1:
        print("ready", flush=True)
result = InteriorPoint().minimize(objective, max_iter=1_000_000, seed=0, tol=0.0, callbacks=[say])
print(result.stopped, np.isfinite(result.objective), np.isfinite(result.gap), flush=True)
"""
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env={**os.environ})
    assert run.stdout.readline() == "ready\n"
    time.sleep(0.3)
    run.send_signal(signal.SIGINT)
    began = time.perf_counter()
    out = run.communicate(timeout=20)[0]
    assert out == "interrupted True True\n"
    assert time.perf_counter() - began < 5
