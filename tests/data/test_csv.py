from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hinge.data.readers import read, read_rows
from hinge.errors import DataError

IRIS = "length,width,species\n5.1,3.5,setosa\n7.0,3.2,versicolor\n6.3,3.3,virginica\n5.0,3.6,setosa\n"


def write(folder: Path, content: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def failure(path: Path, **options: object) -> str:
    with pytest.raises(DataError) as caught:
        read(path, **options)  # type: ignore[arg-type]
    assert str(path) in caught.value.where
    assert caught.value.remedy.endswith((".", '""'))
    return str(caught.value)


def test_reads_names_labels_and_numbers(tmp_path: Path) -> None:
    dataset = read(write(tmp_path, IRIS, "iris.csv"))
    assert dataset.name == "iris"
    assert dataset.feature_names == ("length", "width")
    assert dataset.target_name == "species"
    assert dataset.y.tolist() == ["setosa", "versicolor", "virginica", "setosa"]
    assert dataset.X.dtype == np.float64
    assert dataset.X.flags.c_contiguous
    assert dataset.X.flags.writeable
    np.testing.assert_array_equal(dataset.X[1], [7.0, 3.2])
    assert dataset.notes == ("target: column 'species' (by its name)",)


@pytest.mark.parametrize("name", ["table.csv.gz", "table.tsv.gz", "table"])
def test_reads_gzip(tmp_path: Path, name: str) -> None:
    dataset = read(write(tmp_path, gzip.compress(IRIS.encode()), name))
    assert dataset.name == "table"
    assert len(dataset.X) == 4


def test_quoted_cells_may_hold_separators_quotes_and_lines(tmp_path: Path) -> None:
    dataset = read(write(tmp_path, 'a,label\n1,"x, ""y"""\n2,"two\nlines"\n3,z\n'))
    assert dataset.y.tolist() == ['x, "y"', "two\nlines", "z"]


class TestTarget:
    def test_by_name_index_or_digits(self, tmp_path: Path) -> None:
        path = write(tmp_path, "kind,a,b\n0,1.5,2\n1,3,4\n")
        for target in ("kind", 0, "0", -3, "-3"):
            dataset = read(path, target=target)
            assert dataset.target_name == "kind"
            assert dataset.feature_names == ("a", "b")

    def test_a_name_wins_over_an_index(self, tmp_path: Path) -> None:
        assert read(write(tmp_path, "a,0,b\n1,5,2\n1,6,2\n"), target="0").y.tolist() == [5, 6]

    def test_usual_names_in_their_order(self, tmp_path: Path) -> None:
        assert read(write(tmp_path, "y,Label,z\n1,a,2\n3,b,4\n")).target_name == "Label"

    def test_unknown_name(self, tmp_path: Path) -> None:
        message = failure(write(tmp_path, IRIS), target="specis")
        assert "Did you mean 'species'?" in message
        assert "'length', 'width', 'species'" in message

    @pytest.mark.parametrize("target", [3, "-4"])
    def test_unknown_index(self, tmp_path: Path, target: str | int) -> None:
        assert f"no column with index {target}" in failure(write(tmp_path, IRIS), target=target)

    def test_no_candidate(self, tmp_path: Path) -> None:
        rows = "".join(f"{i},{i % 7},{i / 7}\n" for i in range(100))
        message = failure(write(tmp_path, "a,b,price\n" + rows))
        assert "'price'" in message
        assert "--target" in message

    def test_many_whole_numbers_are_no_guess_but_may_be_chosen(self, tmp_path: Path) -> None:
        path = write(tmp_path, "a,b\n" + "".join(f"{i % 7},{i}\n" for i in range(100)))
        assert "--target" in failure(path)
        assert len(np.unique(read(path, target="b").y)) == 100

    def test_constant_last_column_is_no_guess(self, tmp_path: Path) -> None:
        assert "--target" in failure(write(tmp_path, "1,5,0\n2,6,0\n"))

    def test_continuous(self, tmp_path: Path) -> None:
        path = write(tmp_path, "a,target\n" + "".join(f"{i},{i / 7}\n" for i in range(1, 100)))
        assert "'target'" in failure(path)
        assert "hinge classifies" in failure(path)

    @pytest.mark.parametrize(
        ("cells", "labels"),
        [
            ("1 2 1", [1, 2, 1]),
            ("1.0 2.0 -3.0", [1, 2, -3]),
            ("1 2 x", ["1", "2", "x"]),
            ("0.5 1.5 0.5", ["0.5", "1.5", "0.5"]),
            ("none yes no", ["none", "yes", "no"]),
            ("9999999999999999999 1 2", ["9999999999999999999", "1", "2"]),
        ],
    )
    def test_types(self, tmp_path: Path, cells: str, labels: list[object]) -> None:
        rows = "".join(f"{i},{cell}\n" for i, cell in enumerate(cells.split()))
        y = read(write(tmp_path, "a,label\n" + rows)).y
        assert y.tolist() == labels
        assert y.dtype.kind == ("i" if isinstance(labels[0], int) else "U")

    @pytest.mark.parametrize("cell", ["", " ", "NA", "nan", '""', "?"])
    def test_missing_label(self, tmp_path: Path, cell: str) -> None:
        message = failure(write(tmp_path, IRIS.replace("versicolor", cell)))
        assert "the label is missing" in message
        assert "line 3, column 'species'" in message


class TestColumns:
    def test_exact_numbers_are_float32(self, tmp_path: Path) -> None:
        assert read(write(tmp_path, "a,b,label\n1,0.5,x\n16777216,-3,y\n")).X.dtype == np.float32

    @pytest.mark.parametrize("cell", ["16777217", "0.1", "1e300"])
    def test_other_numbers_are_float64(self, tmp_path: Path, cell: str) -> None:
        X = read(write(tmp_path, f"a,b,label\n1,0.5,x\n{cell},-3,y\n")).X
        assert X.dtype == np.float64
        assert X[1, 0] == float(cell)
        X = read(write(tmp_path, f"a,b,label\n1, 0.5,x\n\n{cell},-3,y\n")).X
        assert X.dtype == np.float64
        assert X[1, 0] == float(cell)

    @pytest.mark.parametrize("name", ["", "Unnamed: 0"])
    @pytest.mark.parametrize("index", [(0, 1, 2), (7, 3, 12)])
    def test_index_of_pandas_is_dropped(self, tmp_path: Path, name: str, index: tuple[int, ...]) -> None:
        rows = "".join(f"{i},{value},{label}\n" for i, value, label in zip(index, (4.5, 5, 6), "xyx", strict=True))
        dataset = read(write(tmp_path, f"{name},a,label\n{rows}"))
        assert dataset.feature_names == ("a",)
        assert "column 1 has no name and numbers the rows: left out" in dataset.notes

    def test_an_unnamed_column_of_measurements_stays(self, tmp_path: Path) -> None:
        dataset = read(write(tmp_path, ",a,label\n0.5,1,x\n0.7,2,y\n"))
        assert dataset.feature_names == ("column 1", "a")

    def test_a_named_column_that_counts_is_told(self, tmp_path: Path) -> None:
        dataset = read(write(tmp_path, "Id,a,label\n1,5,x\n2,6,y\n3,5,x\n"))
        assert dataset.feature_names == ("Id", "a")
        assert any("'Id' counts the rows" in note for note in dataset.notes)

    def test_separators_at_line_ends_are_no_column(self, tmp_path: Path) -> None:
        for header in ("a,b,kind,\n", ""):
            dataset = read(write(tmp_path, header + "1,2,x,\n3,4,y,\n3,5,y,\n"))
            assert dataset.X.shape == (3, 2)
            assert dataset.y.tolist() == ["x", "y", "y"]

    @pytest.mark.parametrize(
        ("names", "shape"),
        [
            ([f"pixel{i}" for i in range(784)], (28, 28)),
            ([f"pixel_{i}" for i in range(1, 65)], (8, 8)),
            ([f"px{i}" for i in range(16)], (4, 4)),
            ([f"{r}x{c}" for r in range(1, 29) for c in range(1, 29)], (28, 28)),
            ([f"pixel_{r}_{c}" for r in range(3) for c in range(5)], (3, 5)),
            ([f"pixel{i}" for i in range(10)], None),
            ([f"pixel{i}" for i in reversed(range(16))], None),
            ([f"f{i}" for i in range(16)], None),
            ([f"{c}x{r}" for r in range(1, 5) for c in range(1, 5)], None),
        ],
    )
    def test_pictures_are_known_by_names(self, tmp_path: Path, names: list[str], shape: tuple[int, int] | None) -> None:
        content = "\n".join(",".join(map(str, row)) for row in ([*names, "label"], [*range(len(names)), 1]))
        content += "\n" + ",".join(["5"] * len(names)) + ",0\n"
        assert read(write(tmp_path, content)).image_shape == shape


class TestRows:
    NAMES = ("length", "width")

    def rows(self, path: Path, names: tuple[str, ...] = NAMES, target: str = "species", **options: bool):  # type: ignore[no-untyped-def]
        return read_rows(path, feature_names=names, target_name=target, **options)

    def test_by_name_in_the_order_of_the_model(self, tmp_path: Path) -> None:
        path = write(tmp_path, "id,species,width,length\n7,a,2,1\n8,b,4,3\n")
        rows = self.rows(path)
        np.testing.assert_array_equal(rows.X, [[1, 2], [3, 4]])
        assert rows.y is not None
        assert rows.y.tolist() == ["a", "b"]
        assert rows.source == str(path)
        assert rows.notes == ("columns the model does not know were left out: 'id'",)

    def test_without_labels(self, tmp_path: Path) -> None:
        rows = self.rows(write(tmp_path, "length,width\n1,2\n"))
        assert rows.y is None
        assert rows.notes == ()

    def test_text_in_columns_that_are_not_needed_does_no_harm(self, tmp_path: Path) -> None:
        assert self.rows(write(tmp_path, "length,note,width\n1,hello,2\n3,,4\n")).X.shape == (2, 2)

    def test_labels_with_gaps_are_left_out(self, tmp_path: Path) -> None:
        rows = self.rows(write(tmp_path, "length,width,species\n1,2,a\n3,4,\n"))
        assert rows.y is None
        assert rows.notes == ("column 'species' lacks 1 of 2 labels and was left out",)

    @pytest.mark.parametrize("content", ["length\n1\n2\n", "1\n2\n", "length;note\n1;x\n2;y\n"])
    def test_one_feature(self, tmp_path: Path, content: str) -> None:
        rows = self.rows(write(tmp_path, content), names=("length",))
        np.testing.assert_array_equal(rows.X, [[1], [2]])
        assert rows.y is None

    def test_missing_columns(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"line 1: 1 of the model's .* missing: 'width'\. Did you mean 'widht'\?"):
            self.rows(write(tmp_path, "length,widht\n1,2\n"))

    def test_ragged(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="line 3: there are 2 cells"):
            self.rows(write(tmp_path, "length,width,species\n1,2,a\n3,4\n"))

    def test_damage_names_line_and_column(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="line 3, column 'length': 'x' is not a number"):
            self.rows(write(tmp_path, "width,length\n1,2\n3,x\n"))

    def test_names_that_are_numbers_are_found(self, tmp_path: Path) -> None:
        rows = self.rows(write(tmp_path, "1,0\n5,6\n"), names=("0", "1"))
        np.testing.assert_array_equal(rows.X, [[6, 5]])

    def test_without_header_by_position(self, tmp_path: Path) -> None:
        rows = self.rows(write(tmp_path, "1,2\n3,4\n"))
        np.testing.assert_array_equal(rows.X, [[1, 2], [3, 4]])
        assert rows.y is None

    def test_without_header_the_last_of_one_too_many_is_the_target(self, tmp_path: Path) -> None:
        rows = self.rows(write(tmp_path, "1,2,a\n3,4,a\n"), header=False)
        np.testing.assert_array_equal(rows.X, [[1, 2], [3, 4]])
        assert rows.y is not None
        assert rows.y.tolist() == ["a", "a"]
        assert "column 3 of 3 was taken as the target, the others as features" in rows.notes

    def test_without_header_the_order_of_the_training_file_holds(self, tmp_path: Path) -> None:
        path = write(tmp_path, "0,1.5,2\n1,3,4\n0,7,8\n")
        trained = read(path, target=0)
        rows = self.rows(path, names=trained.feature_names, target=trained.target_name)
        np.testing.assert_array_equal(rows.X, trained.X)
        np.testing.assert_array_equal(rows.y, trained.y)

    def test_names_made_up_in_training_match_by_position(self, tmp_path: Path) -> None:
        path = write(tmp_path, ",a,b\n0,1,2\n1,3,4\n")
        np.testing.assert_array_equal(self.rows(path, names=("column 1", "column 2")).X, [[1, 2], [3, 4]])

    @pytest.mark.parametrize("row", ["1", "1,2,3,4"])
    def test_wrong_width(self, tmp_path: Path, row: str) -> None:
        with pytest.raises(DataError, match=r"only one column|rows have 4 columns where the model has 2"):
            self.rows(write(tmp_path, f"{row}\n{row}\n"))


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    table=st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=width, max_size=width),
            min_size=2,
            max_size=8,
        )
    ),
    separator=st.sampled_from(",;\t"),
)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, table: list[list[float]], separator: str) -> None:
    names = [f"f{index}" for index in range(len(table[0]))]
    lines = [[*names, "label"], *([*map(repr, row), "ab"[index % 2]] for index, row in enumerate(table))]
    path = tmp_path_factory.mktemp("trip") / "table.csv"
    path.write_text("\n".join(separator.join(line) for line in lines))
    dataset = read(path)
    np.testing.assert_array_equal(dataset.X, np.array(table))
    assert dataset.feature_names == tuple(names)
