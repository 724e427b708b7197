from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hinge.data.idx import load_idx
from hinge.data.readers import read, read_rows
from hinge.errors import DataError, HingeError
from hinge.typing import Array

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}
TRAIN, TRAIN_LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"


def idx(values: Array) -> bytes:
    kind = f"{values.dtype.kind}{values.dtype.itemsize}"
    header = struct.pack(f">BBBB{values.ndim}I", 0, 0, CODES[kind], values.ndim, *values.shape)
    return header + values.astype(f">{kind}").tobytes()


def pictures(count: int = 6, height: int = 3, width: int = 4) -> Array:
    return (np.arange(count * height * width) % 251).astype(np.uint8).reshape(count, height, width)


def labels(count: int = 6) -> Array:
    return (np.arange(count) % 3).astype(np.uint8)


def save(folder: Path, name: str, content: Array | bytes) -> Path:
    data = content if isinstance(content, bytes) else idx(content)
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def told(error: HingeError) -> None:
    assert error.where
    assert error.remedy.endswith((".", '""'))


def failure(path: Path, where: Path | None = None, **options: str) -> str:
    with pytest.raises(DataError) as caught:
        read(path, **options)  # type: ignore[arg-type]
    assert str(where or path) in caught.value.where
    assert caught.value.remedy.endswith(".")
    return str(caught.value)


@pytest.mark.parametrize("kind", list(CODES))
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_all_types_come_back_native(tmp_path: Path, kind: str, suffix: str) -> None:
    values = np.array([[1, 2, 3], [100, 0, 7]], dtype=kind)
    loaded = load_idx(save(tmp_path, "values.idx" + suffix, values))
    np.testing.assert_array_equal(loaded, values)
    assert loaded.dtype == values.dtype
    assert loaded.dtype.isnative


