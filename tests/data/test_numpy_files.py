from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hinge.data.readers import read, read_rows
from hinge.errors import DataError, HingeError
from hinge.typing import Array

X = np.arange(24, dtype=np.float64).reshape(6, 4) / 7
Y = np.array([0, 1, 2, 0, 1, 2])


def absurd(shape: tuple[int, ...]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return stream.getvalue() + bytes(64)


def npz(folder: Path, name: str = "data.npz", **arrays: Array) -> Path:
    path = folder / name
    np.savez(path, **arrays)  # type: ignore[arg-type]
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


class TestNpz:
    @pytest.mark.parametrize(
        ("rows", "labels"),
        [
            ("X", "y"),
            ("x", "y"),
            ("data", "target"),
            ("data", "labels"),
            ("images", "labels"),
            ("x_train", "y_train"),
            ("train_images", "train_labels"),
            ("features", "labels"),
            ("embeddings", "Label"),
        ],
    )
    @pytest.mark.parametrize("compressed", [False, True])
    def test_usual_keys(self, tmp_path: Path, rows: str, labels: str, compressed: bool) -> None:
        path = tmp_path / "digits.npz"
        (np.savez_compressed if compressed else np.savez)(path, **{rows: X, labels: Y, "other": X})
        dataset = read(path)
        np.testing.assert_array_equal(dataset.X, X)
        np.testing.assert_array_equal(dataset.y, Y)
        assert dataset.name == "digits"
        assert dataset.target_name == labels
        assert dataset.feature_names == ("column 1", "column 2", "column 3", "column 4")
        assert dataset.notes == (f"rows: {rows!r}, labels: {labels!r}",)

    def test_test_rows(self, tmp_path: Path) -> None:
        path = npz(tmp_path, x_train=X, y_train=Y, x_test=X[:2], y_test=Y[:2])
        dataset = read(path)
        assert dataset.test is not None
        np.testing.assert_array_equal(dataset.test[0], X[:2])
        np.testing.assert_array_equal(dataset.test[1], Y[:2])
        rows = rows_of(path, 4)
        np.testing.assert_array_equal(rows.X, X[:2])
        np.testing.assert_array_equal(rows.y, Y[:2])
        assert rows.notes == ("rows: 'x_test'",)

    def test_target_names_the_labels(self, tmp_path: Path) -> None:
        path = npz(tmp_path, X=X, y=Y, fine=np.arange(6))
        assert read(path, target="fine").y.tolist() == list(range(6))
        assert read(npz(tmp_path, "b.npz", points=X, kinds=Y), target="kinds").X.shape == (6, 4)

    def test_pictures_are_flattened(self, tmp_path: Path) -> None:
        values = np.arange(6 * 2 * 3 * 3, dtype=np.uint8).reshape(6, 2, 3, 3)
        for stored, shape in (
            (values, (2, 3, 3)),
            (values[..., 0], (2, 3)),
            (values[..., :1], (2, 3)),
            (np.moveaxis(np.repeat(values, 4, axis=1), 3, 1), (8, 3, 3)),
        ):
            dataset = read(npz(tmp_path, X=stored, y=Y))
            assert dataset.image_shape is not None
            assert len(dataset.feature_names) == np.prod(dataset.image_shape)
            assert dataset.X.dtype == np.float32
            if shape != (8, 3, 3):
                assert dataset.image_shape == shape

    def test_channels_first_become_last(self, tmp_path: Path) -> None:
        values = np.arange(6 * 3 * 5 * 7).reshape(6, 3, 5, 7)
        dataset = read(npz(tmp_path, X=values, y=Y))
        assert dataset.image_shape == (5, 7, 3)
        np.testing.assert_array_equal(dataset.X.reshape(6, 5, 7, 3), np.moveaxis(values, 1, 3))
        assert any("channels first" in note for note in dataset.notes)

    @pytest.mark.parametrize(
        ("kind", "result"),
        [
            ("u1", "f4"),
            ("i2", "f4"),
            ("i8", "f4"),
            ("?", "f4"),
            ("f2", "f4"),
            ("f4", "f4"),
            (">f4", "f4"),
            ("f8", "f8"),
            (">f8", "f8"),
            ("g", "f8"),
        ],
    )
    def test_types_of_rows(self, tmp_path: Path, kind: str, result: str) -> None:
        values = np.arange(12).reshape(6, 2).astype(kind)
        for stored in (values, np.asfortranarray(values)):
            dataset = read(npz(tmp_path, X=stored, y=Y))
            np.testing.assert_array_equal(dataset.X, values.astype("f8"))
            assert dataset.X.dtype == np.dtype(result)
            assert dataset.X.flags.c_contiguous

    def test_large_integers_stay_exact(self, tmp_path: Path) -> None:
        values = np.arange(12).reshape(6, 2) + 2**24
        dataset = read(npz(tmp_path, X=values, y=Y))
        np.testing.assert_array_equal(dataset.X, values)

    @pytest.mark.parametrize(
        ("labels", "expected"),
        [
            (Y.astype(np.uint8), Y.tolist()),
            (Y.astype(np.float32), Y.tolist()),
            (Y[:, None], Y.tolist()),
            (Y > 0, (Y > 0).astype(int).tolist()),
            (np.array(list("abcabc")), list("abcabc")),
            (np.array(list("abcabc"), dtype="S1"), list("abcabc")),
            (np.array([b"\xe9", b"b"] * 3), ["é", "b"] * 3),
            (Y + 0.5, ["0.5", "1.5", "2.5", "0.5", "1.5", "2.5"]),
        ],
    )
    def test_types_of_labels(self, tmp_path: Path, labels: Array, expected: list[object]) -> None:
        y = read(npz(tmp_path, X=X, y=labels)).y
        assert y.tolist() == expected
        assert y.dtype == np.int64 or y.dtype.kind == "U"

    def test_rows_alone(self, tmp_path: Path) -> None:
        for path in (npz(tmp_path, X=X), npz(tmp_path, "b.npz", anything=X)):
            rows = rows_of(path, 4)
            np.testing.assert_array_equal(rows.X, X)
            assert rows.y is None

    def test_rows_of_unclear_name(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="no array is named as rows are; the arrays are 'a', 'b'"):
            rows_of(npz(tmp_path, a=X, b=X), 4)

    def test_rows_of_another_width(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="rows have 4 features where 5 are expected"):
            rows_of(npz(tmp_path, X=X), 5)


class TestDamagedNpz:
    def test_keys_are_listed(self, tmp_path: Path) -> None:
        assert "'a', 'b'" in failure(npz(tmp_path, a=X, b=Y))
        assert "no array is named as labels are" in failure(npz(tmp_path, X=X, b=Y))
        message = failure(npz(tmp_path, X=X, labels=Y), target="lables")
        assert "no array 'lables'" in message
        assert "Did you mean 'labels'?" in message

    def test_no_arrays(self, tmp_path: Path) -> None:
        path = tmp_path / "sheet.xlsx"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("xl/workbook.xml", "<x/>")
        assert "only 'xl/workbook.xml'" in failure(path)
        empty = tmp_path / "empty.npz"
        zipfile.ZipFile(empty, "w").close()
        assert "no NumPy arrays" in failure(empty)

    def test_member_that_is_no_array(self, tmp_path: Path) -> None:
        path = tmp_path / "data.npz"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("X.npy", "hello")
            archive.writestr("y.npy", "")
        assert "array 'X': the header of the array is damaged" in failure(path)

    @pytest.mark.parametrize("keep", [0.1, 0.5, 0.95])
    def test_cut(self, tmp_path: Path, keep: float) -> None:
        path = npz(tmp_path, X=X, y=Y)
        content = path.read_bytes()
        path.write_bytes(content[: int(keep * len(content))])
        assert "NPZ archive is damaged" in failure(path)

    def test_checksum(self, tmp_path: Path) -> None:
        path = npz(tmp_path, X=X, y=Y)
        content = bytearray(path.read_bytes())
        place = content.find(X[3].tobytes())
        content[place + 3] ^= 1
        path.write_bytes(content)
        assert "CRC" in failure(path)

    def test_objects(self, tmp_path: Path) -> None:
        path = npz(tmp_path, X=X, y=np.array(["a", 1, None] * 2, dtype=object))
        assert "array 'y': the array holds Python objects" in failure(path)

    def test_absurd_shape_takes_no_memory(self, tmp_path: Path) -> None:
        path = tmp_path / "data.npz"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("X.npy", absurd((10**9, 10**6)))
            archive.writestr("y.npy", absurd((10**9,)))
        assert "bytes, 64 found" in failure(path)

    @pytest.mark.parametrize("kind", ["c16", "U3", "S3", "M8[s]"])
    def test_types(self, tmp_path: Path, kind: str) -> None:
        message = failure(npz(tmp_path, X=np.ones((6, 2), dtype="i8").astype(kind), y=Y))
        assert f"the rows have type {np.dtype(kind)}" in message

    def test_structured(self, tmp_path: Path) -> None:
        assert "structured" in failure(npz(tmp_path, X=np.zeros(6, dtype=[("a", "f8"), ("b", "i4")]), y=Y))

    @pytest.mark.parametrize("shape", [(), (6,), (6, 1, 1, 1, 1)])
    def test_dimensions(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        assert f"{len(shape)} dimensions, shape {shape}" in failure(npz(tmp_path, X=np.ones(shape), y=Y))

    def test_one_hot_labels(self, tmp_path: Path) -> None:
        message = failure(npz(tmp_path, X=X, y=np.eye(3)[Y]))
        assert "shape (6, 3)" in message
        assert "argmax" in message

    def test_lengths(self, tmp_path: Path) -> None:
        assert "6 rows but 5 labels" in failure(npz(tmp_path, X=X, y=Y[:5]))
        assert "test rows" in failure(npz(tmp_path, X=X, y=Y, X_test=X, y_test=Y[:5]))
        assert "test rows" in failure(npz(tmp_path, X=X, y=Y, X_test=X[:, :2], y_test=Y))

    @pytest.mark.parametrize(
        ("labels", "what"),
        [
            (np.full(6, 3), "only one class: all 6 labels 'y' are 3"),
            (np.array([0, 1, np.nan, 0, 1, 2]), "row 2 (counted from 0): the label 'y' is missing"),
            (np.array(["a", "b", "", "a", "b", "c"]), "row 2 (counted from 0): the label 'y' is missing"),
            (np.array([2**64 - 1] * 6, dtype=np.uint64), "reach 18446744073709551615"),
            (Y.astype("c16"), "have type complex128"),
        ],
    )
    def test_labels(self, tmp_path: Path, labels: Array, what: str) -> None:
        assert what in failure(npz(tmp_path, X=X, y=labels))

    def test_continuous_labels(self, tmp_path: Path) -> None:
        message = failure(npz(tmp_path, X=np.ones((99, 2)), y=np.arange(99) / 7))
        assert "hinge classifies" in message

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_not_finite(self, tmp_path: Path, value: float) -> None:
        values = X.copy()
        values[4, 1] = value
        message = failure(npz(tmp_path, X=values, y=Y))
        assert "row 4 (counted from 0)" in message
        assert f"column 'column 2' is {value}" in message

    def test_empty_arrays(self, tmp_path: Path) -> None:
        assert "no rows" in failure(npz(tmp_path, X=X[:0], y=Y[:0]))
        assert "no feature columns" in failure(npz(tmp_path, X=X[:, :0], y=Y))


def archive_bytes(compressed: bool) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, X=X, y=Y)
    return stream.getvalue()


def array_bytes() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.column_stack([X, Y]))
    return stream.getvalue()


CONTENTS = {"a.npz": archive_bytes(False), "b.npz": archive_bytes(True), "c.npy": array_bytes()}


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    name=st.sampled_from(list(CONTENTS)),
    keep=st.integers(0, 150),
    changes=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=6),
)
def test_damaged_files_raise_nothing_but_hinge_errors(
    tmp_path_factory: pytest.TempPathFactory, name: str, keep: int, changes: list[tuple[int, int]]
) -> None:
    content = bytearray(CONTENTS[name])
    for place, byte in changes:
        content[place % len(content)] = byte
    path = tmp_path_factory.mktemp("fuzz") / name
    path.write_bytes(content if keep > 100 else content[: len(content) * keep // 100])
    for attempt in (lambda: read(path), lambda: rows_of(path, 4)):
        try:
            attempt()
        except HingeError as error:
            told(error)
