"""The main job from rows to tested classifiers: split, scale, search, train, test.

1. A fifth of each class is set aside as test rows, unless the data came with a test part of their own.
2. Columns are scaled by what the remaining rows show: hinge.selection.scaling.
3. Each classifier is searched over its grid, on a fifth of the remaining rows held out as validation rows.
4. Its best setting is trained again on all but the test rows, the scaling is folded into its weights, and it is tested.
The test rows take part in nothing before step 4.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone

from hinge.config import available_memory, resolve_threads
from hinge.data.dataset import Dataset
from hinge.errors import DataError, ResourceError
from hinge.estimators import LinearSVM, SoftmaxRegression
from hinge.estimators.model_file import library_versions
from hinge.inspection import Confusion, confusion, weight_templates
from hinge.ops import system_info
from hinge.selection.grid import SearchResult, grid_search
from hinge.selection.scaling import Scaling
from hinge.selection.split import stratified_split
from hinge.solvers.result import Iteration
from hinge.typing import Array

TEST_SHARE = VALIDATION_SHARE = 0.2

Progress: TypeAlias = Callable[[str, float], object]
"""Told what is being done and which share of the whole study is done."""


@dataclass(frozen=True)
class Candidate:
    """A classifier of the study and the grid that is searched for it."""

    key: str
    title: str
    estimator: Any
    grid: dict[str, tuple[Any, ...]]

    @property
    def n_fits(self) -> int:
        """Return how many fits it takes: each setting once, and the best one again."""
        return int(np.prod([len(values) for values in self.grid.values()])) + 1


# Per row, so that they suit any number of rows; the strongest first, because the earlier setting wins a tie.
PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)

CANDIDATES = (
    Candidate(
        "linear_svm",
        "Linear SVM (Weston–Watkins)",
        LinearSVM(),
        {"reg": PENALTIES, "loss": ("hinge", "squared_hinge")},
    ),
    Candidate("softmax", "Softmax regression", SoftmaxRegression(), {"reg": PENALTIES}),
)


@dataclass(frozen=True)
class Trained:
    """One classifier of a study: searched on the validation rows, trained again on both, tested once.

    `model` accepts raw rows: the scaling that was used in training is folded into its coefficients. `weights`, one row
    a class (one for two classes), are those of the scaled columns, and so can be compared with one another.
    """

    key: str
    title: str
    model: Any
    search: SearchResult
    train_accuracy: float
    test_accuracy: float
    seconds: float
    history: tuple[Iteration, ...]
    confusion: Confusion
    weights: Array | None
    templates: Array | None


@dataclass(frozen=True)
class Study:
    """Everything that a report tells: plain results, nothing left to compute."""

    data_name: str
    source: str
    fingerprint: str
    n_features: int
    target_name: str
    feature_names: tuple[str, ...]
    image_shape: tuple[int, ...] | None
    class_names: tuple[str, ...]
    class_counts: tuple[int, ...]
    n_train: int
    n_validation: int
    n_test: int
    classifiers: tuple[Trained, ...]
    best_index: int
    seed: int
    seconds: float
    scaling: str
    majority_accuracy: float
    notes: tuple[str, ...]
    machine: dict[str, str]

    @property
    def best(self) -> Trained:
        """Return the classifier with the highest validation accuracy."""
        return self.classifiers[self.best_index]


def run_study(data: Dataset, *, seed: int = 0, n_jobs: int | None = None, progress: Progress | None = None) -> Study:
    """Train and test every candidate on `data`."""
    began = time.perf_counter()
    _require_memory(data)
    X, y, X_test, y_test = _set_test_rows_aside(data, seed)
    kept, held = stratified_split(y, VALIDATION_SHARE, seed + 1)
    scaling = Scaling.of(X, pictures=data.image_shape is not None)
    rows = _Rows(scaling, scaling.apply(X), y, kept, held, X_test, y_test, np.unique(data.y), data.image_shape)

    steps = _Steps(sum(c.n_fits for c in CANDIDATES), progress)
    settings = {"random_state": seed, "n_jobs": n_jobs}
    trained = [_train(candidate, settings, rows, steps) for candidate in CANDIDATES]

    names, counts = np.unique(y, return_counts=True)
    everything = np.concatenate([y, y_test])
    return Study(
        data_name=data.name,
        source=data.source,
        fingerprint=_fingerprint(data),
        n_features=data.X.shape[1],
        target_name=data.target_name,
        feature_names=data.feature_names,
        image_shape=data.image_shape,
        class_names=tuple(str(label) for label in rows.labels.tolist()),
        class_counts=tuple(int(np.sum(everything == label)) for label in rows.labels),
        n_train=len(kept),
        n_validation=len(held),
        n_test=len(y_test),
        classifiers=tuple(trained),
        best_index=int(np.argmax([t.search.best.validation_accuracy for t in trained])),
        seed=seed,
        seconds=time.perf_counter() - began,
        scaling=scaling.description,
        majority_accuracy=float(np.mean(y_test == names[counts.argmax()])),
        notes=data.notes,
        machine=_machine(n_jobs),
    )


@dataclass(frozen=True)
class _Rows:
    """What every candidate is trained on: scaled rows, split in two for the search, and raw rows for the test."""

    scaling: Scaling
    scaled: Array
    y: Array
    kept: Array
    held: Array
    X_test: Array
    y_test: Array
    labels: Array
    image_shape: tuple[int, ...] | None


def _train(candidate: Candidate, settings: dict[str, Any], rows: _Rows, steps: _Steps) -> Trained:
    """Search a candidate's grid, train its best setting on all rows but the test rows, and test it on these."""
    began = time.perf_counter()
    estimator = clone(candidate.estimator).set_params(**settings)
    estimator.callbacks = steps.start(f"Searching {candidate.title}")
    search = grid_search(
        estimator,
        candidate.grid,
        rows.scaled[rows.kept],
        rows.y[rows.kept],
        validation=(rows.scaled[rows.held], rows.y[rows.held]),
        on_trial=lambda trial: steps.fit_done(),
    )
    steps.start(f"Training {candidate.title}")
    model = clone(estimator).set_params(**search.best.parameters).fit(rows.scaled, rows.y)
    steps.fit_done()
    model.callbacks = None
    train_accuracy = float(model.score(rows.scaled, rows.y))
    weights = model.coef_.copy()
    rows.scaling.fold_into(model)
    matrix = confusion(rows.y_test, model.predict(rows.X_test), rows.labels)
    return Trained(
        key=candidate.key,
        title=candidate.title,
        model=model,
        search=search,
        train_accuracy=train_accuracy,
        test_accuracy=matrix.accuracy,
        seconds=time.perf_counter() - began,
        history=model.history_,
        confusion=matrix,
        weights=weights,
        templates=None if rows.image_shape is None else weight_templates(weights, rows.image_shape),
    )


