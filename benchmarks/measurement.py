"""How numbers are taken: in turn, round after round, so that what disturbs the machine disturbs everyone.

Contestants run A, B, A, B, …; a ratio is taken within each round, where both met the same conditions, and then
summarised over the rounds. The median and the quartiles are shown; the result file keeps every round.

A busy machine does not slow everyone equally: threads that wait for each other at every step suffer most. A round in
which other processes took much of the processors is therefore taken again, whatever its times were.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# OpenBLAS's threads spin for 0.1 to 0.2 s after a call: long enough to take a core from whoever comes next.
PAUSE = 0.25

QUIET = 0.03  # others' share of the processors that a round may have


@dataclass(frozen=True)
class Settings:
    """What the command line asks for."""

    threads: int
    repeat: int
    quick: bool = False
    attempts: int = 3  # rounds that may be taken for each that is wanted, while others keep the machine busy
    only: str = ""  # rows whose label holds this text


@dataclass(frozen=True)
class Spread:
    """A median with its quartiles, and the rounds that it summarises."""

    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        return float(np.median(self.rounds))

    @property
    def quartiles(self) -> tuple[float, float]:
        low, high = np.percentile(self.rounds, [25, 75])
        return float(low), float(high)

    def as_json(self) -> dict[str, Any]:
        return {"median": self.median, "quartiles": list(self.quartiles), "rounds": list(self.rounds)}


@dataclass(frozen=True)
class Rounds:
    """Each contestant's seconds, the largest share of the processors that others took, and rounds that were dropped."""

    seconds: dict[str, Spread]
    others: float | None
    dropped: int

    def __getitem__(self, name: str) -> Spread:
        return self.seconds[name]


def interleaved(
    contestants: Mapping[str, Callable[[], Any]],
    settings: Settings,
    *,
    pause: float = PAUSE,
    warm_up: bool = True,
    rehearsal: bool = True,
    own_clock: bool = False,
    turns: Mapping[str, int] | None = None,
) -> Rounds:
    """Run the contestants in turn until enough rounds were quiet, or else keep the quietest of all.

    All run once before the first round, unless they have already. With a rehearsal each timed call follows one of the
    same contestant, as in a solver's loop; with `own_clock`, what a contestant returns are its seconds. A contestant
    has one turn a round, or as many as `turns` says: quick ones against one that takes long.
    """
    for run in contestants.values() if warm_up else ():
        run()
    times = dict.fromkeys(contestants, 1) | dict(turns or {})
    taken: list[tuple[float, dict[str, list[float]]]] = []
    while _quiet(taken) < settings.repeat and len(taken) < settings.repeat * settings.attempts:
        others = OtherProcesses()
        seconds = {
            name: [_turn(run, pause, rehearsal, own_clock) for _ in range(times[name])]
            for name, run in contestants.items()
        }
        taken.append((others.share(), seconds))
    kept = sorted(sorted(range(len(taken)), key=lambda k: max(taken[k][0], QUIET))[: settings.repeat])
    return Rounds(
        {name: Spread(tuple(second for k in kept for second in taken[k][1][name])) for name in contestants},
        max(taken[k][0] for k in kept) if OtherProcesses.known() else None,
        len(taken) - len(kept),
    )


def _quiet(taken: Sequence[tuple[float, object]]) -> int:
    return sum(share <= QUIET for share, _ in taken)


def _turn(run: Callable[[], Any], pause: float, rehearsal: bool, own_clock: bool) -> float:
    gc.collect()
    time.sleep(pause)
    if rehearsal:
        run()
    clock = time.perf_counter()
    answer = run()
    elapsed = time.perf_counter() - clock
    return float(answer) if own_clock else elapsed


class OtherProcesses:
    """What others take of the processors from here on, by the kernel's count; only Linux tells, elsewhere it is 0."""

    def __init__(self) -> None:
        self.clock, self.own, self.all = time.perf_counter(), _own_seconds(), _busy_seconds()

    @staticmethod
    def known() -> bool:
        return _busy_seconds() is not None

    def share(self) -> float:
        busy = _busy_seconds()
        if busy is None or self.all is None:
            return 0.0
        others = (busy - self.all) - (_own_seconds() - self.own)
        elapsed = time.perf_counter() - self.clock
        return max(0.0, others / (elapsed * (os.cpu_count() or 1)))


def _own_seconds() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _busy_seconds() -> float | None:
    """All processors together: everything but idling and waiting for disks, with what a hypervisor withheld."""
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
    except OSError:
        return None
    user, nice, system, _, _, interrupts, soft_interrupts, stolen = (int(field) for field in first.split()[1:9])
    return (user + nice + system + interrupts + soft_interrupts + stolen) / os.sysconf("SC_CLK_TCK")


def ratio(rival: Spread, ours: Spread) -> Spread:
    """Return rival ÷ hinge round by round: above 1, hinge is faster. hinge may have had several turns a round."""
    turns, rest = divmod(len(ours.rounds), len(rival.rounds))
    if rest:
        raise ValueError(f"{len(ours.rounds)} turns do not go into {len(rival.rounds)} rounds")
    return Spread(tuple(rival.rounds[k // turns] / own for k, own in enumerate(ours.rounds)))


def best(run: Callable[[], object], *, repeat: int) -> float:
    """Return the shortest time of all: for what a machine can do, not for what a program does."""
    return min(_timed(run) for _ in range(repeat))


def _timed(run: Callable[[], object]) -> float:
    clock = time.perf_counter()
    run()
    return time.perf_counter() - clock


def largest_difference(a: Sequence[Any] | np.ndarray, b: Sequence[Any] | np.ndarray) -> float:
    """Return max |a − b| relative to max |b|."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return float(np.abs(a - b).max() / max(float(np.abs(b).max()), np.finfo(np.float64).tiny))
