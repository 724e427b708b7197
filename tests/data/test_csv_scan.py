from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hinge.data.csv import _parse_fast
from hinge.data.csv_layout import find_layout
from hinge.data.csv_scan import scan
from hinge.data.readers import read, read_rows
from hinge.data.text import load_text
from hinge.errors import DataError, HingeError, ResourceError

IRIS = "length,width,species\n5.1,3.5,setosa\n7.0,3.2,versicolor\n6.3,3.3,virginica\n5.0,3.6,setosa\n"


def write(folder: Path, content: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def told(error: HingeError) -> None:
    assert error.where
    assert error.remedy.endswith((".", '""'))


def failure(path: Path, **options: object) -> str:
    with pytest.raises(DataError) as caught:
        read(path, **options)  # type: ignore[arg-type]
    assert str(path) in caught.value.where
    assert caught.value.remedy.endswith((".", '""'))
    return str(caught.value)


def test_the_slow_scan_agrees_with_polars(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b,label\n1.5,-2e-3,u\n+.25,1e10,v\n007,1E+2,u\n")
    text = load_text(path)
    cells = scan(text, find_layout(text), [0, 1], 2, label_needed=True)
    np.testing.assert_array_equal(cells.numbers, read(path).X)
    assert cells.labels == ("u", "v", "u")


class TestDamage:
    def test_empty(self, tmp_path: Path) -> None:
        assert "empty" in failure(write(tmp_path, b""))
        assert "empty" in failure(write(tmp_path, b"\n  \r\n\n"))

    def test_header_only(self, tmp_path: Path) -> None:
        assert "no rows" in failure(write(tmp_path, "a,b,label\n"))

    @pytest.mark.parametrize("row", ["7.0,3.2", "7.0", "7.0,3.2,versicolor,1"])
    def test_ragged(self, tmp_path: Path, row: str) -> None:
        message = failure(write(tmp_path, IRIS.replace("7.0,3.2,versicolor", row)))
        assert f"line 3: there are {row.count(',') + 1} cells where the first line has 3" in message

    def test_lines_are_counted_with_blank_ones_and_quoted_breaks(self, tmp_path: Path) -> None:
        path = write(tmp_path, '\na,label\n\n1,"x\ny"\n2,y\n\nz,w\n')
        assert "line 8, column 'a': 'z' is not a number" in failure(path)

    @pytest.mark.parametrize("cell", ["abc", "1_000", "0x10", "true", "3.2.1", "--1"])
    def test_text_in_a_feature(self, tmp_path: Path, cell: str) -> None:
        message = failure(write(tmp_path, IRIS.replace("3.2", cell)))
        assert f"line 3, column 'width': {cell!r} is not a number" in message

    @pytest.mark.parametrize("cell", ["", "NA", "NaN", "?", "null"])
    def test_missing_value(self, tmp_path: Path, cell: str) -> None:
        message = failure(write(tmp_path, IRIS.replace("3.2", cell)))
        assert "line 3, column 'width': the value is missing" in message

    @pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e400"])
    def test_infinite_value(self, tmp_path: Path, cell: str) -> None:
        message = failure(write(tmp_path, IRIS.replace("3.2", cell)))
        assert f"line 3, column 'width': {cell!r} is not a finite number" in message

    def test_decimal_comma(self, tmp_path: Path) -> None:
        message = failure(write(tmp_path, "a;b;label\n1,5;2;x\n2,5;3;y\n"))
        assert "line 2, column 'a'" in message
        assert "with a point" in message

    def test_nul(self, tmp_path: Path) -> None:
        assert "line 3: there is a NUL byte" in failure(write(tmp_path, IRIS.replace("3.2", "3\x002")))

    def test_not_utf8(self, tmp_path: Path) -> None:
        message = failure(write(tmp_path, IRIS.replace("versicolor", "é").encode("latin-1")))
        assert "line 3: the byte 0xe9 is not UTF-8" in message

    def test_utf16(self, tmp_path: Path) -> None:
        assert "UTF-16" in failure(write(tmp_path, IRIS.encode("utf-16")))

    def test_binary(self, tmp_path: Path) -> None:
        assert "line 1" in failure(write(tmp_path, bytes(range(256)) * 4))

    def test_repeated_names(self, tmp_path: Path) -> None:
        assert "line 1: the header names 'a' more than once" in failure(write(tmp_path, "a,b,a\n1,2,x\n3,4,y\n"))

    def test_open_quote(self, tmp_path: Path) -> None:
        message = failure(write(tmp_path, IRIS.replace("versicolor", '"versicolor')))
        assert "line 3" in message
        assert "quote" in message

    def test_text_after_a_quote(self, tmp_path: Path) -> None:
        message = failure(write(tmp_path, 'a,label\n1,"x"y\n2,"y\n'))
        assert "line 2" in message
        assert "quote" in message

    def test_a_quoted_cell_without_end_in_a_long_file(self, tmp_path: Path) -> None:
        path = write(tmp_path, "a,label\n" + "1,x\n" * 2000 + '2,"y\n' + "3,z\n" * 60000)
        message = failure(path)
        assert "line 2,002" in message
        assert "quote" in message

    def test_one_column(self, tmp_path: Path) -> None:
        assert "only one column" in failure(write(tmp_path, "a\n1\n2\n"))

    def test_one_class(self, tmp_path: Path) -> None:
        assert "only one class: all 2 labels 'label' are 'x'" in failure(write(tmp_path, "a,label\n1,x\n2,x\n"))

    def test_index_and_target_only(self, tmp_path: Path) -> None:
        assert "no feature columns" in failure(write(tmp_path, ",label\n0,x\n1,y\n"))

    def test_endless_label(self, tmp_path: Path) -> None:
        assert "5,000 characters" in failure(write(tmp_path, f"a,label\n1,x\n2,{'y' * 5000}\n"))

    @pytest.mark.parametrize("keep", [0.3, 0.9])
    def test_truncated_gzip(self, tmp_path: Path, keep: float) -> None:
        content = gzip.compress((IRIS + "5.1,3.5,setosa\n6,3,virginica\n").encode())
        assert "gzip file ends too early" in failure(
            write(tmp_path, content[: int(len(content) * keep)], "table.csv.gz")
        )

    def test_corrupt_gzip(self, tmp_path: Path) -> None:
        content = bytearray(gzip.compress(IRIS.encode()))
        content[-6] ^= 0xFF
        assert "gzip file is damaged" in failure(write(tmp_path, bytes(content), "table.csv.gz"))

    def test_no_memory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def exhausted(*_: object, **__: object) -> None:
            raise MemoryError

        monkeypatch.setattr("hinge.data.csv._matrix", exhausted)
        with pytest.raises(ResourceError, match="GiB of memory"):
            read(write(tmp_path, IRIS))

    def test_a_gzip_file_that_expands_beyond_memory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("os.sysconf", lambda name: {"SC_PHYS_PAGES": 4, "SC_PAGE_SIZE": 4096}[name])
        path = write(tmp_path, gzip.compress((IRIS * 1000).encode()), "table.csv.gz")
        with pytest.raises(ResourceError, match="expands to more than"):
            read(path)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(
    cuts=st.tuples(st.integers(0, 120), st.integers(0, 120)),
    changes=st.lists(st.tuples(st.integers(0, 400), st.sampled_from([*b'",;\t\r\n\0 .-_eE0?#\xff\xc3x'])), max_size=4),
    compressed=st.booleans(),
)
def test_damaged_tables_raise_nothing_but_hinge_errors(
    tmp_path_factory: pytest.TempPathFactory,
    cuts: tuple[int, int],
    changes: list[tuple[int, int]],
    compressed: bool,
) -> None:
    content = bytearray((IRIS * 2).replace("virginica", '"virg, ""i"""').encode())
    for place, byte in changes:
        content[place % len(content)] = byte
    damaged = bytes(content[min(cuts) // 8 : len(content) - max(cuts)])
    path = tmp_path_factory.mktemp("fuzz") / ("table.csv.gz" if compressed else "table.csv")
    path.write_bytes(gzip.compress(damaged) if compressed else damaged)
    for attempt in (
        lambda: read(path),
        lambda: read_rows(path, feature_names=("length", "width"), target_name="species"),
    ):
        try:
            attempt()
        except HingeError as error:
            told(error)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    changes=st.lists(st.tuples(st.integers(0, 400), st.sampled_from([*b'",;\t\n .-e09x']), st.booleans()), max_size=3)
)
def test_whatever_polars_accepts_the_scan_reads_alike(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int, bool]]
) -> None:
    content = bytearray(b'a,b,label\n1.5,2,x\n3,"4",y z\n"5",-6e2,"x, q"\n7,8,"two lines"\n9,10,x\n')
    for place, byte, insert in changes:
        start = place % len(content)
        content[start : start + (not insert)] = bytes([byte])
    path = tmp_path_factory.mktemp("fuzz") / "table.csv"
    path.write_bytes(content)
    try:
        text = load_text(path)
        layout = find_layout(text)
    except DataError:
        return
    target = len(layout.names) - 1
    fast = _parse_fast(text, layout, list(range(target)), target, label_needed=True)
    if fast is not None:
        exact = scan(text, layout, list(range(target)), target, label_needed=True)
        np.testing.assert_array_equal(fast.numbers, exact.numbers)
        assert fast.labels == exact.labels
