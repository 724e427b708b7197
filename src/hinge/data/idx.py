"""IDX files, the format of MNIST and its kin: pictures in one file, their labels in another beside it.

A file is: two zero bytes, a type code, the number of dimensions, the dimensions as big-endian 32-bit
integers, then the values, big-endian, last dimension fastest.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hinge.data.dataset import Dataset, UnlabelledRows
from hinge.data.features import as_features, flat_pictures, names_for
from hinge.data.files import find_beside, largest_content, memory_for, open_content, plain_stem, read_at_most
from hinge.data.labels import labels_from_array
from hinge.errors import DataError
from hinge.typing import Array

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_IMAGES = re.compile(
    r"(?P<prefix>.*?)(?P<part>train|t10k|test)?(?P<gap>[-_.]?)images?[-_.]idx[0-9][-_.]ubyte(\.gz)?",
    re.IGNORECASE,
)
_LARGEST_RANK = 8


def is_idx(head: bytes) -> bool:
    """Tell whether a file's first bytes are those of IDX."""
    return len(head) >= 4 and head[:2] == b"\0\0" and head[2] in TYPES and 1 <= head[3] <= _LARGEST_RANK


def is_idx_name(name: str) -> bool:
    """Tell whether a file is named as IDX files are."""
    return bool(re.search(r"idx[0-9][-_.]ubyte|\.idx$|[-_.]ubyte$", name.removesuffix(".gz"), re.IGNORECASE))


def read_idx(path: Path, *, target: str | None = None) -> Dataset:
    """Read labelled pictures; `path` is their file or its folder, `target` the labels file."""
    images = _images_in(path) if path.is_dir() else path
    labels = _labels_file(images, target)
    X, shape, notes = _load_rows(images)
    y = _load_labels(labels, len(X))
    match = _IMAGES.fullmatch(images.name)
    test, test_notes = None, tuple[str, ...]()
    if match and (match["part"] or "").lower() == "train" and target is None:
        test, test_notes = _load_test(images, X.shape[1])
    prefix = match["prefix"].strip("-_.") if match else plain_stem(images)
    return Dataset(
        name=prefix or images.resolve().parent.name or "idx",
        X=X,
        y=y,
        feature_names=names_for(X.shape[1], shape),
        target_name="label",
        source=str(path),
        image_shape=shape if shape is not None and len(shape) in (2, 3) else None,
        test=test,
        notes=(f"labels: {labels.name}", *notes, *test_notes),
    )


def read_idx_rows(path: Path) -> UnlabelledRows:
    """Read pictures to predict, and their labels where a labels file lies beside them.

    Of a folder with training and test files the test files are read.
    """
    images = _images_in(path, first="t10k") if path.is_dir() else path
    X, _, notes = _load_rows(images)
    y = None
    labels = next((place for place in _labels_candidates(images) if place.is_file()), None)
    if labels is not None:
        y = _load_labels(labels, len(X))
        notes = (f"labels: {labels.name}", *notes)
    return UnlabelledRows(X=X, y=y, source=str(images), notes=notes)


def load_idx(path: Path) -> Array:
    """Read one IDX file into an array of native byte order, or raise DataError for what is wrong with it."""
    where = str(path)
    with open_content(path) as stream:
        dtype, shape = _read_header(bytes(read_at_most(stream, 4)), stream.read, where)
        size = math.prod(shape) * dtype.itemsize
        most = largest_content(path)
        if size > most:
            raise _truncated(shape, size, f"can hold at most {most:,}", where)
        with memory_for(size, where=where):
            content = read_at_most(stream, size)
        if len(content) < size:
            raise _truncated(shape, size, f"holds {len(content):,}", where)
        if read_at_most(stream, 1):
            raise DataError(
                f"bytes follow after the {size:,} that its dimensions {shape} announce",
                where=where,
                remedy="The header and the content do not belong together: fetch or write the file again.",
            )
    values = np.frombuffer(content, dtype=dtype).reshape(shape)
    return values.astype(dtype.newbyteorder("="), copy=False)


