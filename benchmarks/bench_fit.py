"""Whole fits: hinge's classifiers with their default solver against scikit-learn's with theirs.

Each duel is over one training problem, mean loss + λ/2·‖W‖² with λ = 1/(C·N) and C = 1; every solution's objective is
computed by the same float64 code, over all rows, at its end. What a fit reaches differs, so the time that counts is
hinge's to the rival's objective: that of the shortest fit, of 1, 2, 3, 5, 10 … 100 epochs, that ends within 0.1 % of
it or below; "never" if none does, 100 epochs being the default.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.machine import Rates
from benchmarks.measurement import Rounds, Settings, interleaved, ratio
from benchmarks.rivals import LinearFit, sklearn_linear_svc, sklearn_logistic, sklearn_sgd
from benchmarks.table import OTHERS, OTHERS_NOTE, Column, Table, decimals, seconds, significant, times
from hinge import LinearSVM, SoftmaxRegression, datasets
from hinge.ops import CpuBackend, Loss

TITLE = "default fits against scikit-learn's, at equal objective"

C = 1.0
WITHIN = 1e-3
LADDER = (1, 2, 3, 5, 10, 20, 30, 50, 70, 100)
NEVER = "never"


@dataclass(frozen=True)
class Rows:
    """Training and held-out rows."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@dataclass(frozen=True)
class Duel:
    """One training problem and its two solvers; without a rival, hinge stands alone."""

    label: str
    loss: Loss
    model: Callable[..., Any]
    rival_name: str = ""
    rival_fit: Callable[..., LinearFit] | None = None
    present: bool = True
    slow_rival: bool = False  # minutes on thousands of rows


DUELS = (
    Duel("softmax", Loss("softmax"), SoftmaxRegression, sklearn_logistic.NAME, sklearn_logistic.fit,
         sklearn_logistic.present),
    Duel("one-vs-rest squared hinge", Loss("one_vs_rest", squared=True),
         partial(LinearSVM, loss="squared_hinge", multi_class="one_vs_rest"),
         sklearn_linear_svc.NAME, sklearn_linear_svc.fit, sklearn_linear_svc.present),
    Duel("one-vs-rest hinge", Loss("one_vs_rest"), partial(LinearSVM, multi_class="one_vs_rest"),
         sklearn_sgd.NAME, sklearn_sgd.fit, sklearn_sgd.present),
    Duel("Crammer–Singer hinge", Loss("crammer_singer"), partial(LinearSVM, multi_class="crammer_singer"),
         f"{sklearn_linear_svc.NAME} (Crammer–Singer)", sklearn_linear_svc.fit_crammer_singer,
         sklearn_linear_svc.present, True),
    Duel("Weston–Watkins hinge", Loss("weston_watkins"), LinearSVM),
)  # fmt: skip


