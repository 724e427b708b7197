"""Whole fits of linear classifiers against rivals', at a stated accuracy: linear_problems.py says which.

Where hinge's tolerance is given, it is a certified gap, usually far closer to the optimum than where the rival stops.
Where it is not, hinge gets the loosest tolerance of a ladder with which it ends at the rival's objective or below:
equal objective. Finding tolerances is not timed. The optimum is the best objective seen, hinge's tight fit included.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.data import size_of
from benchmarks.linear_problems import FEW_ITERATIONS, PROBLEMS, Contest, Problem, Rival, rows_of
from benchmarks.machine import Rates, thread_limit
from benchmarks.measurement import PAUSE, Rounds, Settings, interleaved, ratio
from benchmarks.memory import peak_extra_bytes
from benchmarks.rivals import LinearFit
from benchmarks.table import OTHERS, OTHERS_NOTE, Column, Table, decimals, seconds, significant, times

TITLE = "whole fits of linear classifiers, at equal objective or to a certified gap"

LADDER = (1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5, 5e-6, 2e-6, 1e-6)
SLACK = 1e-6  # of the rival's objective: the same but for rounding
ROW_SECONDS = 40.0  # for the rounds of a row: the slower its slowest, the fewer
QUICK_SECONDS = 4.0  # of a rival, for which a busy round is worth another
FEWEST_TURNS = 3
FEW_ROWS = 2000
NEVER = "never"


def tables(settings: Settings, rates: Rates) -> list[Table]:
    rows = [
        line
        for problem in PROBLEMS
        if settings.only.lower() in problem.label.lower()
        for line in _lines(problem, settings)
    ]
    columns = [
        Column("label", "problem"),
        Column("who", "fitted by"),
        Column("tol", "tol", significant(1)),
        Column("seconds", "seconds", seconds),
        Column("ratio", "rival ÷ hinge", times),
        Column("objective", "objective", significant(8)),
        Column("above", "above the best", significant(2)),
        Column("known", "best known to", significant(1)),
        Column("gap", "certified gap", significant(2)),
        Column("passes", "passes", decimals(0)),
        Column("memory", "memory ÷ data", decimals(2)),
        Column("remark", "remark"),
        OTHERS,
    ]
    notes = (
        "Objective: mean loss + λ/2·‖W‖², λ = 1/(C·N), by the same float64 code; float32 rows. Intercepts are free,",
        "but penalised on both sides against LinearSVC. Above the best: relative. Memory: the peak beyond the data.",
        OTHERS_NOTE,
    )
    return [Table("Linear classifiers: whole fits", columns, rows, notes)]


def _lines(problem: Problem, settings: Settings) -> list[dict[str, Any]]:
    """Return hinge's line and one for each rival."""
    rows = rows_of(problem.source, settings.quick)
    if rows is None:
        return [{"label": problem.label, "who": "hinge", "remark": f"absent: {problem.source.remedy}"}]
    contest = Contest(problem, *rows, settings.threads)
    with thread_limit(settings.threads):
        known = _find_optimum(contest)
        tolerances, longest = _rivals_tolerances(contest)
        tolerances["hinge"] = _hinge_tolerance(contest, tolerances)
    with thread_limit(settings.threads):  # what the rivals have loaded meanwhile counts too
        rounds = _rounds(contest, tolerances, longest, settings)
    return _as_lines(contest, tolerances, rounds, known, settings)


def _find_optimum(contest: Contest) -> float:
    """Keep a tight fit, in float64 where float32 cannot tell; return its certified gap."""
    tight = contest.problem.tight
    X = contest.X.astype(np.float64) if tight < 1e-4 else contest.X
    contest.keep("optimum", lambda: contest.hinge(tight, X))
    return float(contest.fits["optimum"][0].gap or 0.0)


def _rivals_tolerances(contest: Contest) -> tuple[dict[str, float], float]:
    """Fit every rival once, or until it comes near the optimum; return the tolerances and the longest time."""
    near = contest.objective("optimum") * (1 + contest.problem.near)
    found, longest = {}, 0.0
    for rival in _present(contest.problem):
        for tol in rival.tolerances:
            clock = time.perf_counter()
            contest.keep(rival.name, partial(contest.rival, rival, tol))
            found[rival.name], spent = tol, time.perf_counter() - clock
            if contest.objective(rival.name) <= near:
                break
        longest = max(longest, spent)
    return found, longest


