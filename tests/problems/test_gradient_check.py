"""The check of gradients must itself find what is wrong, and where."""

import numpy as np
import pytest

from hinge.errors import UsageError
from hinge.problems.gradient_check import check_gradient


def smooth(W, scale=1.0):
    """Σ sin(w)·(1 + index) and its gradient."""
    factor = scale * (1 + np.arange(W.size).reshape(W.shape))
    return float((np.sin(W) * factor).sum()), np.cos(W) * factor


def planted(index, wrong):
    """The same with one entry of the gradient changed."""

    def loss(W, *args, **kwargs):
        value, gradient = smooth(W, *args, **kwargs)
        gradient[index] = wrong(gradient[index])
        return value, gradient

    return loss


W = np.random.default_rng(0).uniform(-1, 1, (4, 3))


def test_a_right_gradient_passes():
    check = check_gradient(smooth, W)
    assert check.worst_relative_error < 1e-9
    assert check.n_checked == 12


@pytest.mark.parametrize("index", [(0, 0), (2, 1), (3, 2)])
def test_a_planted_error_is_found_and_named(index):
    check = check_gradient(planted(index, lambda g: g * 1.001), W)
    assert check.index == index
    assert check.worst_relative_error == pytest.approx(1e-3, rel=1e-2)
    assert check.analytic == pytest.approx(1.001 * check.numeric, rel=1e-6)
    assert f"W[{index[0]}, {index[1]}]" in str(check)
    assert "12 entries checked" in str(check)


@pytest.mark.parametrize("wrong", [lambda g: -g, lambda g: 0 * g, lambda g: g + 1, lambda g: 2 * g])
def test_errors_of_many_kinds(wrong):
    check = check_gradient(planted((1, 2), wrong), W)
    assert check.index == (1, 2)
    assert check.worst_relative_error > 0.05


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_entries_that_are_no_numbers(bad):
    check = check_gradient(planted((1, 1), lambda g: bad), W)
    assert check.index == (1, 1)
    assert not np.isfinite(check.worst_relative_error)


def test_entries_that_drown_in_rounding_raise_no_alarm():
    def loss(W):
        return 1e6 * float(W[0]) + 1e-9 * float(W[1]), np.array([1e6, 1e-9])

    assert check_gradient(loss, np.array([1.0, 1.0])).worst_relative_error < 1e-6


def test_a_gradient_of_zero_everywhere():
    check = check_gradient(lambda W: (1.0, np.zeros_like(W)), W)
    assert check.worst_relative_error == 0


def test_differences_of_two_orders_cancel_the_larger_error():
    """For exp(10 w) a plain central difference with step h is off by (10 h)²/6, here 1.7e-5."""

    def steep(V):
        return float(np.exp(10 * V).sum()), 10 * np.exp(10 * V)

    assert check_gradient(steep, np.array([0.1, -0.2]), step=1e-3).worst_relative_error < 1e-8


def test_some_entries_drawn_by_seed():
    seen = []

    def loss(V):
        seen.append(tuple(np.argwhere(V != W)[0]) if np.any(V != W) else None)
        return smooth(V)

    check = check_gradient(loss, W, n_checks=5, seed=3)
    first = set(seen) - {None}
    assert check.n_checked == len(first) == 5
    seen.clear()
    check_gradient(loss, W, n_checks=5, seed=3)
    assert set(seen) - {None} == first
    assert check_gradient(smooth, W, n_checks=500).n_checked == 12


def test_arguments_are_passed_on_and_W_is_left_alone():
    before = W.copy()
    assert check_gradient(smooth, W, 3.0).worst_relative_error < 1e-9
    assert check_gradient(smooth, W, scale=3.0).worst_relative_error < 1e-9
    np.testing.assert_array_equal(W, before)


def test_float32_weights_are_checked_in_float64():
    assert check_gradient(smooth, W.astype(np.float32)).worst_relative_error < 1e-9


@pytest.mark.parametrize("step", [0.0, -1e-5, 1.0, float("nan")])
def test_steps_that_are_none(step):
    with pytest.raises(UsageError, match=r"step=.* is not between 0 and 1"):
        check_gradient(smooth, W, step=step)


def test_a_gradient_of_another_shape():
    with pytest.raises(UsageError, match=r"gradient has shape \(3, 4\), W has \(4, 3\)"):
        check_gradient(lambda V: (0.0, V.T), W)
