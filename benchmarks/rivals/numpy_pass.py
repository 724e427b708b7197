"""The linear pass as a good NumPy programmer writes it: scores by GEMM, residuals in place, gradient by GEMM.

    S = W Xᵀ + b        loss and S ← ∂loss/∂S, in place        G = S X

Scores lie class-major, C×N, because reductions over the classes are then loops over contiguous rows, several times
faster than along short rows of C; they are allocated once and kept from call to call. Intercepts come separately.
SciPy's sparse rows are multiplied on one thread and give row-major results, which cost a transposition each way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from hinge.ops import Loss

NAME = "NumPy"
present = True


class NumpyPass:
    """Rows and labels bound to NumPy (dense) or SciPy (sparse)."""

    def __init__(self, X: Any, y: np.ndarray, n_classes: int) -> None:
        self.X, self.y, self.rows = X, y, np.arange(len(y))
        self.scores = np.empty((n_classes, X.shape[0]), dtype=X.dtype)
        self.is_sparse = sparse.issparse(X)

    def __call__(self, loss: Loss, W: np.ndarray, b: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the summed loss and its gradients in W, C×D, and b."""
        S = self.scores
        if self.is_sparse:
            S[...] = (self.X @ W.T).T
        else:
            np.matmul(W, self.X.T, out=S)
        S += b[:, None]
        value = RESIDUALS[loss.kind](S, self.y, self.rows, loss)
        gradient = (self.X.T @ np.ascontiguousarray(S.T)).T if self.is_sparse else S @ self.X
        return value, gradient, S.sum(axis=1)


def softmax(S: np.ndarray, y: np.ndarray, rows: np.ndarray, loss: Loss) -> float:
    S -= S.max(axis=0)
    true = S[y, rows]
    np.exp(S, out=S)
    total = S.sum(axis=0)
    S /= total
    S[y, rows] -= 1
    return float((np.log(total) - true).sum(dtype=np.float64))


def weston_watkins(S: np.ndarray, y: np.ndarray, rows: np.ndarray, loss: Loss) -> float:
    S -= S[y, rows] - S.dtype.type(loss.margin)
    S[y, rows] = 0
    value = _hinge_in_place(S, loss)
    S[y, rows] = -S.sum(axis=0)
    return value


def crammer_singer(S: np.ndarray, y: np.ndarray, rows: np.ndarray, loss: Loss) -> float:
    true = S[y, rows]
    S[y, rows] = -np.inf
    rival = S.argmax(axis=0)
    paid = S[rival, rows] - true + S.dtype.type(loss.margin)
    value = _hinge_in_place(paid, loss)
    S.fill(0)
    S[rival, rows] = paid
    S[y, rows] = -paid
    return value


def one_vs_rest(S: np.ndarray, y: np.ndarray, rows: np.ndarray, loss: Loss) -> float:
    S[y, rows] *= -1
    S += S.dtype.type(loss.margin)
    value = _hinge_in_place(S, loss)
    S[y, rows] *= -1
    return value


def _hinge_in_place(m: np.ndarray, loss: Loss) -> float:
    """Replace margins by slopes and return the sum of the losses."""
    np.maximum(m, 0, out=m)
    if loss.squared:
        flat = m.ravel()
        value = float(np.dot(flat, flat))
        m *= 2
    else:
        value = float(m.sum(dtype=np.float64))
        np.sign(m, out=m)
    return value


RESIDUALS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray, Loss], float]] = {
    "softmax": softmax,
    "weston_watkins": weston_watkins,
    "crammer_singer": crammer_singer,
    "one_vs_rest": one_vs_rest,
}
