"""The losses as one would first write them down: for each row, for each class.

Slow on purpose. Read this file to see what every other form computes, and use it to check them.
Each function takes one row's scores s (one a class) and its true class y, and returns the loss and ∂loss/∂s.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hinge.ops.protocol import Loss
from hinge.typing import FloatArray


def hinge(m: float, squared: bool) -> tuple[float, float]:
    """Return max(0, m), or its square, and the slope; a margin of exactly 0 is met and has slope 0."""
    if m <= 0:
        return 0.0, 0.0
    return (m * m, 2 * m) if squared else (m, 1.0)


def softmax_row(s: FloatArray, y: int, loss: Loss) -> tuple[float, list[float]]:
    """Cross-entropy of the softmax: log Σ exp(s_c) − s_y, shifted by the largest score so that exp cannot overflow."""
    largest = max(s)
    total = 0.0
    for c in range(len(s)):
        total += math.exp(s[c] - largest)
    slope = []
    for c in range(len(s)):
        probability = math.exp(s[c] - largest) / total
        slope.append(probability - 1 if c == y else probability)
    return math.log(total) + largest - s[y], slope


def weston_watkins_row(s: FloatArray, y: int, loss: Loss) -> tuple[float, list[float]]:
    """Every wrong class that comes within the margin of the true one pays."""
    value = 0.0
    slope = [0.0] * len(s)
    for c in range(len(s)):
        if c == y:
            continue
        paid, pull = hinge(loss.margin + s[c] - s[y], loss.squared)
        value += paid
        slope[c] += pull
        slope[y] -= pull
    return value, slope


def crammer_singer_row(s: FloatArray, y: int, loss: Loss) -> tuple[float, list[float]]:
    """Only the strongest wrong class pays; the first one where several are equal."""
    rival = -1
    for c in range(len(s)):
        if c != y and (rival < 0 or s[c] > s[rival]):
            rival = c
    value, pull = hinge(loss.margin + s[rival] - s[y], loss.squared)
    slope = [0.0] * len(s)
    slope[rival] = pull
    slope[y] = -pull
    return value, slope


def one_vs_rest_row(s: FloatArray, y: int, loss: Loss) -> tuple[float, list[float]]:
    """C separate two-class problems: the true class wants a score above Δ, every other one below −Δ."""
    value = 0.0
    slope = [0.0] * len(s)
    for c in range(len(s)):
        sign = -1.0 if c == y else 1.0
        paid, pull = hinge(loss.margin + sign * s[c], loss.squared)
        value += paid
        slope[c] = sign * pull
    return value, slope


ROW_LOSSES: dict[str, Callable[[FloatArray, int, Loss], tuple[float, list[float]]]] = {
    "softmax": softmax_row,
    "weston_watkins": weston_watkins_row,
    "crammer_singer": crammer_singer_row,
    "one_vs_rest": one_vs_rest_row,
}


def loss_and_gradient(
    loss: Loss, weights: FloatArray, X: FloatArray, y: list[int], sample_weight: list[float]
) -> tuple[float, FloatArray]:
    """Sum losses and gradient over the rows; weights are C×D, or C×(D + 1) with intercepts last."""
    C, D = weights.shape[0], X.shape[1]
    intercept = weights.shape[1] == D + 1
    total = 0.0
    gradient = np.zeros_like(weights)
    for i in range(X.shape[0]):
        s = np.zeros(C, dtype=weights.dtype)
        for c in range(C):
            for d in range(D):
                s[c] += weights[c, d] * X[i, d]
            if intercept:
                s[c] += weights[c, D]
        value, slope = ROW_LOSSES[loss.kind](s, y[i], loss)
        total += sample_weight[i] * float(value)
        for c in range(C):
            for d in range(D):
                gradient[c, d] += sample_weight[i] * slope[c] * X[i, d]
            if intercept:
                gradient[c, D] += sample_weight[i] * slope[c]
    return total, gradient
