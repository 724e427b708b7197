"""Files as byte streams: plain or gzip, never more memory than what the file really holds."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from hinge.errors import DataError, HingeError, ResourceError

GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 1 << 20
_DEFLATE_RATIO = 1032  # the most that one byte of deflate can expand to


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield `path` as an existing file or folder; turn what the system reports into hinge's errors."""
    try:
        place = _existing(path)
        yield place
    except HingeError:
        raise
    except FileNotFoundError as error:
        raise DataError(
            "there is no such file or folder",
            where=str(error.filename or path),
            remedy="Check the spelling and the folder that the path starts from.",
        ) from error
    except PermissionError as error:
        raise DataError(
            "permission to read it is denied",
            where=str(error.filename or path),
            remedy="Change its permissions, or copy it to a folder that you may read.",
        ) from error
    except MemoryError as error:
        raise ResourceError(
            f"the memory does not suffice to read it ({_file_size(path)} on disk)",
            where=str(path),
            remedy="Read a smaller part of it, or use a machine with more memory.",
        ) from error
    except OSError as error:
        raise DataError(
            f"the system cannot read it ({error})", where=str(path), remedy="Check the path and the disk."
        ) from error


def _existing(path: str | os.PathLike[str]) -> Path:
    try:
        place = Path(path).expanduser()
        mode = place.stat().st_mode
    except (ValueError, RuntimeError) as error:
        raise DataError(
            f"this is not a path ({error})", where=repr(path), remedy="Give the path of a file or a folder."
        ) from error
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise DataError("this is neither a file nor a folder", where=str(path), remedy="Give a regular file.")
    return place


def _file_size(path: str | os.PathLike[str]) -> str:
    try:
        return f"{os.path.getsize(path) / 2**20:,.1f} MiB"
    except OSError:
        return "unknown size"


@contextmanager
def memory_for(n_bytes: int, *, where: str) -> Iterator[None]:
    """Turn a lack of memory into ResourceError that says how much the work inside needs."""
    try:
        yield
    except MemoryError as error:
        raise ResourceError(
            f"reading it needs about {n_bytes / 2**30:,.2f} GiB of memory",
            where=where,
            remedy="Read a smaller part of it, or use a machine with more memory.",
        ) from error


@contextmanager
def open_content(path: Path) -> Iterator[IO[bytes]]:
    """Open the content of `path`, decompressed where it is gzip; a damaged gzip file raises DataError."""
    with open(path, "rb") as stream:
        compressed = stream.read(2) == GZIP_MAGIC
        stream.seek(0)
        if not compressed:
            yield stream
            return
        try:
            with gzip.GzipFile(fileobj=stream, mode="rb") as content:
                yield cast(IO[bytes], content)
        except EOFError as error:
            raise DataError(
                "the gzip file ends too early",
                where=str(path),
                remedy="It was cut off, perhaps by an interrupted download: fetch it again.",
            ) from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise DataError(
                f"the gzip file is damaged ({error})", where=str(path), remedy="Fetch or compress it again."
            ) from error


def is_gzip(path: Path) -> bool:
    """Tell whether `path` begins as gzip files do."""
    with open(path, "rb") as stream:
        return stream.read(len(GZIP_MAGIC)) == GZIP_MAGIC


def first_bytes(path: Path, count: int) -> bytes:
    """Return up to `count` first bytes of the content of `path`, decompressed where it is gzip."""
    with open_content(path) as stream:
        return bytes(read_at_most(stream, count))


def largest_content(path: Path) -> int:
    """Return how many bytes `path` can hold at most once it is decompressed."""
    return path.stat().st_size * (_DEFLATE_RATIO if is_gzip(path) else 1)


def read_at_most(stream: IO[bytes], count: int) -> bytearray:
    """Return the next `count` bytes, or fewer at the end; memory grows only with what really arrives."""
    content = bytearray()
    while len(content) < count:
        chunk = stream.read(min(_CHUNK, count - len(content)))
        if not chunk:
            break
        content += chunk
    return content


def read_everything(path: Path) -> bytes:
    """Return the whole content of `path`; a gzip file that expands beyond the machine's memory is refused."""
    limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2 if hasattr(os, "sysconf") else 1 << 34
    if not is_gzip(path):
        return path.read_bytes()
    with open_content(path) as stream:
        content = read_at_most(stream, limit + 1)
        if len(content) > limit:
            raise ResourceError(
                f"it expands to more than {limit / 2**30:.1f} GiB",
                where=str(path),
                remedy="Split the file, or convert it to IDX or NPY, which take less memory to read.",
            )
        return bytes(content)


def find_beside(path: Path, name: str) -> Path | None:
    """Return the file that `name` means, seen from here or from the folder of `path`."""
    try:
        places = (Path(name).expanduser(), path.parent / name)
    except RuntimeError:  # the home folder of an unknown user
        return None
    return next((place for place in places if place.is_file()), None)


def plain_stem(path: Path) -> str:
    """Return the name of `path` without folder, .gz and format suffix."""
    name = path.name.removesuffix(".gz")
    return Path(name).stem or name