class _Steps:
    """Turns the gap of the fit at hand, and fits done, into the share of the study that is done."""

    def __init__(self, n_fits: int, progress: Progress | None) -> None:
        self._total, self._progress = n_fits, progress
        self._done, self._part, self._doing = 0, 0.0, ""

    def start(self, doing: str) -> _Steps:
        self._doing = doing
        return self

    def __call__(self, iteration: Iteration) -> None:
        # A gap falls from about 1 to 1e-4, by about the same factor each iteration, if not at every one.
        self._part = min(1.0, max(self._part, -0.25 * math.log10(max(iteration.gap, 1e-4))))
        self._tell()

    def __deepcopy__(self, memo: object) -> _Steps:
        return self  # clones of an estimator report to the same place

    def fit_done(self) -> None:
        self._done, self._part = self._done + 1, 0.0
        self._tell()

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._doing, (self._done + self._part) / self._total)


def _set_test_rows_aside(data: Dataset, seed: int) -> tuple[Array, Array, Array, Array]:
    if data.test is None:
        kept, held = stratified_split(data.y, TEST_SHARE, seed)
        return data.X[kept], data.y[kept], data.X[held], data.y[held]
    X_test, y_test = data.test
    unknown = np.setdiff1d(y_test, data.y)
    if len(unknown):
        raise DataError(
            f"the test rows hold label {unknown.tolist()[0]!r}, which no training row has",
            where=data.source,
            remedy="Add training rows of that class, or remove it from the test rows.",
        )
    return data.X, data.y, X_test, y_test


def _require_memory(data: Dataset) -> None:
    """Training rows, scaled rows, and scaled rows split in two: three copies, and a little for the rest."""
    needed, available = int(3.2 * data.X.nbytes), available_memory()
    if available is not None and needed > available:
        raise ResourceError(
            f"the study needs about {needed / 2**30:.1f} GiB of memory and {available / 2**30:.1f} GiB are free",
            where=data.name,
            remedy="Use fewer rows, or a machine with more memory.",
        )


def _fingerprint(data: Dataset) -> str:
    """Return the SHA-256 of rows and labels, with their shapes and types."""
    digest = hashlib.sha256()
    for array in (data.X, data.y):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _machine(n_jobs: int | None) -> dict[str, str]:
    info = system_info()
    return {
        "processor": f"{platform.machine()}, {os.cpu_count()} cores",
        "instruction set": str(info["isa"]),
        "threads": str(resolve_threads(n_jobs)),
        "system": platform.system(),
        **library_versions(),
    }
