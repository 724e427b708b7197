"""Whole or not at all."""

import errno
from pathlib import Path

import pytest

from hinge.atomic import new_directory, new_file
from hinge.errors import ResourceError, UsageError


def names(place):
    return sorted(p.name for p in place.iterdir())


def test_a_directory_appears_only_when_all_is_written(tmp_path):
    with new_directory(tmp_path / "a" / "b", replaces="mark") as scratch:
        (scratch / "mark").write_text("1")
        assert not (tmp_path / "a" / "b").exists()
    assert names(tmp_path / "a") == ["b"]
    assert names(tmp_path / "a" / "b") == ["mark"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_failure_leaves_what_was_there(tmp_path, error):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "mark").write_text("old")
    with pytest.raises(error), new_directory(tmp_path / "r", replaces="mark") as scratch:  # noqa: PT012
        (scratch / "mark").write_text("new")
        raise error
    assert names(tmp_path) == ["r"]
    assert (tmp_path / "r" / "mark").read_text() == "old"
    with pytest.raises(error), new_file(tmp_path / "f") as scratch:  # noqa: PT012
        scratch.write_text("new")
        raise error
    assert names(tmp_path) == ["r"]


def test_a_file_is_replaced_whole(tmp_path):
    (tmp_path / "f").write_text("old")
    with new_file(tmp_path / "f") as scratch:
        scratch.write_text("new")
        assert (tmp_path / "f").read_text() == "old"
    assert (tmp_path / "f").read_text() == "new"
    assert names(tmp_path) == ["f"]


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOSPC, ResourceError), (errno.EACCES, UsageError), (errno.EROFS, UsageError), (errno.ENOENT, UsageError)],
)
def test_refusals_of_the_system_are_explained(tmp_path, number, kind):
    with pytest.raises(kind) as caught, new_file(tmp_path / "f"):
        raise OSError(number, "no")
    assert str(tmp_path / "f") in str(caught.value)
    assert names(tmp_path) == []


def test_places_that_are_taken(tmp_path):
    (tmp_path / "d").mkdir()
    with pytest.raises(UsageError, match="is a directory"), new_file(tmp_path / "d"):
        pass
    (tmp_path / "f").write_text("x")
    with pytest.raises(UsageError, match="not a directory"), new_directory(tmp_path / "f", replaces="m"):
        pass
    with pytest.raises(UsageError, match="cannot be written"), new_file(Path(tmp_path / "f" / "g")):
        pass
