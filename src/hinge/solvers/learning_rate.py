"""How far a step goes: the first rate from the data's curvature, and how it falls as the run goes on."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

from hinge.errors import DivergenceError, UsageError

Schedule: TypeAlias = Literal["auto", "constant", "decay", "cosine"]


def scheduled_rate(first: float, schedule: Schedule, decay: float, epoch: float, epochs: float | None) -> float:
    """Return the rate at `epoch` (a fraction counts) of `epochs`, None where no end is known.

    constant: η₀        decay: η₀ / (1 + decay·epoch)        cosine: η₀·½(1 + cos(π·epoch/epochs))
    auto: cosine where the end is known, else constant.
    """
    if schedule == "auto":
        schedule = "constant" if epochs is None else "cosine"
    if schedule == "decay":
        return first / (1 + decay * epoch)
    if schedule == "cosine":
        if epochs is None:
            raise UsageError(
                "a cosine schedule needs to know where the run ends, and partial_fit has no end",
                remedy="Use schedule='constant' or 'decay' with partial_fit.",
            )
        return first * 0.5 * (1 + math.cos(math.pi * min(1.0, epoch / epochs)))
    return first


def diverged(where: str, when: str, first_rate: float) -> DivergenceError:
    """Return the error of a run whose objective or weights are no longer finite."""
    return DivergenceError(
        f"the objective left the finite numbers {when}",
        where=where,
        remedy=f"Lower learning_rate (it began at {first_rate:.3g}) or scale the columns of X.",
    )


def check_rate_options(learning_rate: float | str, schedule: str, decay: float) -> None:
    """Raise UsageError for options that make no sense."""
    if isinstance(learning_rate, str):
        if learning_rate != "auto":
            raise UsageError(f"learning_rate={learning_rate!r}", remedy="Use 'auto' or a positive number.")
    elif not 0 < learning_rate < math.inf:
        raise UsageError(f"learning_rate={learning_rate!r} is not positive", remedy="Use 'auto' or e.g. 1e-3.")
    if schedule not in get_args(Schedule):
        raise UsageError(f"schedule={schedule!r}", remedy=f"Use one of {', '.join(get_args(Schedule))}.")
    if not 0 <= decay < math.inf:
        raise UsageError(f"decay={decay!r} is negative or not finite", remedy="Use a number ≥ 0.")


def check_momentum(momentum: float, nesterov: bool) -> None:
    """Raise UsageError unless 0 ≤ momentum < 1, and > 0 if Nesterov's step is asked for."""
    if not 0 <= momentum < 1:
        raise UsageError(f"momentum={momentum!r} is outside [0, 1)", remedy="Use for example 0.9, or 0 for none.")
    if nesterov and momentum == 0:
        raise UsageError("nesterov=True needs momentum", remedy="Set momentum, for example to 0.9.")
