"""From what a user typed as DATA to a data set."""

from __future__ import annotations

import os

from hinge import datasets
from hinge.errors import UsageError


def read_dataset(
    data: str | None, *, target: str | None, header: bool | None, image_shape: tuple[int, ...] | None
) -> datasets.Dataset:
    """Read a file or directory, or load an embedded data set; a file of the same name wins."""
    if data is None or (data in datasets.names() and not os.path.exists(data)):
        if target is not None or header is not None or image_shape is not None:
            raise UsageError(
                "--target, --header and --image-shape tell how to read a file, and there is none",
                remedy="Name a file as DATA, or leave them out.",
            )
        return datasets.load(data or "digits")
    return datasets.read(data, target=target, header=header, image_shape=image_shape)
