from __future__ import annotations

import errno
import gzip
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from hinge.data.readers import FORMATS, read, read_rows
from hinge.errors import DataError, ResourceError, UsageError

TABLE = b"a,b,label\n1,2,x\n3,4,y\n5,6,x\n"


def write(folder: Path, content: bytes, name: str) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def failure(path: str | Path, **options: object) -> DataError:
    with pytest.raises(DataError) as caught:
        read(path, **options)  # type: ignore[arg-type]
    assert caught.value.remedy.endswith(".")
    return caught.value


@pytest.mark.parametrize("name", ["t.csv", "t.CSV", "t.tsv", "t.txt", "t.data", "t.unknown", "table", "t.npy.bak"])
def test_text_tables_by_any_name(tmp_path: Path, name: str) -> None:
    assert read(write(tmp_path, TABLE, name)).X.shape == (3, 2)


def test_content_wins_over_the_name(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[1.5, 0], [2.5, 1]]))
    np.savez(tmp_path / "b.npz", X=np.eye(2), y=[0, 1])
    assert read((tmp_path / "a.npy").rename(tmp_path / "a.csv")).notes[0].startswith("target: column 2")
    assert read((tmp_path / "b.npz").rename(tmp_path / "b.txt")).notes[0].startswith("rows: 'X'")
    pictures = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]) + bytes(range(4))
    labels = write(tmp_path, bytes([0, 0, 8, 1, 0, 0, 0, 2, 0, 1]), "labels")
    assert read(write(tmp_path, pictures, "pictures.csv"), target=str(labels)).image_shape == (1, 2)
    assert read(write(tmp_path, gzip.compress(pictures), "c.csv.gz"), target=str(labels)).image_shape == (
        1,
        2,
    )


def test_paths_are_text_or_path_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, TABLE, "t.csv")
    monkeypatch.setenv("HOME", str(tmp_path))
    for spelling in (path, str(path), "~/t.csv"):
        assert len(read(spelling).X) == 3
    assert read(path).source == str(path)


class TestImageShape:
    def test_is_applied(self, tmp_path: Path) -> None:
        assert read(write(tmp_path, TABLE, "t.csv"), image_shape=[1, 2]).image_shape == (1, 2)

    def test_must_fit(self, tmp_path: Path) -> None:
        assert "3 values but each row has 2 features" in str(
            failure(write(tmp_path, TABLE, "t.csv"), image_shape=(1, 3))
        )

    @pytest.mark.parametrize("shape", [(2,), (1, 1, 1, 2), (-1, -2)])
    def test_must_be_a_shape(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        with pytest.raises(UsageError, match="not the shape of a picture"):
            read(write(tmp_path, TABLE, "t.csv"), image_shape=shape)


class TestPathsThatDoNotWork:
    def test_missing(self, tmp_path: Path) -> None:
        path = tmp_path / "gone.csv"
        assert str(failure(path)).startswith(f"{path}: there is no such file or folder. ")
        with pytest.raises(DataError, match="no such file"):
            read_rows(path, feature_names=["a"], target_name="y")

    def test_a_file_taken_for_a_folder(self, tmp_path: Path) -> None:
        path = write(tmp_path, TABLE, "t.csv") / "x.csv"
        assert str(path) in failure(path).where

    @pytest.mark.parametrize("path", ["a\0b", "~nobody-of-that-name/x", "\ud800"])
    def test_no_path(self, path: str) -> None:
        failure(path)

    def test_too_long(self) -> None:
        assert "cannot read" in str(failure("x" * 5000))

    def test_folder_without_data(self, tmp_path: Path) -> None:
        assert "holds no IDX pictures" in str(failure(tmp_path))

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of POSIX")
    def test_pipe(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        assert "neither a file nor a folder" in str(failure(tmp_path / "pipe"))

    @pytest.mark.parametrize(
        ("code", "what"), [(errno.EACCES, "permission to read it is denied"), (errno.EIO, "cannot read it")]
    )
    def test_what_the_system_refuses(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, what: str
    ) -> None:
        path = write(tmp_path, TABLE, "t.csv")

        def refuse(self: Path) -> bytes:
            raise OSError(code, os.strerror(code), str(self))

        monkeypatch.setattr(Path, "read_bytes", refuse)
        error = failure(path)
        assert what in str(error)
        assert str(path) in error.where

    def test_no_memory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def exhausted(self: Path) -> bytes:
            raise MemoryError

        monkeypatch.setattr(Path, "read_bytes", exhausted)
        with pytest.raises(ResourceError, match="MiB on disk"):
            read(write(tmp_path, TABLE, "t.csv"))


class TestUnknownFormats:
    @pytest.mark.parametrize(
        ("content", "what"),
        [
            (b"PAR1" + bytes(20), "a Parquet file"),
            (b"\x89HDF\r\n\x1a\n" + bytes(20), "an HDF5 file"),
            (pickle.dumps([1, 2]), "a Python pickle"),
            (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
        ],
    )
    @pytest.mark.parametrize("name", ["data", "data.npy", "data.bin"])
    def test_known_strangers_are_named(self, tmp_path: Path, content: bytes, what: str, name: str) -> None:
        assert what in str(failure(write(tmp_path, content, name)))

    @pytest.mark.parametrize("content", [b"\1\2\3\4", b'{"a": [1, 2]}', b"<a,b>", b"hello\n", b"@relation x,y"])
    def test_known_formats_are_listed(self, tmp_path: Path, content: bytes) -> None:
        message = str(failure(write(tmp_path, content, "data.bin")))
        assert "unknown" in message
        assert all(text in message for text in FORMATS.values())

    def test_empty(self, tmp_path: Path) -> None:
        assert "the file is empty" in str(failure(write(tmp_path, b"", "data.npy")))
        failure(write(tmp_path, gzip.compress(b""), "data.gz"))

    def test_numpy_in_gzip(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.eye(3))
        content = gzip.compress((tmp_path / "a.npy").read_bytes())
        assert "compressed with gzip" in str(failure(write(tmp_path, content, "a.npy.gz")))


@pytest.mark.parametrize("header", [True, False])
def test_a_header_is_for_text_tables(tmp_path: Path, header: bool) -> None:
    np.save(tmp_path / "a.npy", np.eye(3))
    with pytest.raises(UsageError, match="have no header line"):
        read(tmp_path / "a.npy", header=header)
    with pytest.raises(UsageError, match="have no header line"):
        read_rows(tmp_path / "a.npy", feature_names=["a", "b"], target_name="c", header=header)
