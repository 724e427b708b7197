from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from hinge import datasets
from hinge.data.dataset import Dataset, complete_dataset
from hinge.errors import UsageError


def test_digits() -> None:
    digits = datasets.load_digits()
    assert digits.name == "digits"
    assert digits.X.shape == (1797, 64)
    assert digits.X.dtype == np.float32
    assert (digits.X.min(), digits.X.max()) == (0, 16)
    assert np.unique(digits.y).tolist() == list(range(10))
    assert digits.y.dtype == np.int64
    assert digits.image_shape == (8, 8)
    assert digits.feature_names[:9] == (*(f"pixel_0_{column}" for column in range(8)), "pixel_1_0")


@pytest.mark.parametrize("name", datasets.names())
def test_all_are_complete(name: str) -> None:
    dataset = datasets.load(name)
    assert isinstance(dataset, Dataset)
    assert dataset.name == name
    assert complete_dataset(dataset) == dataset
    assert dataset.source.startswith("scikit-learn")


def test_classes_have_names() -> None:
    assert np.unique(datasets.load_iris().y).tolist() == ["setosa", "versicolor", "virginica"]
    assert np.unique(datasets.load_breast_cancer().y).tolist() == ["benign", "malignant"]
    assert len(np.unique(datasets.load_wine().y)) == 3


def test_unknown_name() -> None:
    with pytest.raises(UsageError, match=r"no data set 'digit'\. Did you mean 'digits'\?"):
        datasets.load("digit")


def test_loads_are_independent() -> None:
    datasets.load_digits().X[:] = -1
    assert datasets.load_digits().X.min() == 0


def test_heavy_imports_wait_for_the_first_call() -> None:
    code = "import sys, hinge.data.readers, hinge.data.datasets; print('polars' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
