"""The parts of a report, as plain values for its template."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from hinge.report.charts import Chart
from hinge.report.matrices import MOST_NUMBERED, numbered, shaded
from hinge.report.pictures import template_png
from hinge.report.searches import edges, failed, search_chart
from hinge.report.wording import MISSING, clean, duration, elide, interval_text, percent, setting, value
from hinge.selection.grid import Trial
from hinge.selection.study import Study, Trained

MOST_TEMPLATES = 40
MOST_WEIGHTS = 5
MOST_TRIALS = 500
MOST_PAIRS = 8


@dataclass(frozen=True)
class AccuracyRow:
    """One classifier in the table of accuracies."""

    title: str
    best: bool
    train: str
    validation: str
    test: str
    interval: str
    setting: str
    seconds: str
    iterations: str


@dataclass(frozen=True)
class ClassRow:
    """One class: how many rows it has, how many were found, how many findings were right."""

    name: str
    rows: str
    tested: str
    recall: str
    precision: str


@dataclass(frozen=True)
class Pair:
    """Rows of one class that were taken for another."""

    true: str
    predicted: str
    rows: int
    share: str


@dataclass(frozen=True)
class Errors:
    """Where one classifier errs."""

    title: str
    best: bool
    matrices: tuple[Markup, ...]
    many: bool
    classes: tuple[ClassRow, ...]
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Picture:
    """The weights of one class as an image."""

    name: str
    address: str


@dataclass(frozen=True)
class ClassWeights:
    """The features that speak loudest for one class and against it."""

    name: str
    speaking_for: tuple[tuple[str, str], ...]
    speaking_against: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Weights:
    """What one linear classifier learned: pictures where rows are pictures, else features by name."""

    title: str
    best: bool
    pictures: tuple[Picture, ...]
    in_colour: bool
    classes: tuple[ClassWeights, ...]
    n_classes: int


@dataclass(frozen=True)
class TrialRow:
    """One setting of a search."""

    best: bool
    values: tuple[str, ...]
    train: str
    validation: str
    objective: str
    seconds: str
    error: str


@dataclass(frozen=True)
class Search:
    """What one classifier's search tried."""

    title: str
    best: bool
    chart: Chart | None
    chosen: str
    reached: str
    edges: tuple[str, ...]
    parameters: tuple[str, ...]
    rows: tuple[TrialRow, ...]
    n_trials: int
    n_failed: int


def accuracy_rows(study: Study) -> list[AccuracyRow]:
    """Return a row for each classifier."""
    return [
        AccuracyRow(
            title=trained.title,
            best=trained is study.best,
            train=percent(trained.train_accuracy),
            validation=percent(trained.search.best.validation_accuracy),
            test=percent(trained.test_accuracy),
            interval=interval_text(trained.test_accuracy, study.n_test),
            setting=setting(trained.search.best.parameters),
            seconds=duration(trained.seconds),
            iterations=f"{trained.history[-1].iteration:,}" if trained.history else MISSING,
        )
        for trained in study.classifiers
    ]


def errors(study: Study, trained: Trained, position: int) -> Errors:
    """Return the confusion matrix of a classifier and what it says about each class."""
    confusion, name = trained.confusion, f"confusion{position}"
    names = _class_names(study, confusion.labels)
    few = len(names) <= MOST_NUMBERED
    title = clean(trained.title)
    pictures = numbered(confusion, names, title, name) if few else [shaded(confusion, names, title, name)]
    tested, chosen = confusion.counts.sum(axis=1), confusion.counts.sum(axis=0)
    rows_of = study.class_counts if len(study.class_counts) == len(names) else (math.nan,) * len(names)
    classes = tuple(
        ClassRow(
            name=names[k],
            rows=MISSING if math.isnan(rows_of[k]) else f"{rows_of[k]:,}",
            tested=f"{tested[k]:,}",
            recall=percent(float(recall)) if tested[k] else MISSING,
            precision=percent(float(precision)) if chosen[k] else MISSING,
        )
        for k, (recall, precision) in enumerate(zip(confusion.recall, confusion.precision, strict=True))
    )
    place = {label: k for k, label in enumerate(confusion.labels.tolist())}
    pairs = []
    for true, predicted, rows in confusion.worst_pairs(MOST_PAIRS):
        i, j = place[_plain(true)], place[_plain(predicted)]
        pairs.append(Pair(names[i], names[j], rows, percent(rows / int(tested[i]))))
    return Errors(
        title, trained is study.best, tuple(pictures), 12 < len(names) <= MOST_NUMBERED, classes, tuple(pairs)
    )


