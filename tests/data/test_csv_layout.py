from __future__ import annotations

import codecs
from pathlib import Path

import numpy as np
import pytest

from hinge.data.readers import read
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


@pytest.mark.parametrize(
    "content",
    [
        IRIS.replace(",", ";"),
        IRIS.replace(",", "\t"),
        IRIS.replace("\n", "\r\n"),
        IRIS.replace("\n", "\r"),
        codecs.BOM_UTF8.decode() + IRIS,
        IRIS + "\n\n  \n",
        "\n\n" + IRIS,
        IRIS.replace("\n7.0", "\n\n7.0"),
        IRIS.rstrip("\n"),
        IRIS.replace(",", ", "),
        IRIS.replace(",", " , "),
        IRIS.replace("setosa", '"setosa"').replace("length", '"length"'),
        IRIS.replace("5.1", '"5.1"').replace(",", ", "),
    ],
)
def test_spellings_of_one_table_read_alike(tmp_path: Path, content: str) -> None:
    dataset, plain = read(write(tmp_path, content)), read(write(tmp_path, IRIS, "plain.csv"))
    np.testing.assert_array_equal(dataset.X, plain.X)
    np.testing.assert_array_equal(dataset.y, plain.y)
    assert dataset.feature_names == plain.feature_names


class TestHeader:
    def test_numbers_alone_have_none(self, tmp_path: Path) -> None:
        dataset = read(write(tmp_path, "1.5,2,0\n3,4,1\n5,6,0\n"))
        assert dataset.feature_names == ("column 1", "column 2")
        assert dataset.target_name == "column 3"
        assert dataset.notes == (
            "target: column 'column 3' (the last column)",
            "no header line: columns are numbered from 1",
        )

    def test_text_labels_alone_do_not_make_one(self, tmp_path: Path) -> None:
        assert len(read(write(tmp_path, "5.1,3.5,setosa\n4.9,3,setosa\n7,3.2,versicolor\n")).X) == 3

    def test_a_name_above_numbers_makes_one(self, tmp_path: Path) -> None:
        assert read(write(tmp_path, "2020,size,kind\n1,2,a\n3,4,b\n")).feature_names == ("2020", "size")

    def test_default_names_of_pandas_make_one(self, tmp_path: Path) -> None:
        dataset = read(write(tmp_path, "0,1,2,target\n5,6,7,a\n8,9,1,b\n"))
        assert dataset.feature_names == ("0", "1", "2")

    def test_counting_cells_above_a_recurring_label_are_data(self, tmp_path: Path) -> None:
        assert len(read(write(tmp_path, "0,1,a\n5,6,b\n8,9,a\n")).X) == 3

    def test_all_columns_counted_make_one_from_four_on(self, tmp_path: Path) -> None:
        assert read(write(tmp_path, "0,1,2,3\n5,6,7,1\n5,6,8,0\n")).feature_names == ("0", "1", "2")
        assert len(read(write(tmp_path, "0,1,2\n5,6,7\n5,6,8\n")).X) == 3

    def test_the_caller_decides(self, tmp_path: Path) -> None:
        path = write(tmp_path, "4,2,1\n3,4,1\n5,6,0\n")
        assert read(path, header=True).feature_names == ("4", "2")
        assert len(read(path, header=False).X) == 3
        assert "'length' is not a number" in failure(write(tmp_path, IRIS, "i.csv"), header=False)