def _read_header(magic: bytes, read: Callable[[int], bytes], where: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    if len(magic) < 4 or magic[:2] != b"\0\0":
        raise DataError(
            f"it begins with {magic.hex(' ') or 'nothing'}, not with the two zero bytes of an IDX file",
            where=where,
            remedy="Give an IDX file such as train-images-idx3-ubyte, plain or as .gz.",
        )
    if magic[2] not in TYPES:
        known = ", ".join(f"0x{code:02x}" for code in TYPES)
        raise DataError(
            f"its type code 0x{magic[2]:02x} is not one of IDX ({known})",
            where=where,
            remedy="The file is damaged or of another format: fetch it again.",
        )
    rank = magic[3]
    if not 1 <= rank <= _LARGEST_RANK:
        raise DataError(
            f"it claims {rank} dimensions; 1 to {_LARGEST_RANK} are possible",
            where=where,
            remedy="The file is damaged: fetch it again.",
        )
    content = read(4 * rank)
    if len(content) < 4 * rank:
        raise DataError(
            f"it ends inside its header: {4 + 4 * rank} bytes expected, {4 + len(content)} found",
            where=where,
            remedy="The file was cut off: fetch it again.",
        )
    return np.dtype(TYPES[magic[2]]), struct.unpack(f">{rank}I", content)


def _truncated(shape: tuple[int, ...], size: int, found: str, where: str) -> DataError:
    return DataError(
        f"its dimensions {shape} need {size:,} bytes of values, but the file {found}",
        where=where,
        remedy="The file was cut off or its header is damaged: fetch it again.",
    )


def _load_rows(images: Path) -> tuple[Array, tuple[int, ...] | None, tuple[str, ...]]:
    values = load_idx(images)
    if values.ndim == 1:
        raise DataError(
            "it holds one number per row, so these are labels and not pictures",
            where=str(images),
            remedy="Give the file of pictures; its labels are found beside it.",
        )
    rows, shape, notes = flat_pictures(values, where=str(images))
    with memory_for(4 * rows.size, where=str(images)):
        return as_features(rows), shape, notes


def _load_labels(path: Path, n_rows: int) -> Array:
    labels = labels_from_array(load_idx(path), column="label", where=str(path))
    if len(labels) != n_rows:
        raise DataError(
            f"there are {n_rows:,} pictures but {len(labels):,} labels",
            where=str(path),
            remedy="Give the labels file that belongs to these pictures.",
        )
    return labels


def _load_test(images: Path, n_features: int) -> tuple[tuple[Array, Array] | None, tuple[str, ...]]:
    """Load the publisher's test files where they lie beside the training files."""
    match = _IMAGES.fullmatch(images.name)
    assert match is not None
    start, end = match.span("part")
    names = [f"{images.name[:start]}{part}{images.name[end:]}" for part in ("t10k", "test")]
    places = [images.with_name(spelling) for name in names for spelling in _spellings(name)]
    test_images = next((place for place in places if place.is_file()), None)
    if test_images is None:
        return None, ()
    labels = next((place for place in _labels_candidates(test_images) if place.is_file()), None)
    if labels is None:
        return None, (f"{test_images.name} has no labels beside it and was left out",)
    rows, _, _ = _load_rows(test_images)
    if rows.shape[1] != n_features:
        raise DataError(
            f"its pictures have {rows.shape[1]:,} values where those of {images.name} have {n_features:,}",
            where=str(test_images),
            remedy="Move test files that belong to another data set out of this folder.",
        )
    return (rows, _load_labels(labels, len(rows))), (f"test rows: {test_images.name}",)


def _labels_file(images: Path, target: str | None) -> Path:
    if target is not None:
        found, tried = find_beside(images, target), target
        remedy = "Give the path of the labels file as target=PATH (--target on the command line)."
    else:
        places = _labels_candidates(images)
        found = next((place for place in places if place.is_file()), None)
        tried = ", ".join(place.name for place in places) or "none, for the name of the pictures tells nothing"
        remedy = "Put it there, or give its path as target=PATH (--target on the command line)."
    if found is None:
        raise DataError(f"the labels file is missing (names tried: {tried})", where=str(images), remedy=remedy)
    return found


def _labels_candidates(images: Path) -> list[Path]:
    name = re.sub(r"image(?=s?[-_.])", "label", images.name, count=1, flags=re.IGNORECASE)
    name = re.sub(r"idx[0-9]", "idx1", name, count=1, flags=re.IGNORECASE)
    return [] if name == images.name else [images.with_name(spelling) for spelling in _spellings(name)]


def _spellings(name: str) -> Iterator[str]:
    """Yield `name` as publishers write it: with a dash or a dot before idx, plain or gzip, as given first."""
    plain = name.removesuffix(".gz")
    bare = [re.sub(r"[-_.](?=idx[0-9])", joint, plain, flags=re.IGNORECASE) for joint in "-."]
    bare = list(dict.fromkeys([plain, *bare]))
    endings = (".gz", "") if name.endswith(".gz") else ("", ".gz")
    yield from (stem + ending for stem in bare for ending in endings)


def _images_in(folder: Path, first: str = "train") -> Path:
    """Return the file of pictures in `folder`: the part `first`, else the only one; plain before gzip."""
    found = {place: match for place in sorted(folder.iterdir()) if (match := _IMAGES.fullmatch(place.name))}
    if not found:
        raise DataError(
            "the folder holds no IDX pictures such as train-images-idx3-ubyte.gz",
            where=str(folder),
            remedy="Give the file itself, or a folder with IDX pictures and labels.",
        )
    wanted = [place for place, match in found.items() if (match["part"] or "").lower() == first]
    places = sorted(wanted or found, key=lambda place: place.name.endswith(".gz"))
    if len({_canonical(place.name) for place in places}) > 1:
        raise DataError(
            f"the folder holds several data sets: {', '.join(place.name for place in places)}",
            where=str(folder),
            remedy="Give the file of pictures itself.",
        )
    return places[0]


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]", "", name.removesuffix(".gz")).lower()
