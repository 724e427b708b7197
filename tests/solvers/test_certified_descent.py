"""L-BFGS and Newton-CG: the same loop, so the same promises."""

from itertools import pairwise

import numpy as np
import pytest

from hinge.errors import DivergenceError, UsageError
from hinge.ops import Loss
from hinge.solvers import LBFGS, NewtonCG

SOLVERS = [LBFGS(), NewtonCG()]
LOSSES = [Loss("softmax"), Loss("weston_watkins", True, 1.5), Loss("one_vs_rest", True)]
pytestmark = pytest.mark.parametrize("solver", SOLVERS, ids=["lbfgs", "newton_cg"])


def name(loss):
    return f"squared_{loss.kind}" if loss.squared else loss.kind


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("l2", [1.0, 0.05, 1e-4])
def test_it_ends_at_the_optimum_with_a_proof(solver, make_objective, optimum, loss, l2):
    objective = make_objective(loss, l2=l2, weighted=True)
    result = solver.minimize(objective, max_iter=500, seed=0, tol=1e-9)
    assert result.gap <= 1e-9
    assert result.stopped == "gap reached"
    assert abs(result.objective / optimum(objective) - 1) < 1e-8
    assert result.objective == objective.evaluate(result.weights).value


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_gaps_along_the_way_are_never_optimistic(solver, make_objective, loss):
    objective = make_objective(loss, l2=0.01)
    best = solver.minimize(objective, max_iter=500, seed=0, tol=1e-11).objective
    told = []
    solver.minimize(objective, max_iter=500, seed=0, tol=1e-6, callbacks=[told.append])
    assert len(told) > 3
    for line in told:
        assert (line.objective - best) / line.objective <= line.gap + 1e-13
    assert [line.iteration for line in told] == list(range(len(told)))
    assert all(a.passes < b.passes and a.seconds <= b.seconds for a, b in pairwise(told))


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_float32_reaches_a_gap_of_its_own_precision(solver, make_objective, loss):
    objective = make_objective(loss, dtype=np.float32)
    result = solver.minimize(objective, max_iter=200, seed=0, tol=1e-5)
    assert result.gap <= 1e-5
    assert result.weights.dtype == np.float32
    exact = solver.minimize(make_objective(loss), max_iter=200, seed=0, tol=1e-9)
    assert (result.objective - exact.objective) / exact.objective < 1e-5


def test_a_start_saves_the_way(solver, make_objective):
    objective = make_objective()
    cold = solver.minimize(objective, max_iter=100, seed=0, tol=1e-8)
    warm = solver.minimize(objective, max_iter=100, seed=0, tol=1e-6, start=cold.weights)
    assert warm.n_iter == 0
    assert cold.n_iter > 3
    np.testing.assert_array_equal(warm.weights, cold.weights)


def test_limits_and_callbacks_end_a_run(solver, make_objective):
    objective = make_objective()
    result = solver.minimize(objective, max_iter=2, seed=0, tol=0.0)
    assert (result.n_iter, result.stopped) == (2, "all iterations done")
    assert np.isfinite(result.gap)
    result = solver.minimize(objective, max_iter=50, seed=0, tol=0.0, callbacks=[lambda line: line.iteration == 1])
    assert (result.n_iter, result.stopped) == (1, "ended by a callback")


def test_more_than_rounding_allows_ends_honestly(solver, make_objective):
    result = solver.minimize(make_objective(dtype=np.float32), max_iter=1000, seed=0, tol=0.0)
    assert result.stopped == "no further progress: rounding hides the descent"
    assert result.gap < 1e-4


def test_an_interrupt_keeps_the_last_iterate(solver, make_objective):
    objective = make_objective()

    def interrupt(line):
        if line.iteration == 2:
            raise KeyboardInterrupt

    result = solver.minimize(objective, max_iter=50, seed=0, tol=0.0, callbacks=[interrupt])
    assert result.stopped == "interrupted"
    assert result.objective == objective.evaluate(result.weights).value == result.history[-1].objective
    assert result.n_iter == 2


def test_the_same_seed_gives_the_same_bits(solver, make_objective):
    first, again = (solver.minimize(make_objective(threads=2), max_iter=20, seed=3, tol=1e-8) for _ in range(2))
    np.testing.assert_array_equal(first.weights, again.weights)


def test_a_start_beyond_all_numbers_is_an_error(solver, make_objective):
    objective = make_objective(Loss("one_vs_rest", True))
    with pytest.raises(DivergenceError, match="at its start"), np.errstate(over="ignore", invalid="ignore"):
        solver.minimize(objective, max_iter=3, seed=0, start=np.full(objective.zero_weights().shape, 1e300))


def test_options_that_make_no_sense(solver):
    with pytest.raises(UsageError, match="at least 1"):
        type(solver)(0)
