"""Learning rates: the schedules' values and the options that make no sense."""

import math

import pytest

from hinge.errors import UsageError
from hinge.solvers import SGD, GradientDescent
from hinge.solvers.learning_rate import scheduled_rate


@pytest.mark.parametrize("epoch", [0, 0.25, 3, 10])
def test_values(epoch):
    assert scheduled_rate(0.4, "constant", 2.0, epoch, 10) == 0.4
    assert scheduled_rate(0.4, "constant", 2.0, epoch, None) == 0.4
    assert scheduled_rate(0.4, "decay", 2.0, epoch, 10) == pytest.approx(0.4 / (1 + 2 * epoch))
    assert scheduled_rate(0.4, "decay", 2.0, epoch, None) == pytest.approx(0.4 / (1 + 2 * epoch))
    assert scheduled_rate(0.4, "cosine", 2.0, epoch, 10) == pytest.approx(0.2 * (1 + math.cos(math.pi * epoch / 10)))
    assert scheduled_rate(0.4, "auto", 2.0, epoch, 10) == scheduled_rate(0.4, "cosine", 2.0, epoch, 10)
    assert scheduled_rate(0.4, "auto", 2.0, epoch, None) == 0.4


def test_cosine_falls_from_all_to_nothing_and_stays_there():
    assert scheduled_rate(0.4, "cosine", 1.0, 0, 7) == 0.4
    assert scheduled_rate(0.4, "cosine", 1.0, 3.5, 7) == pytest.approx(0.2)
    assert scheduled_rate(0.4, "cosine", 1.0, 7, 7) == pytest.approx(0, abs=1e-16)
    assert scheduled_rate(0.4, "cosine", 1.0, 9, 7) == pytest.approx(0, abs=1e-16)


def test_cosine_needs_an_end():
    with pytest.raises(UsageError, match="cosine schedule needs to know where the run ends"):
        scheduled_rate(0.4, "cosine", 1.0, 0, None)


@pytest.mark.parametrize("solver", [SGD, GradientDescent])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 0}, "learning_rate=0 is not positive"),
        ({"learning_rate": -1.0}, "learning_rate=-1.0 is not positive"),
        ({"learning_rate": float("nan")}, "learning_rate=nan is not positive"),
        ({"learning_rate": float("inf")}, "learning_rate=inf is not positive"),
        ({"learning_rate": "fast"}, "learning_rate='fast'. Use 'auto' or a positive number"),
        ({"schedule": "linear"}, "schedule='linear'. Use one of auto, constant, decay, cosine"),
        ({"decay": -0.1}, "decay=-0.1 is negative"),
        ({"decay": float("nan")}, "decay=nan"),
        ({"decay": float("inf")}, "not finite"),
        ({"momentum": -0.1, "nesterov": False}, r"momentum=-0.1 is outside \[0, 1\)"),
        ({"momentum": 1.0}, r"momentum=1.0 is outside \[0, 1\)"),
        ({"momentum": float("nan")}, r"momentum=nan is outside \[0, 1\)"),
        ({"momentum": 0.0, "nesterov": True}, "nesterov=True needs momentum"),
    ],
)
def test_options_that_make_no_sense(solver, options, message):
    with pytest.raises(UsageError, match=message):
        solver(**options)


@pytest.mark.parametrize("batch_size", [0, -1, 1.5, 0.0])
def test_batch_sizes_that_are_none(batch_size):
    with pytest.raises(UsageError, match=f"batch_size={batch_size}"):
        SGD(batch_size=batch_size)


@pytest.mark.parametrize("tol", [-1e-9, 1.0, float("nan")])
def test_tolerances_that_are_none(tol):
    with pytest.raises(UsageError, match=r"outside \[0, 1\)"):
        GradientDescent(tol=tol)
