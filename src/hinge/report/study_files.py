"""A study as files: the page, the best model and the numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from hinge.atomic import new_directory
from hinge.estimators.model_file import write_model
from hinge.report.html import render
from hinge.selection.study import Study, Trained

REPORT, METRICS, MODEL = "report.html", "metrics.json", "model"


def write_study(study: Study, directory: Path) -> None:
    """Write `report.html`, `metrics.json` and `model/` to `directory`, all of them or nothing."""
    page, numbers = render(study), json.dumps(metrics(study), indent=2, ensure_ascii=False) + "\n"
    with new_directory(directory, replaces=METRICS) as scratch:
        (scratch / REPORT).write_text(page, encoding="utf-8")
        (scratch / METRICS).write_text(numbers, encoding="utf-8")
        (scratch / MODEL).mkdir()
        write_model(
            study.best.model,
            scratch / MODEL,
            feature_names=study.feature_names,
            target_name=study.target_name,
            data={"name": study.data_name, "fingerprint": study.fingerprint, "scaling": study.scaling},
        )


def metrics(study: Study) -> dict[str, Any]:
    """Return the study's numbers in plain types; a number that does not exist is null."""
    return {
        "data": {
            "name": study.data_name,
            "source": study.source,
            "fingerprint": study.fingerprint,
            "rows": study.n_train + study.n_validation + study.n_test,
            "features": study.n_features,
            "target": study.target_name,
            "classes": dict(zip(study.class_names, study.class_counts, strict=True)),
            "notes": list(study.notes),
        },
        "split": {"train": study.n_train, "validation": study.n_validation, "test": study.n_test},
        "scaling": study.scaling,
        "seed": study.seed,
        "seconds": study.seconds,
        "majority_accuracy": study.majority_accuracy,
        "best": study.best.key,
        "classifiers": {trained.key: _classifier(trained) for trained in study.classifiers},
        "machine": study.machine,
    }


def _classifier(trained: Trained) -> dict[str, Any]:
    search = trained.search
    return {
        "title": trained.title,
        "parameters": search.best.parameters,
        "train_accuracy": trained.train_accuracy,
        "validation_accuracy": search.best.validation_accuracy,
        "test_accuracy": trained.test_accuracy,
        "objective": float(trained.model.objective_),
        "iterations": int(trained.model.n_iter_),
        "seconds": trained.seconds,
        "confusion": trained.confusion.counts.tolist(),
        "search": [
            {
                "parameters": trial.parameters,
                "train_accuracy": _number(trial.train_accuracy),
                "validation_accuracy": _number(trial.validation_accuracy),
                "seconds": trial.seconds,
                "error": trial.error or None,
            }
            for trial in search.trials
        ],
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