def _hinge_tolerance(contest: Contest, rivals: dict[str, float]) -> float | None:
    """Return hinge's tolerance; None where no step of the ladder reaches the objective wanted."""
    problem = contest.problem
    if problem.tol is not None:
        contest.keep("hinge", lambda: contest.hinge(problem.tol))
        return problem.tol
    if rivals:
        wanted = min(contest.objective(name) for name in rivals) * (1 + SLACK)
    else:
        wanted = contest.objective("optimum") * (1 + problem.near)
    gap = np.inf
    for tol in LADDER:
        if tol >= gap:  # the last fit has gone that far already
            continue
        contest.keep("hinge", partial(contest.hinge, tol))
        if contest.objective("hinge") <= wanted:
            return tol
        gap = contest.fits["hinge"][0].gap or np.inf
    return None


def _rounds(contest: Contest, tolerances: dict[str, float | None], longest: float, settings: Settings) -> Rounds:
    """Time everyone in turn; all have run before."""
    fitters: dict[str, Callable[[], LinearFit]] = {"hinge": partial(contest.hinge, tolerances["hinge"] or LADDER[-1])}
    for rival in _present(contest.problem):
        fitters[rival.name] = partial(contest.rival, rival, tolerances[rival.name])
    runs = {name: partial(contest.keep, name, fitter) for name, fitter in fitters.items()}
    if settings.quick:
        few = replace(settings, repeat=min(2, settings.repeat))
        return interleaved(runs, few, pause=0.0, warm_up=False, rehearsal=False)
    wanted = max(FEWEST_TURNS, settings.repeat // 3)
    repeat = max(1, min(wanted, int(ROW_SECONDS / max(longest, 1e-3))))
    attempts = settings.attempts if longest < QUICK_SECONDS else 1
    return interleaved(
        runs,
        replace(settings, repeat=repeat, attempts=attempts),
        pause=PAUSE,
        warm_up=False,
        rehearsal=False,
        turns={"hinge": -(-FEWEST_TURNS // repeat)},
    )


def _as_lines(
    contest: Contest, tolerances: dict[str, float | None], rounds: Rounds, known: float, settings: Settings
) -> list[dict[str, Any]]:
    problem = contest.problem
    best = min(contest.objective(name) for name in contest.fits)
    lines = []
    for name in ("hinge", *(rival.name for rival in problem.rivals)):
        if name not in contest.fits:
            lines.append({"label": problem.label, "who": name, "remark": "absent"})
            continue
        fit, value, remark = contest.fits[name]
        lines.append(
            {
                "label": problem.label,
                "who": name,
                "tol": tolerances[name],
                "seconds": rounds[name],
                "objective": value,
                "above": value / best - 1,
                "known": known,
                "gap": fit.gap,
                "passes": fit.passes,
                "memory": _memory(contest, name, tolerances[name], settings),
                "remark": remark or problem.remark or None,
                "others": rounds.others,
                "dropped": rounds.dropped,
            }
        )
        if name != "hinge":
            lines[-1]["ratio"] = NEVER if tolerances["hinge"] is None else ratio(rounds[name], rounds["hinge"])
    return lines


def _memory(contest: Contest, who: str, tol: float | None, settings: Settings) -> float | None:
    """Return the peak of a fit in a process of its own, over the size of the rows."""
    problem = contest.problem
    if not problem.weighed or (settings.quick and (who != "hinge" or problem != PROBLEMS[0])):
        return None
    case = {"label": problem.label, "who": who, "tol": tol, "threads": settings.threads, "quick": settings.quick}
    peak = peak_extra_bytes("linear", case)
    return None if peak is None else peak / size_of(contest.X)


def weighed(case: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return one contestant's fit of a few rows, as rehearsal, and of all; rivals stop after a few iterations."""
    problem = next(problem for problem in PROBLEMS if problem.label == case["label"])
    rows = rows_of(problem.source, case["quick"])
    if rows is None:
        raise LookupError(f"no rows for {problem.label}")
    X, y = rows
    tol = case["tol"] or LADDER[-1]

    def fit(count: int) -> None:
        contest = Contest(problem, X[:count], y[:count], case["threads"])
        rival = next((rival for rival in problem.rivals if rival.name == case["who"]), None)
        run = partial(contest.hinge, tol)
        if rival is not None:
            run = partial(contest.rival, rival, tol, max_iter=FEW_ITERATIONS)
        contest.keep(case["who"], run)

    return lambda: fit(FEW_ROWS), lambda: fit(len(y))


def _present(problem: Problem) -> list[Rival]:
    return [rival for rival in problem.rivals if rival.present]
