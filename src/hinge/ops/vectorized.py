"""The losses in NumPy without loops: each function takes all scores at once, N×C, and the labels y.

It returns the N losses and ∂loss/∂scores, N×C; `*_curvature` multiplies the second derivative by U, N×C.
This is the reference that tests hold the native kernels against.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hinge.ops.protocol import Loss
from hinge.typing import Array, Codes, FloatArray


def softmax(scores: FloatArray) -> FloatArray:
    """Return exp(s_c) / Σ exp(s) along the last axis, shifted by the largest score so that exp cannot overflow."""
    with np.errstate(over="ignore"):  # a distance beyond the finite numbers is −∞, and its exponential 0
        shifted = np.exp(scores - scores.max(axis=-1, keepdims=True))
    probabilities: FloatArray = shifted / shifted.sum(axis=-1, keepdims=True)
    return probabilities


def log_softmax(scores: FloatArray) -> FloatArray:
    """Return the logarithm of `softmax`, exact where probabilities vanish."""
    shifted = scores - scores.max(axis=-1, keepdims=True)
    logarithms: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return logarithms


def one_hot(y: Codes, n_classes: int, dtype: type = np.float64) -> FloatArray:
    """Return N×C rows of zeros with a one at each row's class."""
    rows: FloatArray = np.zeros((len(y), n_classes), dtype=dtype)
    rows[np.arange(len(y)), y] = 1
    return rows


def hinge(m: FloatArray, squared: bool) -> tuple[FloatArray, FloatArray]:
    """Return max(0, m), or its square, and the slope; a margin of exactly 0 is met and has slope 0."""
    positive = np.maximum(m, 0)
    if squared:
        return positive**2, 2 * positive
    return positive, (m > 0).astype(m.dtype)


def softmax_loss(S: FloatArray, y: Codes, loss: Loss) -> tuple[FloatArray, FloatArray]:
    """log Σ_c exp(s_c) − s_y"""
    largest = S.max(axis=1)
    log_sum = np.log(np.exp(S - largest[:, None]).sum(axis=1)) + largest
    return log_sum - S[np.arange(len(y)), y], softmax(S) - one_hot(y, S.shape[1], S.dtype.type)


def weston_watkins_loss(S: FloatArray, y: Codes, loss: Loss) -> tuple[FloatArray, FloatArray]:
    """Σ_{c≠y} φ(Δ + s_c − s_y)"""
    rows = np.arange(len(y))
    m = loss.margin + S - S[rows, y][:, None]
    m[rows, y] = 0
    value, slope = hinge(m, loss.squared)
    slope[rows, y] = -slope.sum(axis=1)
    return value.sum(axis=1), slope


def strongest_rival(S: FloatArray, y: Codes) -> Array:
    """Return each row's best-scoring wrong class, the first one where several are equal."""
    others = S.copy()
    others[np.arange(len(y)), y] = -np.inf
    rival: Array = others.argmax(axis=1)
    return rival


def crammer_singer_loss(S: FloatArray, y: Codes, loss: Loss) -> tuple[FloatArray, FloatArray]:
    """φ(Δ + max_{c≠y} s_c − s_y)"""
    rows, rival = np.arange(len(y)), strongest_rival(S, y)
    value, pull = hinge(loss.margin + S[rows, rival] - S[rows, y], loss.squared)
    slope = np.zeros_like(S)
    slope[rows, rival] = pull
    slope[rows, y] = -pull
    return value, slope


def one_vs_rest_loss(S: FloatArray, y: Codes, loss: Loss) -> tuple[FloatArray, FloatArray]:
    """φ(Δ − s_y) + Σ_{c≠y} φ(Δ + s_c)"""
    sign = 1 - 2 * one_hot(y, S.shape[1], S.dtype.type)
    value, slope = hinge(loss.margin + sign * S, loss.squared)
    return value.sum(axis=1), sign * slope


def softmax_curvature(S: FloatArray, U: FloatArray, y: Codes, loss: Loss) -> FloatArray:
    """(diag p − p pᵀ) u"""
    p = softmax(S)
    product: FloatArray = p * (U - (p * U).sum(axis=1, keepdims=True))
    return product


def weston_watkins_curvature(S: FloatArray, U: FloatArray, y: Codes, loss: Loss) -> FloatArray:
    """Σ over the classes c within the margin of 2 (e_c − e_y)(e_c − e_y)ᵀ u"""
    rows = np.arange(len(y))
    active = loss.margin + S - S[rows, y][:, None] > 0
    active[rows, y] = False
    pull: FloatArray = 2 * active * (U - U[rows, y][:, None])
    pull[rows, y] = -pull.sum(axis=1)
    return pull