@pytest.mark.parametrize("images", [TRAIN, TRAIN + ".gz", "train-images.idx3-ubyte", "train-images.idx3-ubyte.gz"])
@pytest.mark.parametrize(
    "beside", [TRAIN_LABELS, TRAIN_LABELS + ".gz", "train-labels.idx1-ubyte", "train-labels.idx1-ubyte.gz"]
)
def test_labels_are_found_beside_pictures(tmp_path: Path, images: str, beside: str) -> None:
    save(tmp_path, beside, labels())
    dataset = read(save(tmp_path, images, pictures()))
    np.testing.assert_array_equal(dataset.X, pictures().reshape(6, 12))
    np.testing.assert_array_equal(dataset.y, labels())
    assert dataset.X.dtype == np.float32
    assert dataset.y.dtype == np.int64
    assert dataset.image_shape == (3, 4)
    assert dataset.feature_names[5] == "pixel_1_1"
    assert dataset.notes == (f"labels: {beside}",)
    assert dataset.test is None


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_folder_of_four_files(tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / "fashion"
    folder.mkdir()
    for name, values in (
        (TRAIN, pictures(6)),
        (TRAIN_LABELS, labels(6)),
        (TEST, pictures(4)),
        (TEST_LABELS, labels(4)),
    ):
        save(folder, name + suffix, values)
    (folder / "README.txt").write_text("about")
    for path in (folder, folder / (TRAIN + suffix)):
        dataset = read(path)
        assert dataset.name == "fashion"
        assert len(dataset.X) == 6
        assert dataset.test is not None
        np.testing.assert_array_equal(dataset.test[0], pictures(4).reshape(4, 12))
        np.testing.assert_array_equal(dataset.test[1], labels(4))
        assert f"test rows: {TEST}{suffix}" in dataset.notes
    rows = read_rows(folder, feature_names=dataset.feature_names, target_name="label")
    assert len(rows.X) == 4
    np.testing.assert_array_equal(rows.y, labels(4))


def test_plain_files_win_over_gzip_in_one_folder(tmp_path: Path) -> None:
    save(tmp_path, TRAIN_LABELS, labels())
    save(tmp_path, TRAIN, pictures())
    save(tmp_path, TRAIN + ".gz", pictures(2))
    assert len(read(tmp_path).X) == 6


def test_a_prefix_names_the_data_set(tmp_path: Path) -> None:
    save(tmp_path, "emnist-letters-train-labels-idx1-ubyte.gz", labels())
    dataset = read(save(tmp_path, "emnist-letters-train-images-idx3-ubyte.gz", pictures()))
    assert dataset.name == "emnist-letters"


def test_labels_by_path(tmp_path: Path) -> None:
    path = save(tmp_path, "pictures.idx", pictures())
    elsewhere = save(tmp_path, "elsewhere.gz", labels())
    assert len(read(path, target=str(elsewhere)).y) == 6
    assert len(read(path, target="elsewhere.gz").y) == 6


def test_features_of_floats(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(6, 5))
    path = save(tmp_path, "embedding.idx", values)
    dataset = read(path, target=str(save(tmp_path, "labels.idx", labels())))
    np.testing.assert_array_equal(dataset.X, values)
    assert dataset.feature_names[0] == "column 1"
    assert dataset.image_shape is None


def test_test_pictures_without_labels_are_left_out(tmp_path: Path) -> None:
    save(tmp_path, TRAIN, pictures())
    save(tmp_path, TRAIN_LABELS, labels())
    save(tmp_path, TEST, pictures())
    dataset = read(tmp_path)
    assert dataset.test is None
    assert any("no labels beside it" in note for note in dataset.notes)


def test_rows_without_labels(tmp_path: Path) -> None:
    rows = read_rows(save(tmp_path, TEST, pictures()), feature_names=[str(i) for i in range(12)], target_name="label")
    assert rows.y is None
    assert rows.X.shape == (6, 12)


def test_rows_of_another_size(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="rows have 12 features where 13 are expected"):
        read_rows(save(tmp_path, TEST, pictures()), feature_names=list("abcdefghijklm"), target_name="label")


class TestDamage:
    @pytest.mark.parametrize("magic", [b"\1\0\x08\x03", b"\0\1\x08\x03", b"\0\0"])
    def test_magic(self, tmp_path: Path, magic: bytes) -> None:
        save(tmp_path, TRAIN_LABELS, labels())
        content = (magic + idx(pictures())[4:]) if len(magic) == 4 else magic
        assert magic[:4].hex(" ") in failure(save(tmp_path, TRAIN, content))

    def test_type_code(self, tmp_path: Path) -> None:
        save(tmp_path, TRAIN_LABELS, labels())
        path = save(tmp_path, TRAIN, b"\0\0\x0a\x03" + idx(pictures())[4:])
        assert "type code 0x0a is not one of IDX (0x08, 0x09" in failure(path)

    @pytest.mark.parametrize("rank", [0, 9, 255])
    def test_rank(self, tmp_path: Path, rank: int) -> None:
        save(tmp_path, TRAIN_LABELS, labels())
        path = save(tmp_path, TRAIN, bytes([0, 0, 8, rank]) + idx(pictures())[4:])
        assert f"claims {rank} dimensions" in failure(path)

    def test_header_cut(self, tmp_path: Path) -> None:
        save(tmp_path, TRAIN_LABELS, labels())
        assert "16 bytes expected, 10 found" in failure(save(tmp_path, TRAIN, idx(pictures())[:10]))

    @pytest.mark.parametrize("suffix", ["", ".gz"])
    def test_values_cut(self, tmp_path: Path, suffix: str) -> None:
        save(tmp_path, TRAIN_LABELS, labels())
        message = failure(save(tmp_path, TRAIN + suffix, idx(pictures())[:-7]))
        assert "need 72 bytes of values" in message
        assert suffix or "holds 65" in message or "at most 81" in message

    @pytest.mark.parametrize("suffix", ["", ".gz"])
    def test_values_left_over(self, tmp_path: Path, suffix: str) -> None:
        save(tmp_path, TRAIN_LABELS, labels())
        assert "bytes follow after the 72" in failure(save(tmp_path, TRAIN + suffix, idx(pictures()) + b"x"))

    @pytest.mark.parametrize("suffix", ["", ".gz"])
    def test_absurd_dimensions_take_no_memory(self, tmp_path: Path, suffix: str) -> None:
        save(tmp_path, TRAIN_LABELS, labels())
        header = struct.pack(">BBBBIII", 0, 0, 8, 3, 2**32 - 1, 2**32 - 1, 2**32 - 1)
        message = failure(save(tmp_path, TRAIN + suffix, header + bytes(100)))
        assert "can hold at most" in message

    def test_gzip_that_expands_further_than_it_claims(self, tmp_path: Path) -> None:
        save(tmp_path, TRAIN_LABELS, labels())
        assert "bytes follow" in failure(save(tmp_path, TRAIN + ".gz", idx(pictures()) + bytes(10**7)))

    def test_gzip_cut(self, tmp_path: Path) -> None:
        save(tmp_path, TRAIN_LABELS, labels())
        path = save(tmp_path, TRAIN + ".gz", pictures())
        path.write_bytes(path.read_bytes()[:-12])
        assert "gzip file ends too early" in failure(path)

    def test_gzip_checksum(self, tmp_path: Path) -> None:
        save(tmp_path, TRAIN_LABELS, labels())
        path = save(tmp_path, TRAIN + ".gz", pictures())
        content = bytearray(path.read_bytes())
        content[-8] ^= 1
        path.write_bytes(content)
        assert "gzip file is damaged" in failure(path)

    def test_no_labels(self, tmp_path: Path) -> None:
        message = failure(save(tmp_path, TRAIN, pictures()))
        assert TRAIN_LABELS in message
        assert "train-labels.idx1-ubyte.gz" in message

    def test_no_labels_for_a_name_that_says_nothing(self, tmp_path: Path) -> None:
        assert "target=PATH" in failure(save(tmp_path, "pictures.idx", pictures()))

    def test_no_labels_at_target(self, tmp_path: Path) -> None:
        assert "names tried: gone" in failure(save(tmp_path, TRAIN, pictures()), target="gone")

    def test_counts_differ(self, tmp_path: Path) -> None:
        beside = save(tmp_path, TRAIN_LABELS, labels(5))
        message = failure(save(tmp_path, TRAIN, pictures()), where=beside)
        assert "6 pictures but 5 labels" in message

    def test_labels_of_two_dimensions(self, tmp_path: Path) -> None:
        beside = save(tmp_path, TRAIN_LABELS, pictures())
        assert "shape (6, 3, 4)" in failure(save(tmp_path, TRAIN, pictures()), where=beside)

    def test_labels_given_as_pictures(self, tmp_path: Path) -> None:
        path = save(tmp_path, TRAIN_LABELS, labels())
        assert "these are labels" in failure(path, target=str(path))

    def test_test_files_of_another_data_set(self, tmp_path: Path) -> None:
        save(tmp_path, TRAIN, pictures())
        save(tmp_path, TRAIN_LABELS, labels())
        other = save(tmp_path, TEST, pictures(6, 2, 2))
        save(tmp_path, TEST_LABELS, labels())
        assert "4 where those" not in failure(tmp_path, where=other)

    def test_several_data_sets_in_a_folder(self, tmp_path: Path) -> None:
        save(tmp_path, "a-" + TRAIN, pictures())
        save(tmp_path, "b-" + TRAIN, pictures())
        assert f"several data sets: a-{TRAIN}, b-{TRAIN}" in failure(tmp_path)

    def test_no_rows(self, tmp_path: Path) -> None:
        save(tmp_path, TRAIN_LABELS, labels(0))
        assert "there are no rows" in failure(save(tmp_path, TRAIN, pictures(0)))

    def test_not_a_number(self, tmp_path: Path) -> None:
        values = np.ones((6, 2, 2), dtype=np.float32)
        values[4, 1, 0] = np.nan
        save(tmp_path, TRAIN_LABELS, labels())
        message = failure(save(tmp_path, TRAIN, values))
        assert "row 4" in message
        assert "'pixel_1_0' is nan" in message


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    keep=st.integers(0, 100),
    changes=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=4),
    of_labels=st.booleans(),
    inside=st.booleans(),
    compressed=st.booleans(),
)
def test_damaged_files_raise_nothing_but_hinge_errors(
    tmp_path_factory: pytest.TempPathFactory,
    keep: int,
    changes: list[tuple[int, int]],
    of_labels: bool,
    inside: bool,
    compressed: bool,
) -> None:
    def damaged(content: bytes) -> bytes:
        mutable = bytearray(content)
        for place, byte in changes:
            mutable[place % min(len(mutable), 24)] = byte
        return bytes(mutable if keep > 80 else mutable[: len(mutable) * keep // 80])

    folder = tmp_path_factory.mktemp("fuzz")
    for name, values, hit in ((TRAIN, pictures(), not of_labels), (TRAIN_LABELS, labels(), of_labels)):
        content = idx(values)
        if hit and inside:
            content = damaged(content)
        content = gzip.compress(content) if compressed else content
        if hit and not inside:
            content = damaged(content)
        (folder / (name + ".gz" * compressed)).write_bytes(content)
    try:
        read(folder)
    except HingeError as error:
        told(error)
