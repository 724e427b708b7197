"""Grid search: train every setting, keep what each one reached."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from hinge.errors import DataError, HingeError, UsageError
from hinge.selection.split import stratified_split
from hinge.typing import Array, Rows


@dataclass(frozen=True)
class Trial:
    """One setting: its parameters and what it reached on the rows it learned from and on those held out."""

    parameters: dict[str, Any]
    train_accuracy: float
    validation_accuracy: float
    objective: float
    seconds: float
    error: str = ""


@dataclass(frozen=True)
class SearchResult:
    """All trials in grid order, the best one's index and its fitted model."""

    grid: dict[str, tuple[Any, ...]]
    trials: tuple[Trial, ...]
    best_index: int
    best_model: Any

    @property
    def best(self) -> Trial:
        """Return the trial with the highest validation accuracy; the earlier one wins a tie."""
        return self.trials[self.best_index]

    @property
    def table(self) -> dict[str, list[Any]]:
        """Return the trials as columns, ready for a data frame."""
        columns: dict[str, list[Any]] = {name: [t.parameters[name] for t in self.trials] for name in self.grid}
        for name in ("train_accuracy", "validation_accuracy", "objective", "seconds", "error"):
            columns[name] = [getattr(trial, name) for trial in self.trials]
        return columns

    def __str__(self) -> str:
        rows = [[*self.grid, "train", "validation", "seconds", ""]]
        for k, trial in enumerate(self.trials):
            settings = [str(trial.parameters[name]) for name in self.grid]
            scores = [
                f"{trial.train_accuracy:.4f}",
                f"{trial.validation_accuracy:.4f}",
                f"{trial.seconds:.2f}",
            ]
            rows.append([*settings, *scores, "best" if k == self.best_index else trial.error])
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def grid_search(
    estimator: Any,
    grid: Mapping[str, Sequence[Any]],
    X: Rows,
    y: Array,
    *,
    validation: float | tuple[Rows, Array] = 0.2,
    seed: int = 0,
    on_trial: Callable[[Trial], object] | None = None,
) -> SearchResult:
    """Train a copy of `estimator` at every setting of `grid` and measure it on rows that it has not seen.

    `validation` is the share of each class to hold out, or rows and labels of their own. A setting that fails, say by
    divergence, is kept with its error; only if all fail is the first error raised.
    """
    choices = {name: tuple(values) for name, values in grid.items()}
    if not choices or not all(choices.values()):
        raise UsageError("the grid is empty", remedy="Give each parameter at least one value, e.g. {'C': [0.1, 1]}.")
    y = np.asarray(y)
    if isinstance(validation, tuple):
        X_held, y_held = validation
    else:
        if not 0 < validation < 1:
            raise UsageError(f"validation={validation!r} is not a share", remedy="Use for example 0.2.")
        if X.shape[0] != len(y):
            raise DataError(f"X has {X.shape[0]} rows and y {len(y)}", remedy="Pass one label a row.")
        kept, held = stratified_split(y, validation, seed)
        X, X_held, y, y_held = X[kept], X[held], y[kept], y[held]

    trials: list[Trial] = []
    best_model, best_accuracy, best_index = None, -1.0, -1
    first_error: HingeError | None = None
    for parameters in ParameterGrid([{name: list(values) for name, values in choices.items()}]):
        model = clone(estimator).set_params(**parameters)
        began = time.perf_counter()
        try:
            model.fit(X, y)
        except HingeError as error:
            first_error = first_error or error
            trial = Trial(parameters, np.nan, np.nan, np.nan, time.perf_counter() - began, str(error))
        else:
            seconds = time.perf_counter() - began
            scores = float(model.score(X, y)), float(model.score(X_held, y_held))
            trial = Trial(parameters, *scores, float(model.objective_), seconds)
            if scores[1] > best_accuracy:
                best_model, best_accuracy, best_index = model, scores[1], len(trials)
        trials.append(trial)
        if on_trial is not None:
            on_trial(trial)
    if best_model is None and first_error is not None:
        raise first_error
    return SearchResult(choices, tuple(trials), best_index, best_model)
