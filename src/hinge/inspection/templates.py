"""A linear classifier's weights seen as pictures: one template a class, as large as a row."""

from __future__ import annotations

import math

import numpy as np

from hinge.errors import DataError
from hinge.typing import Array


def weight_templates(coef: Array, image_shape: tuple[int, ...]) -> Array:
    """Return `coef`, one row a class, as signed pictures scaled to [−1, 1] by the largest weight of each class.

    Two classes share one row of `coef`; it becomes two templates, of opposite sign.
    """
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    if math.prod(image_shape) != coef.shape[1]:
        raise DataError(
            f"{coef.shape[1]} weights a class do not fill a picture of shape {image_shape}",
            remedy="Pass the shape of the rows that the classifier was trained on.",
        )
    if coef.shape[0] == 1:
        coef = np.concatenate([-coef, coef])
    largest = np.abs(coef).max(axis=1, keepdims=True)
    scaled: Array = coef / np.where(largest > 0, largest, 1.0)
    return scaled.reshape(coef.shape[0], *image_shape)
