"""Stochastic gradient descent: its steps by hand, the order of rows, and where it ends."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hinge.errors import DivergenceError
from hinge.ops import Loss
from hinge.solvers import SGD
from hinge.solvers.sgd import epoch_rows, run_epoch, start_state

# --- the rows of an epoch --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [1, 2, 7, 1000])
def test_without_replacement_each_row_comes_once(n_rows):
    rng = np.random.default_rng(0)
    orders = [epoch_rows(n_rows, None, False, rng) for _ in range(3)]
    for order in orders:
        np.testing.assert_array_equal(np.sort(order), np.arange(n_rows))
    assert n_rows < 1000 or not np.array_equal(orders[0], orders[1])


def test_with_replacement_rows_are_drawn_evenly():
    rng = np.random.default_rng(0)
    counts = np.bincount(np.concatenate([epoch_rows(50, None, True, rng) for _ in range(2000)]), minlength=50)
    # 100,000 draws of 50 rows: 2000 ± 44 each.
    assert np.abs(counts - 2000).max() < 5 * math.sqrt(2000)
    assert len(np.unique(epoch_rows(50, None, True, rng))) < 50


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.lists(st.floats(0, 100) | st.just(0.0), min_size=1, max_size=60).filter(any), st.integers(0, 2**32 - 1))
def test_heavy_rows_come_in_proportion(weights, seed):
    """A row of weight v comes ⌊N·v/Σv⌋ or ⌈N·v/Σv⌉ times."""
    v = np.array(weights)
    expected = len(v) * (v / v.max()) / (v / v.max()).sum()
    rows = epoch_rows(len(v), v, False, np.random.default_rng(seed))
    counts = np.bincount(rows, minlength=len(v))
    assert len(rows) == len(v) == len(counts)
    assert np.all(counts >= np.floor(expected - 1e-9))
    assert np.all(counts <= np.ceil(expected + 1e-9))
    assert not counts[v == 0].any()


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.lists(st.floats(0, 100) | st.just(0.0), min_size=1, max_size=60).filter(any), st.integers(0, 2**32 - 1))
def test_rows_of_weight_zero_never_come_with_replacement_either(weights, seed):
    v = np.array(weights)
    rows = epoch_rows(len(v), v, True, np.random.default_rng(seed))
    assert len(rows) == len(v)
    assert np.all(v[rows] > 0)


@pytest.mark.parametrize("replacement", [False, True])
def test_the_largest_random_number_does_not_reach_past_the_rows(replacement):
    class Largest:
        def random(self, size=None):
            largest = np.nextafter(1.0, 0.0)
            return largest if size is None else np.full(size, largest)

        def permutation(self, rows):
            return rows

    v = np.array([0.3, 0.0, 0.1, 0.0])
    rows = epoch_rows(4, v, replacement, Largest())
    assert np.all(v[rows] > 0)
    assert rows[-1] == 2


@pytest.mark.parametrize("replacement", [False, True])
def test_the_mean_of_a_weighted_draw_is_exact(replacement):
    rng = np.random.default_rng(1)
    v = np.array([0.2, 1.7, 0.0, 3.1, 0.5])
    draws = 20_000
    counts = sum(np.bincount(epoch_rows(5, v, replacement, rng), minlength=5) for _ in range(draws))
    np.testing.assert_allclose(counts / draws, 5 * v / v.sum(), atol=5 * math.sqrt(1.5 / draws))


# --- steps by hand ---------------------------------------------------------------------------------------------------


def steps_by_hand(objective, options, epochs):
    """The update as the file's head states it, over the batches that the seed gives."""
    rng = np.random.default_rng(5)
    w, v = np.zeros((4, 7)), np.zeros((4, 7))
    mean, t, batches = w.copy(), 0, math.ceil(300 / options.batch_size)
    for epoch in range(epochs):
        order = epoch_rows(300, objective.row_weight, options.replacement, rng)
        for k in range(batches):
            rows = order[k * options.batch_size : (k + 1) * options.batch_size]
            g = objective.batch_value_and_gradient(w, rows)[1]
            rate = 0.1 / (1 + 0.5 * (epoch + k / batches))
            v = options.momentum * v - rate * g
            w = w + options.momentum * v - rate * g if options.nesterov else w + v
            theta = 4 / (t + 4)
            mean, t = (1 - theta) * mean + theta * w, t + 1
    return mean if options.average else w