def crammer_singer_curvature(S: FloatArray, U: FloatArray, y: Codes, loss: Loss) -> FloatArray:
    """The same for the strongest rival alone."""
    rows, rival = np.arange(len(y)), strongest_rival(S, y)
    active = loss.margin + S[rows, rival] - S[rows, y] > 0
    pull = 2 * active * (U[rows, rival] - U[rows, y])
    product = np.zeros_like(U)
    product[rows, rival] = pull
    product[rows, y] = -pull
    return product


def one_vs_rest_curvature(S: FloatArray, U: FloatArray, y: Codes, loss: Loss) -> FloatArray:
    """2 u_c wherever class c's own margin is not met"""
    sign = 1 - 2 * one_hot(y, S.shape[1], S.dtype.type)
    product: FloatArray = 2 * (loss.margin + sign * S > 0) * U
    return product


@dataclass(frozen=True)
class CurvatureFactors:
    """∂²loss/∂scores² of each row in parts: diag(dᵢ) − mᵢ mᵢᵀ + pᵢ pᵢᵀ; all N×C, None where there is none."""

    diagonal: FloatArray
    minus: FloatArray | None = None
    plus: FloatArray | None = None

    def squares(self) -> list[tuple[int, FloatArray]]:
        """Return the rank-one parts that there are, with their signs."""
        return [(sign, f) for sign, f in ((-1, self.minus), (1, self.plus)) if f is not None]

    def trace(self) -> FloatArray:
        """Return the trace of each row's matrix."""
        total: FloatArray = self.diagonal.sum(axis=1)
        for sign, factor in self.squares():
            total = total + sign * np.square(factor).sum(axis=1)
        return total


def softmax_factors(S: FloatArray, y: Codes, loss: Loss) -> CurvatureFactors:
    """diag p − p pᵀ"""
    p = softmax(S)
    return CurvatureFactors(p, minus=p)


def weston_watkins_factors(S: FloatArray, y: Codes, loss: Loss) -> CurvatureFactors:
    """2·[diag a + |a| e_y e_yᵀ − a e_yᵀ − e_y aᵀ] with a marking the classes within the margin.

    The last two are ½·(a − e_y)(a − e_y)ᵀ − ½·(a + e_y)(a + e_y)ᵀ.
    """
    rows = np.arange(len(y))
    a = (loss.margin + S - S[rows, y][:, None] > 0).astype(S.dtype)
    a[rows, y] = 0
    own = one_hot(y, S.shape[1], S.dtype.type)
    return CurvatureFactors(2 * a + 2 * a.sum(axis=1, keepdims=True) * own, minus=a + own, plus=a - own)


def crammer_singer_factors(S: FloatArray, y: Codes, loss: Loss) -> CurvatureFactors:
    """2·(e_r − e_y)(e_r − e_y)ᵀ for the strongest rival r, where it is within the margin"""
    rows, rival = np.arange(len(y)), strongest_rival(S, y)
    active = np.sqrt(2 * (loss.margin + S[rows, rival] - S[rows, y] > 0)).astype(S.dtype)
    pull = np.zeros_like(S)
    pull[rows, rival] = active
    pull[rows, y] = -active
    return CurvatureFactors(np.zeros_like(S), plus=pull)


def one_vs_rest_factors(S: FloatArray, y: Codes, loss: Loss) -> CurvatureFactors:
    """2·diag a"""
    sign = 1 - 2 * one_hot(y, S.shape[1], S.dtype.type)
    return CurvatureFactors(2 * (loss.margin + sign * S > 0).astype(S.dtype))


LOSSES: dict[str, Callable[[FloatArray, Codes, Loss], tuple[FloatArray, FloatArray]]] = {
    "softmax": softmax_loss,
    "weston_watkins": weston_watkins_loss,
    "crammer_singer": crammer_singer_loss,
    "one_vs_rest": one_vs_rest_loss,
}

CURVATURES: dict[str, Callable[[FloatArray, FloatArray, Codes, Loss], FloatArray]] = {
    "softmax": softmax_curvature,
    "weston_watkins": weston_watkins_curvature,
    "crammer_singer": crammer_singer_curvature,
    "one_vs_rest": one_vs_rest_curvature,
}

FACTORS: dict[str, Callable[[FloatArray, Codes, Loss], CurvatureFactors]] = {
    "softmax": softmax_factors,
    "weston_watkins": weston_watkins_factors,
    "crammer_singer": crammer_singer_factors,
    "one_vs_rest": one_vs_rest_factors,
}
