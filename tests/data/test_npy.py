from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from hinge.data.readers import read, read_rows
from hinge.errors import DataError, HingeError
from hinge.typing import Array

X = np.arange(24, dtype=np.float64).reshape(6, 4) / 7
Y = np.array([0, 1, 2, 0, 1, 2])


def npy(folder: Path, values: Array, name: str = "data.npy") -> Path:
    path = folder / name
    np.save(path, values)
    return path


def told(error: HingeError) -> None:
    assert error.where
    assert error.remedy.endswith((".", '""'))


def failure(path: Path, where: Path | None = None, **options: object) -> str:
    with pytest.raises(DataError) as caught:
        read(path, **options)  # type: ignore[arg-type]
    assert str(where or path) in caught.value.where
    assert caught.value.remedy.endswith(".")
    return str(caught.value)


def rows_of(path: Path, count: int, target: str = "y"):  # type: ignore[no-untyped-def]
    return read_rows(path, feature_names=[f"f{i}" for i in range(count)], target_name=target)


def absurd(shape: tuple[int, ...]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return stream.getvalue() + bytes(64)


class TestNpy:
    def test_last_column_is_the_target(self, tmp_path: Path) -> None:
        dataset = read(npy(tmp_path, np.column_stack([X, Y])))
        np.testing.assert_array_equal(dataset.X, X)
        np.testing.assert_array_equal(dataset.y, Y)
        assert dataset.target_name == "column 5"
        assert dataset.notes == ("target: column 5 (the last column)",)

    @pytest.mark.parametrize("target", [0, "0", -5, "column 1"])
    def test_target_by_index(self, tmp_path: Path, target: str | int) -> None:
        dataset = read(npy(tmp_path, np.column_stack([Y, X])), target=target)
        np.testing.assert_array_equal(dataset.X, X)
        np.testing.assert_array_equal(dataset.y, Y)
        assert dataset.feature_names == ("column 2", "column 3", "column 4", "column 5")

    @pytest.mark.parametrize("values", [X > 1, np.asfortranarray(X), X.astype(">f4")])
    def test_labels_in_their_own_file(self, tmp_path: Path, values: Array) -> None:
        path = npy(tmp_path, values)
        labels = npy(tmp_path, np.array(list("abcabc")), "labels.npy")
        for target in (str(labels), "labels.npy"):
            dataset = read(path, target=target)
            np.testing.assert_array_equal(dataset.X, values)
            assert dataset.y.tolist() == list("abcabc")

    def test_rows_alone_stay_in_the_file(self, tmp_path: Path) -> None:
        path = npy(tmp_path, X)
        npy(tmp_path, Y, "labels.npy")
        values = read(path, target="labels.npy").X
        assert not values.flags.owndata
        assert not values.flags.writeable
        assert values.flags.c_contiguous

    def test_pictures(self, tmp_path: Path) -> None:
        path = npy(tmp_path, X.reshape(6, 2, 2))
        npy(tmp_path, Y, "labels.npy")
        assert read(path, target="labels.npy").image_shape == (2, 2)
        assert "target=LABELS.npy" in failure(path)
        rows = rows_of(path, 4)
        np.testing.assert_array_equal(rows.X, X)

    def test_boolean_table(self, tmp_path: Path) -> None:
        values = np.array([[True, False], [False, True], [True, True]])
        assert read(npy(tmp_path, values)).y.tolist() == [0, 1, 1]

    def test_rows(self, tmp_path: Path) -> None:
        assert rows_of(npy(tmp_path, X), 4).y is None
        rows = rows_of(npy(tmp_path, np.column_stack([X, Y])), 4)
        np.testing.assert_array_equal(rows.X, X)
        np.testing.assert_array_equal(rows.y, Y)
        assert rows.notes == ("column 5 of 5 was taken as the target, the others as features",)

    def test_rows_keep_the_order_of_training(self, tmp_path: Path) -> None:
        path = npy(tmp_path, np.column_stack([Y, X]))
        trained = read(path, target=0)
        rows = read_rows(path, feature_names=trained.feature_names, target_name=trained.target_name)
        np.testing.assert_array_equal(rows.X, X)
        np.testing.assert_array_equal(rows.y, Y)

    def test_rows_of_another_width(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="rows have 4 columns where the model has 2 features"):
            rows_of(npy(tmp_path, X), 2)


class TestDamagedNpy:
    def test_continuous_last_column(self, tmp_path: Path) -> None:
        message = failure(npy(tmp_path, X))
        assert "last of 4 columns does not look like labels" in message
        assert "--target" in message

    def test_missing_label(self, tmp_path: Path) -> None:
        values = np.column_stack([X, Y])
        values[2, 4] = np.nan
        assert "does not look like labels" in failure(npy(tmp_path, values))
        assert "row 2" in failure(npy(tmp_path, values), target=4)

    @pytest.mark.parametrize("shape", [(), (6,), (6, 2, 2), (0, 3)])
    def test_no_target_column(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        assert f"shape {shape}" in failure(npy(tmp_path, np.ones(shape)))

    def test_unknown_column(self, tmp_path: Path) -> None:
        assert "no column with index 9" in failure(npy(tmp_path, X), target=9)
        assert "no column 'kind'" in failure(npy(tmp_path, X), target="kind")

    def test_labels_file_missing(self, tmp_path: Path) -> None:
        assert "'gone.npy' is missing" in failure(npy(tmp_path, X), target="gone.npy")

    def test_objects(self, tmp_path: Path) -> None:
        assert "Python objects" in failure(npy(tmp_path, np.array([[1, "a"], [2, "b"]], dtype=object)))

    def test_structured(self, tmp_path: Path) -> None:
        assert "structured" in failure(npy(tmp_path, np.zeros(6, dtype=[("a", "f8"), ("b", "i4")])))

    def test_text(self, tmp_path: Path) -> None:
        assert "type <U1" in failure(npy(tmp_path, np.array([["1", "a"], ["2", "b"]])))

    @pytest.mark.parametrize("keep", [8, 60, 130, 200])
    def test_cut(self, tmp_path: Path, keep: int) -> None:
        path = npy(tmp_path, np.column_stack([X, Y]))
        path.write_bytes(path.read_bytes()[:keep])
        message = failure(path)
        assert "header of the array is damaged" in message or "needs 240 bytes" in message

    def test_left_over(self, tmp_path: Path) -> None:
        path = npy(tmp_path, np.column_stack([X, Y]))
        path.write_bytes(path.read_bytes() + b"more")
        assert "needs 240 bytes, 244 found" in failure(path)

    def test_absurd_shape_takes_no_memory(self, tmp_path: Path) -> None:
        path = tmp_path / "data.npy"
        path.write_bytes(absurd((10**12, 10**6)))
        assert "bytes, 64 found" in failure(path)

    def test_named_so_but_something_else(self, tmp_path: Path) -> None:
        for name in ("data.npy", "data.npz"):
            path = tmp_path / name
            path.write_bytes(b"\1\2\3\4" * 10)
            assert "does not begin as one" in failure(path)


HEADERS = [
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-6, -5), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (6, 5.0), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (True, 30), }",
    "{'descr': '<f8', 'fortran_order': 3, 'shape': (6, 5), }",
    "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000, 5), }",
    "{'descr': '|V8', 'fortran_order': False, 'shape': (6, 5), }",
    "{'descr': ('<f8', (5,)), 'fortran_order': False, 'shape': (6,), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (6, 5), }",
    "{'descr': 'f8,f8', 'fortran_order': False, 'shape': (6, 5), }",
    "{'descr': '<q99', 'fortran_order': False, 'shape': (6, 5), }",
    "{'descr': '<f8', 'shape': (6, 5), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (6L, 5L), }",
    "{'descr': '\\d', 'fortran_order': False, 'shape': (6, 5), }",
    "[" * 110,
    "(" * 110 + ")" * 10,
    "9" * 110,
    "\0" * 50,
]


@pytest.mark.parametrize("header", HEADERS)
def test_odd_headers(tmp_path: Path, header: str) -> None:
    text = header.ljust(117).encode("latin-1") + b"\n"
    path = tmp_path / "data.npy"
    path.write_bytes(b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text + X.tobytes() + bytes(48))
    try:
        read(path, target=0)
    except HingeError as error:
        told(error)
