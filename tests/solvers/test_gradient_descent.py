"""Full-batch gradient descent: its steps by hand, when it stops, and where it ends."""

import numpy as np
import pytest

from hinge.errors import DivergenceError
from hinge.ops import Loss
from hinge.solvers import GradientDescent


@pytest.mark.parametrize(
    "steps",
    [
        {},
        {"momentum": 0.8},
        {"momentum": 0.8, "nesterov": True},
        {"schedule": "cosine"},
        {"schedule": "decay", "decay": 0.5},
    ],
)
def test_steps(make_objective, steps):
    objective = make_objective(weighted=True)
    options = GradientDescent(learning_rate=0.3, tol=0.0, **steps)
    w, v = np.zeros((4, 7)), np.zeros((4, 7))
    values = []
    for k in range(5):
        value, g = objective.value_and_gradient(w)
        values.append(value)
        cosine = 0.5 * (1 + np.cos(np.pi * k / 5))
        rate = 0.3 * {"cosine": cosine, "decay": 1 / (1 + 0.5 * k)}.get(options.schedule, 1.0)
        v = options.momentum * v - rate * g
        w = w + options.momentum * v - rate * g if options.nesterov else w + v
    result = options.minimize(objective, max_iter=5, seed=0)
    np.testing.assert_allclose(result.weights, w, rtol=0, atol=1e-14)
    np.testing.assert_allclose([line.objective for line in result.history], values, rtol=1e-13)
    assert result.objective == pytest.approx(objective.value_and_gradient(w)[0], rel=1e-13)
    assert [line.passes for line in result.history] == [1, 2, 3, 4, 5]
    assert (result.n_iter, result.stopped) == (5, "all iterations done")


@pytest.mark.parametrize(
    "loss",
    [
        Loss("softmax"),
        Loss("weston_watkins", squared=True),
        Loss("one_vs_rest", squared=True),
    ],
)
@pytest.mark.parametrize("options", [{}, {"momentum": 0.9, "nesterov": True}])
def test_reaches_the_optimum(make_objective, optimum, loss, options):
    objective = make_objective(loss, weighted=True)
    best = optimum(objective)
    result = GradientDescent(tol=1e-6, **options).minimize(objective, max_iter=20_000, seed=0)
    assert result.stopped == "gradient small"
    assert best <= result.objective * (1 + 1e-12)
    assert result.objective == pytest.approx(best, rel=1e-6)


def test_a_smooth_objective_falls_in_every_iteration(make_objective):
    values = [line.objective for line in GradientDescent().minimize(make_objective(), max_iter=50, seed=0).history]
    assert np.all(np.diff(values) < 0)


@pytest.mark.parametrize(
    "loss",
    [
        Loss("weston_watkins"),
        Loss("crammer_singer"),
        Loss("one_vs_rest"),
        Loss("crammer_singer", squared=True),  # has a kink wherever two rivals are equal
    ],
)
def test_losses_with_kinks_come_near_their_optimum(make_objective, hinge_optimum, loss):
    objective = make_objective(loss, N=30)
    best = hinge_optimum(objective)
    result = GradientDescent(tol=0.0, schedule="cosine").minimize(objective, max_iter=20_000, seed=0)
    assert best <= result.objective * (1 + 1e-9)
    assert result.objective == pytest.approx(best, rel=1e-3)


def test_stops_where_the_gradient_is_small(make_objective):
    objective = make_objective()
    result = GradientDescent(tol=1e-3).minimize(objective, max_iter=10_000, seed=0)
    first = np.linalg.norm(objective.value_and_gradient(np.zeros((4, 7)))[1])
    assert result.stopped == "gradient small"
    assert np.linalg.norm(objective.value_and_gradient(result.weights)[1]) <= 1e-3 * first
    assert result.history[0].passes == 11  # ten of them for the rate


def test_starts_where_it_is_told(make_objective):
    objective = make_objective()
    start = np.random.default_rng(0).standard_normal((4, 7))
    kept = start.copy()
    result = GradientDescent(learning_rate=0.1).minimize(objective, max_iter=1, seed=0, start=start)
    np.testing.assert_allclose(result.weights, start - 0.1 * objective.value_and_gradient(start)[1], rtol=1e-14)
    np.testing.assert_array_equal(start, kept)


def test_a_callback_may_end_the_fit(make_objective):
    result = GradientDescent().minimize(
        make_objective(), max_iter=50, seed=0, callbacks=[lambda line: line.iteration == 3]
    )
    assert (result.n_iter, result.stopped) == (3, "ended by a callback")


def test_same_seed_same_bits(make_objective):
    first, again = (GradientDescent().minimize(make_objective(), max_iter=20, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.weights, again.weights)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rate", [1e3, 1e30])
def test_divergence(make_objective, dtype, rate):
    """An error that says what to do, and no warning beside it."""
    objective = make_objective(Loss("one_vs_rest", squared=True), dtype=dtype)
    with pytest.raises(DivergenceError, match=r"left the finite numbers in iteration \d+\. Lower learning_rate"):
        GradientDescent(learning_rate=rate).minimize(objective, max_iter=500, seed=0)


def test_divergence_in_the_very_last_step(make_objective):
    with pytest.raises(DivergenceError, match="in the last iteration"):
        GradientDescent(learning_rate=1e200).minimize(make_objective(), max_iter=1, seed=0)
