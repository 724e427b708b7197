"""A sweep over penalties and folds: SoftmaxRegressionCV against GridSearchCV(LogisticRegression), and one cold fit.

The rival's whole grid takes minutes, so the duel is over a grid that it can finish: few penalties and folds. Against
hinge's own cold fit at the middle penalty the whole sweep is measured: 20 penalties, 5 folds. Penalties are λ in
mean loss + λ/2·‖W‖² from 1e-1 downward, C = 1/(λ·N).

Rows are MNIST's where `benchmarks.data` finds them, or made up.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.data import clouds, mnist
from benchmarks.machine import Rates
from benchmarks.measurement import Settings, interleaved, ratio
from benchmarks.table import OTHERS, OTHERS_NOTE, Column, Table, decimals, seconds, significant, times
from hinge import SoftmaxRegression, SoftmaxRegressionCV

TITLE = "a sweep over penalties and folds, against a grid search and one cold fit"

STRONGEST, WEAKEST = 1e-1, 1e-5
ROWS = 20_000


def tables(settings: Settings, rates: Rates) -> list[Table]:
    name, X, y = _rows(2000 if settings.quick else ROWS)
    duel = _table(f"{name}: a small grid", X, y, settings, n_penalties=3, n_folds=2, rival=True)
    if settings.quick:
        return [duel]
    return [duel, _table(f"{name}: a whole sweep", X, y, settings, n_penalties=20, n_folds=5, rival=False)]


def _rows(count: int) -> tuple[str, np.ndarray, np.ndarray]:
    found = mnist()
    if found is not None:
        X, y = found
        return "MNIST", X[:count], y[:count]
    return "Gaussian clouds", *clouds(count, features=200, classes=10)


def _table(
    name: str, X: np.ndarray, y: np.ndarray, settings: Settings, *, n_penalties: int, n_folds: int, rival: bool
) -> Table:
    Cs = 1 / (np.geomspace(STRONGEST, WEAKEST, n_penalties) * len(y))
    middle = float(Cs[n_penalties // 2])
    kept: dict[str, Any] = {}
    contestants: dict[str, Callable[[], None]] = {
        "hinge": lambda: kept.update(hinge=_sweep(Cs, n_folds, settings.threads).fit(X, y)),
    }
    if rival:
        contestants["rival"] = lambda: kept.update(rival=_grid_search(X, y, Cs, n_folds))
    else:
        contestants["cold"] = lambda: kept.update(cold=_cold(X, y, middle, settings.threads))
    rounds = interleaved(contestants, settings, rehearsal=False)
    sweep = kept["hinge"]
    line = {"who": "SoftmaxRegressionCV", "fits": n_penalties * (n_folds + 1), "seconds": rounds["hinge"]}
    line |= {"C": sweep.C_, "score": sweep.best_score_, "objective": sweep.objective_}
    other = {"others": rounds.others, "dropped": rounds.dropped}
    if rival:
        found = kept["rival"]
        score, fits = float(found.best_score_), n_penalties * n_folds + 1
        told = {"who": "GridSearchCV(LogisticRegression)", "C": found.best_params_["C"], "score": score}
    else:
        fits, told = 1, {"who": "one cold SoftmaxRegression", "C": middle, "objective": kept["cold"].objective_}
    key = "rival" if rival else "cold"
    told |= {"fits": fits, "seconds": rounds[key], "ratio": ratio(rounds[key], rounds["hinge"])}
    columns = [
        Column("who", "fitted by"),
        Column("fits", "fits"),
        Column("seconds", "seconds", seconds),
        Column("C", "C", significant(3)),
        Column("score", "mean score", decimals(4)),
        Column("objective", "objective", significant(6)),
        Column("ratio", "rival ÷ hinge", times),
        OTHERS,
    ]
    N, D = X.shape
    title = f"{name}, {N}×{D} float32, {len(np.unique(y))} classes, {n_penalties} penalties, {n_folds} folds"
    notes = ("hinge stops at a certified gap of 1e-4, the rival by its own default test.", OTHERS_NOTE)
    return Table(title, columns, [line | other, told | other], notes)


def _sweep(Cs: np.ndarray, n_folds: int, threads: int) -> SoftmaxRegressionCV:
    return SoftmaxRegressionCV(Cs, cv=n_folds, n_jobs=threads, random_state=0)


def _cold(X: np.ndarray, y: np.ndarray, C: float, threads: int) -> SoftmaxRegression:
    return SoftmaxRegression(C, n_jobs=threads, random_state=0).fit(X, y)


def _grid_search(X: np.ndarray, y: np.ndarray, Cs: np.ndarray, n_folds: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its limit of iterations is raised, and it may still say that it fell short
        return GridSearchCV(LogisticRegression(max_iter=1000), {"C": list(Cs)}, cv=n_folds).fit(X, y)
