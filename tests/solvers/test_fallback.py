"""Two solvers, one after the other: which weights, which gap and which history come out; and what "auto" picks."""

import numpy as np
import pytest
from scipy import sparse

from hinge.ops import CpuBackend, Loss
from hinge.problems.objective import bind_objective
from hinge.solvers import LBFGS, SGD, DualCoordinateAscent, InteriorPoint, NewtonCG
from hinge.solvers.choice import named_solver
from hinge.solvers.fallback import Fallback

HINGE = Loss("weston_watkins")
BOTH = Fallback(DualCoordinateAscent(), InteriorPoint(), patience=20)


def fit(objective, solver=BOTH, tol=1e-8, max_iter=300, **rest):
    return solver.minimize(objective, max_iter=max_iter, seed=0, tol=tol, **rest)


def test_the_second_runs_only_where_the_first_falls_short(make_objective):
    objective = make_objective(HINGE)
    easy = fit(objective, tol=0.5)
    assert easy.stopped == "gap reached"
    assert easy.n_iter < 20
    hard = fit(objective)
    assert hard.gap <= 1e-8
    assert hard.objective == pytest.approx(fit(objective, InteriorPoint()).objective, rel=1e-8)


def test_one_history_of_both(make_objective):
    objective, lines = make_objective(HINGE), []
    result = fit(objective, callbacks=[lines.append])
    assert tuple(lines) == result.history
    numbers = [line.iteration for line in result.history]
    assert numbers[: numbers.index(20) + 1] == [4, 6, 9, 13, 19, 20]
    assert numbers[numbers.index(20) + 1 :] == list(range(20, result.n_iter + 1))
    for name in ("iteration", "passes", "seconds"):
        values = [getattr(line, name) for line in result.history]
        assert values == sorted(values)


def test_iterations_are_those_of_both(make_objective):
    objective = make_objective(HINGE)
    assert fit(objective, max_iter=10).n_iter == 10
    short = fit(objective, max_iter=25)
    assert (short.n_iter, short.stopped) == (25, "all iterations done")
    assert BOTH.default_iterations == 20 + InteriorPoint().default_iterations


def test_the_better_of_both_comes_out(make_objective):
    objective = make_objective(HINGE)
    first = DualCoordinateAscent().minimize(objective, max_iter=20, seed=0, tol=1e-8)
    result = fit(objective, max_iter=21)  # one step of interior point is worse than twenty epochs
    assert result.gap == first.gap
    np.testing.assert_array_equal(result.weights, first.weights)


def test_a_callback_ends_either(make_objective):
    objective = make_objective(HINGE)
    for number in (9, 23):
        ended = fit(objective, callbacks=[lambda line, number=number: line.iteration == number])
        assert (ended.n_iter, ended.stopped) == (number, "ended by a callback")


def bound(X, C, loss, *, l2=1e-3):
    y = (np.arange(X.shape[0]) % C).astype(np.int32)
    return bind_objective(CpuBackend(1), X, y, None, C, loss=loss, l2=l2, intercept=True)


ROWS = np.random.default_rng(0).standard_normal((2000, 20))


@pytest.mark.parametrize(
    ("loss", "first", "second"),
    [
        (Loss("softmax"), LBFGS, NewtonCG),
        (Loss("weston_watkins", True), LBFGS, InteriorPoint),
        (Loss("crammer_singer", True), DualCoordinateAscent, InteriorPoint),
        (Loss("weston_watkins"), DualCoordinateAscent, InteriorPoint),
        (Loss("one_vs_rest"), DualCoordinateAscent, InteriorPoint),
    ],
    ids=lambda value: getattr(value, "__name__", getattr(value, "kind", None)),
)
def test_what_auto_picks(loss, first, second):
    chosen = named_solver("auto", bound(ROWS, 5, loss))
    assert isinstance(chosen, Fallback)
    assert isinstance(chosen.first, first)
    assert isinstance(chosen.second, second)
    assert chosen.patience >= 60


def test_auto_on_tiny_problems_and_without_memory(monkeypatch):
    assert isinstance(named_solver("auto", bound(ROWS[:30, :3], 3, HINGE)), InteriorPoint)
    sparse_rows = sparse.random_array((2000, 5000), density=0.002, rng=np.random.default_rng(0), format="csr")
    assert named_solver("auto", bound(sparse_rows, 5, Loss("weston_watkins", True))).first == DualCoordinateAscent()
    monkeypatch.setattr("hinge.solvers.choice.interior_point_fits", lambda objective: False)
    assert isinstance(named_solver("auto", bound(ROWS, 5, HINGE)), DualCoordinateAscent)
    assert isinstance(named_solver("auto", bound(ROWS, 5, Loss("weston_watkins", True))).second, NewtonCG)
    monkeypatch.setattr("hinge.solvers.choice.dual_variables_fit", lambda objective: False)
    assert isinstance(named_solver("auto", bound(ROWS, 5, HINGE)), SGD)


def test_rows_far_from_the_origin_are_fitted_by_the_second(make_objective):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 6))
    y = (X[:, :4] + rng.gumbel(size=(120, 4))).argmax(axis=1).astype(np.int32)
    objective = bind_objective(CpuBackend(1), X + 1e4, y, None, 4, loss=Loss("softmax"), l2=0.02, intercept=True)
    assert fit(objective, named_solver("auto", objective), tol=1e-4, max_iter=500).stopped == "gap reached"