@pytest.mark.parametrize(
    "steps",
    [
        {"momentum": 0.0, "nesterov": False},
        {"momentum": 0.8, "nesterov": False},
        {"momentum": 0.8, "nesterov": True},
        {"momentum": 0.8, "nesterov": True, "average": True},
        {"momentum": 0.0, "nesterov": False, "average": True},
        {"momentum": 0.5, "nesterov": False, "replacement": True},
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_steps(make_objective, steps, weighted):
    objective = make_objective(weighted=weighted)
    options = SGD(learning_rate=0.1, schedule="decay", decay=0.5, batch_size=64, **steps)
    result = options.minimize(objective, max_iter=3, seed=5)
    np.testing.assert_allclose(result.weights, steps_by_hand(objective, options, 3), rtol=0, atol=1e-13)
    assert result.objective == objective.value_and_gradient(result.weights)[0]


@pytest.mark.parametrize("nesterov", [False, True])
def test_one_step_over_all_rows(make_objective, nesterov):
    """A batch of all rows uses row weights exactly; from rest, Nesterov's step is 1 + μ times as long."""
    objective = make_objective(weighted=True)
    options = SGD(learning_rate=0.25, schedule="constant", batch_size=300, momentum=0.8, nesterov=nesterov)
    gradient = objective.value_and_gradient(np.zeros((4, 7)))[1]
    result = options.minimize(objective, max_iter=1, seed=0)
    np.testing.assert_allclose(result.weights, -0.25 * (1.8 if nesterov else 1.0) * gradient, rtol=1e-14)


def test_average_forgets_the_start(make_objective):
    """w̄ after t steps weighs step k by θ_k Π_{j>k}(1 − θ_j): the start has no part in it from the first step on."""
    objective = make_objective()
    options = SGD(learning_rate=0.1, batch_size=300, momentum=0.0, nesterov=False, average=True)
    start = np.full((4, 7), 100.0)
    last = SGD(learning_rate=0.1, batch_size=300, momentum=0.0, nesterov=False)
    averaged = options.minimize(objective, max_iter=1, seed=0, start=start).weights
    np.testing.assert_array_equal(averaged, last.minimize(objective, max_iter=1, seed=0, start=start).weights)


def test_history(make_objective):
    objective, told = make_objective(), []
    result = SGD(batch_size=50).minimize(objective, max_iter=4, seed=0, callbacks=[told.append])
    assert tuple(told) == result.history
    assert [line.iteration for line in told] == [1, 2, 3, 4]
    assert [line.passes for line in told] == [7, 8, 9, 10]  # six of them for the rate
    assert all(np.diff([line.seconds for line in told]) >= 0)
    assert told[-1].objective < told[0].objective
    assert (result.n_iter, result.stopped) == (4, "all iterations done")
    without = SGD(batch_size=50, learning_rate=0.1).minimize(objective, max_iter=2, seed=0)
    assert [line.passes for line in without.history] == [1, 2]


def test_every_callback_is_told_and_any_may_end_the_fit(make_objective):
    told = []
    callbacks = [lambda line: line.iteration == 2, told.append, lambda line: "yes"]
    result = SGD().minimize(make_objective(), max_iter=9, seed=0, callbacks=callbacks)
    assert (result.n_iter, result.stopped, len(told)) == (2, "ended by a callback", 2)


def test_runs_can_be_continued_epoch_by_epoch(make_objective):
    objective = make_objective()
    options = SGD(learning_rate=0.1, schedule="constant", batch_size=64, average=True)
    state = start_state(options, objective, None, 5)
    for _ in range(3):
        state, _ = run_epoch(options, objective, state, epochs=None)
    assert (state.epoch, state.step, state.passes) == (3, 15, 3)
    np.testing.assert_array_equal(state.solution(options), options.minimize(objective, max_iter=3, seed=5).weights)


# --- where it ends ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("options", "epochs"),
    [
        ({}, 200),
        ({"average": True}, 200),
        ({"nesterov": False}, 200),
        ({"batch_size": 1000}, 200),
        ({"replacement": True}, 1600),  # more noise: what is left falls as 1/epochs, from ten times as much
    ],
)
def test_reaches_the_optimum_of_softmax(make_objective, optimum, weighted, options, epochs):
    objective = make_objective(weighted=weighted)
    best = optimum(objective)
    result = SGD(**{"batch_size": 32, **options}).minimize(objective, max_iter=epochs, seed=0)
    assert best <= result.objective * (1 + 1e-12)
    assert result.objective == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("kind", ["weston_watkins", "one_vs_rest"])
def test_reaches_the_optimum_of_squared_hinges(make_objective, optimum, kind):
    objective = make_objective(Loss(kind, squared=True))
    result = SGD(batch_size=32).minimize(objective, max_iter=300, seed=0)
    assert result.objective == pytest.approx(optimum(objective), rel=1e-3)


@pytest.mark.parametrize("kind", ["weston_watkins", "crammer_singer", "one_vs_rest"])
def test_comes_near_the_optimum_of_plain_hinges(make_objective, hinge_optimum, kind):
    objective = make_objective(Loss(kind), N=30)
    result = SGD(batch_size=8).minimize(objective, max_iter=2000, seed=0)
    assert result.objective == pytest.approx(hinge_optimum(objective), rel=1e-2)


@pytest.mark.parametrize("threads", [1, 2])
def test_same_seed_same_bits(make_objective, threads):
    objective = make_objective(N=3000, threads=threads)
    first, again, other = (SGD().minimize(objective, max_iter=3, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.weights, again.weights)
    assert first.objective == again.objective
    assert [line.objective for line in first.history] == [line.objective for line in again.history]
    assert not np.array_equal(first.weights, other.weights)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", [Loss("softmax"), Loss("weston_watkins", squared=True)])
@pytest.mark.parametrize("rate", [1e3, 1e30])
@pytest.mark.parametrize("average", [False, True])
def test_divergence(make_objective, dtype, loss, rate, average):
    """An error that says what to do, and no warning beside it."""
    objective = make_objective(loss, dtype=dtype, l2=1.0)
    options = SGD(learning_rate=rate, schedule="constant", batch_size=32, average=average)
    with pytest.raises(DivergenceError, match=r"SGD: the objective left the finite numbers in epoch \d+") as caught:
        options.minimize(objective, max_iter=300, seed=0)
    assert caught.value.remedy.startswith(f"Lower learning_rate (it began at {rate:.3g})")


def test_divergence_in_the_very_last_step(make_objective):
    objective = make_objective(l2=1.0)
    options = SGD(learning_rate=1e200, schedule="constant", batch_size=300)
    with pytest.raises(DivergenceError, match="in the last epoch"):
        options.minimize(objective, max_iter=1, seed=0)
