"""Labelled rows: read them from files, or load the small data sets that come along."""

from __future__ import annotations

from hinge.data.dataset import Dataset, UnlabelledRows
from hinge.data.datasets import load, load_breast_cancer, load_digits, load_iris, load_wine, names
from hinge.data.readers import read, read_rows

__all__ = [
    "Dataset",
    "UnlabelledRows",
    "load",
    "load_breast_cancer",
    "load_digits",
    "load_iris",
    "load_wine",
    "names",
    "read",
    "read_rows",
]