def tables(settings: Settings, rates: Rates) -> list[Table]:
    if settings.quick:
        return [_table(_few_rows(_digits()), DUELS, replace(settings, repeat=min(settings.repeat, 2)))]
    few, fewest = replace(settings, repeat=max(3, settings.repeat // 3)), replace(settings, repeat=3, attempts=1)
    quick_duels = tuple(duel for duel in DUELS if not duel.slow_rival)
    return [_table(_digits(), DUELS, few), _table(_synthetic(), quick_duels, fewest)]


def _digits() -> Rows:
    digits = datasets.load_digits()
    order = np.random.default_rng(0).permutation(len(digits.y))
    X, y = digits.X[order] / np.float32(16), digits.y[order]
    held_out = len(y) // 4
    return Rows("digits", X[held_out:], y[held_out:], X[:held_out], y[:held_out])


def _few_rows(rows: Rows) -> Rows:
    return replace(rows, X=rows.X[:300], y=rows.y[:300])


def _synthetic() -> Rows:
    """Twenty overlapping Gaussian clouds in 200 dimensions."""
    train, test, features, classes = 20_000, 5_000, 200, 20
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((classes, features)) * 0.2
    y = rng.integers(0, classes, train + test)
    X = (centres[y] + rng.standard_normal((train + test, features))).astype(np.float32)
    return Rows("Gaussian clouds", X[:train], y[:train], X[train:], y[train:])


def _table(rows: Rows, duels: Sequence[Duel], settings: Settings) -> Table:
    lines = [line for duel in duels for line in _duel_lines(duel, rows, settings)]
    columns = [
        Column("problem", "problem"),
        Column("who", "fitted by"),
        Column("seconds", "seconds", seconds),
        Column("objective", "objective", significant(5)),
        Column("accuracy", "held-out accuracy", decimals(4)),
        Column("ratio", "rival ÷ hinge, whole fits", times),
        Column("epochs", "hinge gets there in epochs"),
        Column("to_reach", "seconds", seconds),
        Column("ratio_there", "rival ÷ hinge there", times),
        Column("remark", "remark"),
        OTHERS,
    ]
    N, D = rows.X.shape
    title = f"Fits on {rows.name}: {N}×{D} float32, {len(np.unique(rows.y))} classes, C = {C:g}"
    notes = ("Objective: mean loss + λ/2·‖W‖². LinearSVC penalises its intercepts too, hinge does not.", OTHERS_NOTE)
    return Table(title, columns, lines, notes)


def _duel_lines(duel: Duel, rows: Rows, settings: Settings) -> list[dict[str, Any]]:
    """Return hinge's line and, if there is a rival, its own."""
    kept: dict[str, tuple[LinearFit, str]] = {}
    hinge_fit = partial(_hinge_fit, duel.model)
    contestants = {"hinge": _recorded("hinge", hinge_fit, rows, settings, kept)}
    epochs = None
    if duel.rival_fit is not None and duel.present:
        contestants["rival"] = _recorded("rival", duel.rival_fit, rows, settings, kept)
        contestants["rival"]()
        epochs = _epochs_to(_objective(duel.loss, kept["rival"][0], rows, settings.threads), duel, rows, settings)
    if epochs is not None:
        contestants["to_reach"] = _recorded("to_reach", partial(hinge_fit, max_iter=epochs), rows, settings, kept)
    rounds = interleaved(contestants, settings, rehearsal=False)
    lines = [_line(duel, "hinge", "hinge", rounds, kept, rows, settings)]
    if "rival" in contestants:
        lines.append(_line(duel, "rival", duel.rival_name, rounds, kept, rows, settings))
        lines[1] |= {"epochs": epochs, "to_reach": NEVER, "ratio_there": NEVER}
        lines[1]["ratio"] = ratio(rounds["rival"], rounds["hinge"])
    elif duel.rival_fit is not None:
        lines.append({"problem": duel.label, "who": duel.rival_name, "remark": "absent"})
    if epochs is not None:
        lines[1] |= {"to_reach": rounds["to_reach"], "ratio_there": ratio(rounds["rival"], rounds["to_reach"])}
    return lines


def _line(
    duel: Duel,
    key: str,
    name: str,
    rounds: Rounds,
    kept: dict[str, tuple[LinearFit, str]],
    rows: Rows,
    settings: Settings,
) -> dict[str, Any]:
    fit, remark = kept[key]
    return {
        "problem": duel.label,
        "who": name,
        "seconds": rounds[key],
        "objective": _objective(duel.loss, fit, rows, settings.threads),
        "accuracy": float(np.mean(fit.predict(rows.X_test) == rows.y_test)),
        "remark": remark or None,
        "others": rounds.others,
        "dropped": rounds.dropped,
    }


def _recorded(
    key: str,
    fit: Callable[..., LinearFit],
    rows: Rows,
    settings: Settings,
    kept: dict[str, tuple[LinearFit, str]],
) -> Callable[[], None]:
    """Return a fit that keeps its last model, with the names of the warnings that it ended in."""

    def run() -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = fit(rows.X, rows.y, C=C, threads=settings.threads)
        kept[key] = fitted, ", ".join(sorted({warning.category.__name__ for warning in caught}))

    return run


def _hinge_fit(
    model: Callable[..., Any], X: np.ndarray, y: np.ndarray, *, C: float, threads: int, **options: Any
) -> LinearFit:
    fitted = model(C=C, n_jobs=threads, random_state=0, **options).fit(X, y)
    return LinearFit(fitted.coef_, fitted.intercept_, fitted.predict)


def _objective(loss: Loss, fit: LinearFit, rows: Rows, threads: int) -> float:
    codes = np.unique(rows.y, return_inverse=True)[1].astype(np.int32)
    weights = np.column_stack([fit.coef, fit.intercept]).astype(np.float64)
    passes = CpuBackend(threads).bind(rows.X.astype(np.float64), codes, None, len(weights))
    penalty = float(np.square(fit.coef, dtype=np.float64).sum()) / (2 * C * len(codes))
    return passes.loss_and_gradient(loss, weights)[0] / len(codes) + penalty


def _epochs_to(target: float, duel: Duel, rows: Rows, settings: Settings) -> int | None:
    """Return the shortest fit of the ladder that ends within 0.1 % of the target or below it."""
    for epochs in LADDER:
        fit = _hinge_fit(duel.model, rows.X, rows.y, C=C, threads=settings.threads, max_iter=epochs)
        if _objective(duel.loss, fit, rows, settings.threads) <= target * (1 + WITHIN):
            return epochs
    return None