def weights(study: Study, trained: Trained) -> Weights | None:
    """Return what a classifier learned, as pictures or as features; None if it keeps no weights to show."""
    pictures: tuple[Picture, ...] = ()
    in_colour = False
    if trained.templates is not None:
        addresses = [template_png(np.asarray(t)) for t in trained.templates[:MOST_TEMPLATES]]
        names = _class_names(study, np.arange(len(trained.templates)))
        pictures = tuple(Picture(n, a) for n, a in zip(names, addresses, strict=False) if a is not None)
        in_colour = trained.templates.ndim == 4 and trained.templates.shape[3] == 3
    classes = () if pictures else _class_weights(study, trained)
    if not pictures and not classes:
        return None
    n_classes = len(study.class_names)
    return Weights(clean(trained.title), trained is study.best, pictures, in_colour, classes, n_classes)


def search(study: Study, trained: Trained, position: int) -> Search:
    """Return the settings that were tried for a classifier, and a picture of them."""
    result = trained.search
    trials = list(enumerate(result.trials))
    if len(trials) > MOST_TRIALS:
        trials.sort(key=lambda at: (failed(at[1]), -at[1].validation_accuracy if not failed(at[1]) else 0.0))
        trials = trials[:MOST_TRIALS]
    parameters = tuple(result.grid) or tuple(result.best.parameters)
    return Search(
        title=clean(trained.title),
        best=trained is study.best,
        chart=search_chart(result, f"search{position}"),
        chosen=setting(result.best.parameters),
        reached=percent(result.best.validation_accuracy),
        edges=tuple(edges(result)),
        parameters=parameters,
        rows=tuple(_trial_row(trial, parameters, k == result.best_index) for k, trial in trials),
        n_trials=len(result.trials),
        n_failed=sum(map(failed, result.trials)),
    )


def _trial_row(trial: Trial, parameters: Sequence[str], best: bool) -> TrialRow:
    lost = failed(trial)
    return TrialRow(
        best=best,
        values=tuple(value(trial.parameters[n]) if n in trial.parameters else MISSING for n in parameters),
        train=percent(trial.train_accuracy),
        validation=percent(trial.validation_accuracy),
        objective=f"{trial.objective:.6g}" if math.isfinite(trial.objective) else MISSING,
        seconds=duration(trial.seconds),
        error=(elide(trial.error, 300) or "accuracy is not a number") if lost else "",
    )


def _class_names(study: Study, labels: Any) -> tuple[str, ...]:
    """Return the study's names where they fit the labels one to one, else the labels themselves."""
    if len(study.class_names) == len(labels):
        return study.class_names
    return tuple(clean(label) for label in labels.tolist())


def _class_weights(study: Study, trained: Trained) -> tuple[ClassWeights, ...]:
    coef = trained.weights
    if coef is None or np.ndim(coef) != 2 or np.shape(coef)[1] != len(study.feature_names):
        return ()
    coef, names = np.nan_to_num(np.asarray(coef, dtype=np.float64)), study.class_names
    if coef.shape[0] == 1 and len(names) == 2:
        names = names[1:]
    if coef.shape[0] != len(names):
        return ()
    return tuple(
        ClassWeights(name, _strongest(row, study.feature_names), _strongest(-row, study.feature_names, "−"))
        for name, row in zip(names[:MOST_TEMPLATES], coef, strict=False)
    )


def _strongest(row: Any, features: Sequence[str], sign: str = "+") -> tuple[tuple[str, str], ...]:
    order = np.argsort(-row, kind="stable")[:MOST_WEIGHTS]
    return tuple((clean(features[k]), f"{sign}{row[k]:.3g}") for k in order if row[k] > 0)


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
