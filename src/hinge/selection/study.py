"""The main job from rows to tested classifiers: split, search, train, test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hinge.inspection import Confusion
from hinge.selection.grid import SearchResult
from hinge.solvers.result import Iteration
from hinge.typing import Array


@dataclass(frozen=True)
class Trained:
    """One classifier of a study: searched on the validation rows, trained again on both, tested once.

    `model` accepts raw rows: the scaling that was used in training is folded into its coefficients.
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
