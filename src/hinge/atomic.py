"""Results appear whole or not at all: everything is written beside its place and renamed into it."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hinge.errors import HingeError, ResourceError, UsageError


@contextmanager
def new_directory(path: Path, *, replaces: str) -> Iterator[Path]:
    """Yield an empty directory that becomes `path` when the block ends well, and vanishes when it does not.

    An existing `path` is replaced only if it is empty or holds a file named `replaces`, the mark of an earlier result.
    """
    path = Path(os.path.abspath(path))
    require_place(path, replaces=replaces)
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}.partial-", dir=path.parent))
    try:
        with _explained(path):
            yield scratch
            scratch.chmod(0o755)
            _swap(scratch, path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def require_place(path: Path, *, replaces: str) -> None:
    """Raise UsageError unless `path` is free, empty, or an earlier result: a directory that holds `replaces`."""
    with _explained(path):
        if path.exists() and not path.is_dir():
            raise UsageError("exists and is not a directory", where=str(path), remedy="Choose another place.")
        if path.is_dir() and any(path.iterdir()) and not (path / replaces).is_file():
            raise UsageError(
                f"is not empty and holds no {replaces}, so it is not an earlier result",
                where=str(path),
                remedy="Choose another directory, or empty this one.",
            )


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield a file name to write to that becomes `path` when the block ends well."""
    path = Path(os.path.abspath(path))
    if path.is_dir():
        raise UsageError("is a directory", where=str(path), remedy="Name a file.")
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.partial-", dir=path.parent)
        os.close(handle)
    scratch = Path(name)
    try:
        with _explained(path):
            yield scratch
            scratch.chmod(0o644)
            scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def _swap(scratch: Path, path: Path) -> None:
    if not path.exists():
        scratch.rename(path)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old-", dir=path.parent)) / path.name
    path.rename(old)
    try:
        scratch.rename(path)
    except OSError:
        old.rename(path)
        raise
    finally:
        shutil.rmtree(old.parent, ignore_errors=True)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals into errors that say what to do."""
    try:
        yield
    except HingeError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ResourceError(
                "the disk is full; nothing was kept", where=str(path), remedy="Free some room and run again."
            ) from error
        raise UsageError(
            f"cannot be written ({error.strerror})", where=str(path), remedy="Choose a place you may write to."
        ) from error
