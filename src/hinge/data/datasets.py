"""Data sets that need no download: the small ones that scikit-learn carries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hinge.data.dataset import Dataset
from hinge.data.features import as_features, pixel_names
from hinge.data.labels import did_you_mean, listed
from hinge.errors import UsageError


def load_digits() -> Dataset:
    """Return 1,797 handwritten digits of 8 × 8 pixels, each 0 to 16."""
    from sklearn import datasets

    bunch = datasets.load_digits()
    return Dataset(
        name="digits",
        X=np.ascontiguousarray(bunch.data, dtype=np.float32),
        y=np.asarray(bunch.target, dtype=np.int64),
        feature_names=pixel_names((8, 8)),
        target_name="digit",
        source="scikit-learn: load_digits",
        image_shape=(8, 8),
    )


def load_iris() -> Dataset:
    """Return Fisher's 150 irises: four measurements, three species."""
    from sklearn import datasets

    return _from_table("iris", "species", datasets.load_iris())


def load_wine() -> Dataset:
    """Return 178 wines: thirteen chemical measurements, three cultivars."""
    from sklearn import datasets

    return _from_table("wine", "cultivar", datasets.load_wine())


def load_breast_cancer() -> Dataset:
    """Return 569 tumours: thirty measurements of their cells, malignant or benign."""
    from sklearn import datasets

    return _from_table("breast_cancer", "diagnosis", datasets.load_breast_cancer())


_LOADERS: dict[str, Callable[[], Dataset]] = {
    "digits": load_digits,
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
}


def names() -> tuple[str, ...]:
    """Return the names that `load` knows."""
    return tuple(_LOADERS)


def load(name: str) -> Dataset:
    """Return the data set of that name."""
    if name not in _LOADERS:
        raise UsageError(
            f"there is no data set {name!r}",
            remedy=f"{did_you_mean(name, names())}Known are {listed(names())}; read opens files.",
        )
    return _LOADERS[name]()


def _from_table(name: str, target_name: str, bunch: Any) -> Dataset:
    return Dataset(
        name=name,
        X=as_features(bunch.data),
        y=np.asarray(bunch.target_names)[bunch.target].astype(np.str_),
        feature_names=tuple(str(column) for column in bunch.feature_names),
        target_name=target_name,
        source=f"scikit-learn: load_{name}",
    )
