"""The container of one NumPy array: its header is checked against the bytes that are really there."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from hinge.data.files import memory_for, read_at_most
from hinge.errors import DataError
from hinge.typing import Array

NPY_MAGIC = b"\x93NUMPY"


@dataclass(frozen=True)
class Header:
    """What an array's header says, and where its values begin."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    offset: int

    @property
    def n_bytes(self) -> int:
        """Return how many bytes the values take."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes], content_size: int, where: str) -> Header:
    """Read the header of an array whose file or archive member has `content_size` bytes."""
    try:
        # What NumPy says about old or odd headers must not turn into errors of the caller.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            version = np.lib.format.read_magic(stream)
            parse = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran_order, dtype = parse(stream)
    except (MemoryError, OSError, DataError):
        raise
    except Exception as error:  # any bytes may stand there, and NumPy raises what its parser raises
        raise DataError(
            f"the header of the array is damaged ({_first_line(error)})",
            where=where,
            remedy="Save the array again with numpy.save or numpy.savez.",
        ) from error
    header = Header(tuple(int(size) for size in shape), bool(fortran_order), dtype, stream.tell())
    _check_header(header, content_size, where)
    return header


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _check_header(header: Header, content_size: int, where: str) -> None:
    dtype = header.dtype
    if dtype.hasobject:
        raise DataError(
            "the array holds Python objects, which would have to be unpickled",
            where=where,
            remedy="hinge never unpickles: save numbers or text, e.g. array.astype(float) or astype(str).",
        )
    if dtype.names is not None or dtype.subdtype is not None:
        raise DataError(
            f"the array is structured ({dtype})",
            where=where,
            remedy="Save rows × features as a plain 2-D array of numbers.",
        )
    if dtype.itemsize == 0 or any(size < 0 for size in header.shape):
        raise DataError(
            f"the header of the array is damaged (shape {header.shape}, type {dtype})",
            where=where,
            remedy="Save the array again with numpy.save or numpy.savez.",
        )
    found = content_size - header.offset
    if header.n_bytes != found:
        what = "is truncated" if found < header.n_bytes else "is followed by other bytes"
        raise DataError(
            f"the array {what}: {header.shape} of {dtype} needs {header.n_bytes:,} bytes, {found:,} found",
            where=where,
            remedy="Fetch the file again, or save it again with one array per file.",
        )


def read_values(stream: IO[bytes], header: Header, where: str) -> Array:
    """Read the values that follow the header."""
    with memory_for(header.n_bytes, where=where):
        content = read_at_most(stream, header.n_bytes)
    if len(content) < header.n_bytes:
        raise DataError(
            f"the array is truncated: {header.n_bytes:,} bytes expected, {len(content):,} found",
            where=where,
            remedy="Fetch the file again.",
        )
    stream.read(1)  # at its end an archive member checks its checksum
    flat = np.frombuffer(content, dtype=header.dtype)
    return flat.reshape(header.shape[::-1]).T if header.fortran_order else flat.reshape(header.shape)


def load_npy(path: Path, *, mapped: bool = False) -> Array:
    """Load one array; `mapped` leaves its values in the file until they are used."""
    where = str(path)
    with open(path, "rb") as stream:
        header = read_header(stream, path.stat().st_size, where)
        if not mapped or header.n_bytes == 0 or not header.shape:
            return read_values(stream, header, where)
    values: Array = np.memmap(
        path,
        dtype=header.dtype,
        mode="r",
        offset=header.offset,
        shape=header.shape,
        order="F" if header.fortran_order else "C",
    )
    return values
