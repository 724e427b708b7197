"""NumPy's own files: NPZ archives of rows and labels, NPY matrices with a target column or a labels file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from hinge.data.dataset import Dataset, UnlabelledRows
from hinge.data.features import as_features, column_names, flat_pictures, names_for, positions_for
from hinge.data.files import find_beside, memory_for, plain_stem
from hinge.data.labels import (
    ASK_FOR_TARGET,
    did_you_mean,
    few_classes,
    find_target,
    labels_from_array,
    listed,
)
from hinge.data.npy import load_npy, read_header, read_values
from hinge.errors import DataError, HingeError
from hinge.typing import Array

_ROW_KEYS = ("x", "data", "images", "image", "features", "embeddings", "inputs")
_LABEL_KEYS = ("y", "target", "targets", "labels", "label", "classes")
_NAME_REMEDY = "Name the arrays X and y, or say which one holds the labels with target=KEY."


def read_npz(path: Path, *, target: str | None = None) -> Dataset:
    """Read labelled rows from an archive; `target` is the key of the labels."""
    with _archive(path) as archive:
        keys = _keys(archive, path)
        rows_key, labels_key = _training_keys(keys, target, path)
        X, shape, notes = _member_rows(archive, path, rows_key)
        y = _member_labels(archive, path, labels_key)
        test_rows, test_labels = _find(keys, _ROW_KEYS, "test"), _find(keys, _LABEL_KEYS, "test")
        test = None
        if test_rows and test_labels and rows_key != test_rows and labels_key != test_labels:
            test = _member_rows(archive, path, test_rows)[0], _member_labels(archive, path, test_labels)
            notes = (*notes, f"test rows: {test_rows!r}, their labels: {test_labels!r}")
    return Dataset(
        name=plain_stem(path),
        X=X,
        y=y,
        feature_names=names_for(X.shape[1], shape),
        target_name=labels_key,
        source=str(path),
        image_shape=shape,
        test=test,
        notes=(f"rows: {rows_key!r}, labels: {labels_key!r}", *notes),
    )


def read_npz_rows(path: Path) -> UnlabelledRows:
    """Read rows to predict from an archive: its test rows where it has some, else its only rows."""
    with _archive(path) as archive:
        keys = _keys(archive, path)
        for part in ("test", "", "train"):
            rows_key, labels_key = _find(keys, _ROW_KEYS, part), _find(keys, _LABEL_KEYS, part)
            if rows_key:
                break
        else:
            if len(keys) > 1:
                raise _no_array("rows", keys, path)
            rows_key, labels_key = keys[0], None
        X, _, notes = _member_rows(archive, path, rows_key)
        y = _member_labels(archive, path, labels_key) if labels_key else None
    return UnlabelledRows(X=X, y=y, source=str(path), notes=(f"rows: {rows_key!r}", *notes))


def read_npy(path: Path, *, target: str | int | None = None) -> Dataset:
    """Read a matrix; `target` is the index of its label column, or the path of an NPY file of labels."""
    labels_path = _labels_path(path, target)
    values = load_npy(path, mapped=True)
    _check_numbers(values, str(path))
    if labels_path is not None:
        y = labels_from_array(load_npy(labels_path), column="target", where=str(labels_path))
        rows, shape, notes = flat_pictures(values, where=str(path))
        name, note = "target", f"labels: {labels_path.name}"
    else:
        rows, y, name, reason = _split_column(values, target, str(path))
        shape, notes, note = None, (), f"target: {name} ({reason})"
    with memory_for(4 * rows.size, where=str(path)):
        X = as_features(rows)
    names = names_for(X.shape[1], shape)
    if labels_path is None:
        names = tuple(other for other in column_names(X.shape[1] + 1) if other != name)
    return Dataset(
        name=plain_stem(path),
        X=X,
        y=y,
        feature_names=names,
        target_name=name,
        source=str(path),
        image_shape=shape,
        notes=(note, *notes),
    )


def read_npy_rows(path: Path, *, feature_names: Sequence[str], target_name: str) -> UnlabelledRows:
    """Read rows to predict; a matrix with one column too many holds its target as well."""
    values = load_npy(path, mapped=True)
    _check_numbers(values, str(path))
    rows, shape, notes = flat_pictures(values, where=str(path))
    y = None
    if shape is None and rows.shape[1] != len(feature_names):
        features, target, more = positions_for(feature_names, target_name, rows.shape[1], where=str(path))
        if target is not None:
            y = labels_from_array(np.array(rows[:, target]), column=target_name, where=str(path))
        rows, notes = rows[:, features], (*notes, *more)
    return UnlabelledRows(X=as_features(rows), y=y, source=str(path), notes=notes)


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (HingeError, MemoryError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # damaged bytes make zipfile and its decompressors raise many types
        raise DataError(
            f"the NPZ archive is damaged ({error or type(error).__name__})",
            where=str(path),
            remedy="Fetch it again, or save it again with numpy.savez.",
        ) from error


def _keys(archive: zipfile.ZipFile, path: Path) -> list[str]:
    keys = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    if not keys:
        raise DataError(
            f"the archive holds no NumPy arrays, only {listed(archive.namelist()) or 'nothing'}",
            where=str(path),
            remedy="Give an archive that numpy.savez wrote, or save a spreadsheet as CSV first.",
        )
    return keys


def _find(keys: Sequence[str], stems: Sequence[str], part: str) -> str | None:
    """Return the key made of one of `stems` and `part` in either order; case and underscores do not count."""
    plain = {key.lower().replace("_", "").replace("-", ""): key for key in reversed(keys)}
    spelled = (name for stem in stems for name in (stem + part, part + stem))
    return next((plain[name] for name in spelled if name in plain), None)


def _training_keys(keys: list[str], target: str | None, path: Path) -> tuple[str, str]:
    if target is not None and target not in keys:
        raise DataError(
            f"there is no array {target!r}",
            where=str(path),
            remedy=f"{did_you_mean(target, keys)}The arrays are {listed(keys)}.",
        )
    others = [key for key in keys if key != target]
    for part in ("", "train"):
        rows = _find(others, _ROW_KEYS, part)
        labels = target or _find(keys, _LABEL_KEYS, part)
        if rows and labels:
            return rows, labels
    if target is not None and len(others) == 1:
        return others[0], target
    has_rows = _find(others, _ROW_KEYS, "") or _find(others, _ROW_KEYS, "train")
    raise _no_array("labels" if has_rows else "rows", keys, path)


def _no_array(what: str, keys: Sequence[str], path: Path) -> DataError:
    return DataError(
        f"no array is named as {what} are; the arrays are {listed(keys)}",
        where=str(path),
        remedy=_NAME_REMEDY,
    )


def _load_member(archive: zipfile.ZipFile, path: Path, key: str) -> Array:
    where = f"{path}, array {key!r}"
    info = archive.getinfo(f"{key}.npy")
    with archive.open(info) as stream:
        return read_values(stream, read_header(stream, info.file_size, where), where)


def _member_rows(
    archive: zipfile.ZipFile, path: Path, key: str
) -> tuple[Array, tuple[int, ...] | None, tuple[str, ...]]:
    where = f"{path}, array {key!r}"
    values = _load_member(archive, path, key)
    _check_numbers(values, where)
    rows, shape, notes = flat_pictures(values, where=where)
    with memory_for(4 * rows.size, where=where):
        return as_features(rows), shape, notes


def _member_labels(archive: zipfile.ZipFile, path: Path, key: str) -> Array:
    return labels_from_array(_load_member(archive, path, key), column=key, where=f"{path}, array {key!r}")


def _check_numbers(values: Array, where: str) -> None:
    if values.dtype.kind not in "biuf":
        raise DataError(
            f"the rows have type {values.dtype}",
            where=where,
            remedy="Features are real numbers: save them as integers or floats.",
        )


def _labels_path(path: Path, target: str | int | None) -> Path | None:
    if not isinstance(target, str) or not target.endswith(".npy"):
        return None
    found = find_beside(path, target)
    if found is None:
        raise DataError(
            f"the labels file {target!r} is missing",
            where=str(path),
            remedy="Give the path of an NPY file with one label per row.",
        )
    return found


def _split_column(values: Array, target: str | int | None, where: str) -> tuple[Array, Array, str, str]:
    """Return rows, labels, the name of the label column and why it was chosen."""
    if values.ndim != 2 or 0 in values.shape:
        raise DataError(
            f"the array has shape {values.shape}, so no column can be the target",
            where=where,
            remedy="Give rows × columns, or the labels in another file with target=LABELS.npy.",
        )
    names = column_names(values.shape[1])
    column = len(names) - 1 if target is None else find_target(target, names, where=where)
    labels = np.array(values[:, column])
    distinct = len(np.unique(labels))
    if target is None and not (
        np.isfinite(labels).all()
        and np.array_equal(np.trunc(labels), labels)
        and 2 <= distinct <= few_classes(len(labels))
    ):
        raise DataError(
            f"the last of {len(names):,} columns does not look like labels ({distinct:,} distinct numbers)",
            where=where,
            remedy=f"{ASK_FOR_TARGET} Labels in a file of their own are given as target=LABELS.npy.",
        )
    y = labels_from_array(labels, column=names[column], where=where)
    rows = np.delete(np.asarray(values), column, axis=1)
    return rows, y, names[column], "the last column" if target is None else "as given"
