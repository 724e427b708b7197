"""Dual coordinate ascent as one would first write it down: for each row, by sorting. The oracle of the native kernels.

Each row has a vector α ≥ 0 over the classes, and stands for the slopes u(α) in R^C:

    Weston–Watkins, Crammer–Singer   u = Σ_{c≠y} α_c·(e_c − e_y)          one-vs-rest   u_y = −α_y, u_c = α_c
    softmax                          u = α − e_y, α the probabilities

    loss              −loss*(u)                        bounds                with S = Σ_c α_c
    Weston–Watkins    Δ·S [ − Σ α_c²/4 if squared ]    α_c ≤ 1 if plain
    Crammer–Singer    Δ·S [ − S²/4     if squared ]    S ≤ 1   if plain
    one-vs-rest       Δ·S [ − Σ α_c²/4 if squared ]    α_c ≤ 1 if plain
    softmax           −Σ α_c·log α_c                   S = 1

The row's own problem, all other rows held fixed, is  max −loss*(u) + ⟨s, u − u_now⟩ − q/2·‖u − u_now‖²  with s its
scores and q = vᵢ·‖xᵢ‖²/penalty. Papers: Crammer & Singer, JMLR 2 (2001), section 6; Wang & Scott, ICML 2021;
Yu, Huang & Lin, Machine Learning 85 (2011) (softmax).
"""

from __future__ import annotations

import math
from typing import final

import numpy as np

from hinge.ops.protocol import Loss
from hinge.typing import Array, Codes, FloatArray


def best_row(loss: Loss, s: list[float], alpha: list[float], y: int, q: float) -> list[float]:
    """Return the α that solves the row's problem at scores s, starting from `alpha`; q > 0."""
    if loss.kind == "softmax":
        return _best_probabilities([s[c] + q * alpha[c] for c in range(len(s))], q)
    if loss.kind == "one_vs_rest":
        return [_best_alone(loss, s[c], alpha[c], -1.0 if c == y else 1.0, q) for c in range(len(s))]
    total = sum(alpha)
    margins = [loss.margin + (s[c] + q * alpha[c]) - (s[y] - q * total) for c in range(len(s))]
    rivals = [c for c in range(len(s)) if c != y]
    bend = 0.5 if loss.squared else 0.0
    by_sum = loss.kind == "crammer_singer"
    # α_c = clip((m_c − θ)/h, 0, upper) with θ = p·S: only the weight of ‖α‖² and of S² differ between the losses.
    h, p = (q, q + bend) if by_sum else (q + bend, q)
    upper = float("inf") if by_sum or loss.squared else 1.0
    theta = _threshold([margins[c] for c in rivals], h, p, upper)
    if by_sum and not loss.squared and theta > p:
        theta = _simplex_threshold([margins[c] for c in rivals], h)
    best = [0.0] * len(s)
    for c in rivals:
        best[c] = min(max((margins[c] - theta) / h, 0.0), upper)
    return best


def _best_alone(loss: Loss, score: float, alpha: float, sign: float, q: float) -> float:
    h = q + (0.5 if loss.squared else 0.0)
    best = max((loss.margin + sign * score + q * alpha) / h, 0.0)
    return best if loss.squared else min(best, 1.0)


def _best_probabilities(a: list[float], q: float) -> list[float]:
    """Return p with log p_c + q·p_c = a_c − ν for all c: ν by bisection, each p_c by Newton's method on log p_c."""
    low, high = max(a) - q, max(a) + math.log(len(a))
    for _ in range(200):
        nu = (low + high) / 2
        if sum(_root(a_c - nu, q) for a_c in a) > 1:
            low = nu
        else:
            high = nu
    return [_root(a_c - high, q) for a_c in a]


def _root(value: float, q: float) -> float:
    """Return p with log p + q·p = value; the left side is convex in log p, so Newton's method comes from the right."""
    logarithm = value if value <= 0 else math.log1p(value / q)
    for _ in range(100):
        p = math.exp(logarithm)
        step = (logarithm + q * p - value) / (1 + q * p)
        logarithm -= step
        if abs(step) <= 1e-16 * max(1.0, abs(logarithm)):
            break
    return math.exp(logarithm)


def _threshold(margins: list[float], h: float, p: float, upper: float) -> float:
    """Return θ with Σ clip((m_c − θ)/h, 0, upper) = θ/p: the corners of the left side, sorted, bracket the root."""

    def excess(theta: float) -> float:
        return sum(min(max((m - theta) / h, 0.0), upper) for m in margins) - theta / p

    corners = sorted({0.0, *(m for m in margins if m > 0), *(m - h * upper for m in margins if m > h * upper)})
    low = 0.0
    for high in corners[1:]:
        if excess(high) <= 0:
            at_low, at_high = excess(low), excess(high)
            return low + (high - low) * at_low / (at_low - at_high)
        low = high
    return low


def _simplex_threshold(margins: list[float], h: float) -> float:
    """Return θ with Σ max((m_c − θ)/h, 0) = 1."""
    total, theta = 0.0, 0.0
    for k, m in enumerate(sorted(margins, reverse=True), start=1):
        total += m
        if m - (total - h) / k > 0:
            theta = (total - h) / k
    return theta


def dual_slopes(loss: Loss, alpha: FloatArray, y: Codes) -> tuple[Array, Array]:
    """Return −loss*(uᵢ) and uᵢ of each row, in float64."""
    a = alpha.astype(np.float64)
    rows, S = np.arange(len(y)), a.sum(axis=1)
    if loss.kind == "softmax":
        a /= S[:, None]
        entropy = -(a * np.log(np.maximum(a, np.finfo(float).tiny))).sum(axis=1)
        a[rows, y] -= 1
        return entropy, a
    if loss.kind == "crammer_singer" and not loss.squared:
        a /= np.maximum(S, 1)[:, None]  # a rounding error beyond the bound would not be feasible
        S = np.minimum(S, 1)
    u = a.copy()
    u[rows, y] = -a[rows, y] if loss.kind == "one_vs_rest" else -S
    squares = S**2 if loss.kind == "crammer_singer" else np.square(a).sum(axis=1)
    return loss.margin * S - (squares / 4 if loss.squared else 0), u


@final
class ReferenceDualAscent:
    """Plain visits in random order, without centring, resting or averaging; intercepts by a constant feature of 1.

    Its weight is penalised by the distance from a centre, which moves to the intercepts reached after each epoch, or
    stays at 0 where they are penalised.
    """

    def __init__(
        self,
        loss: Loss,
        X: Array,
        y: Codes,
        v: FloatArray,
        n_classes: int,
        *,
        penalty: float,
        intercept: bool,
        penalize_intercept: bool = False,
        seed: int,
    ) -> None:
        self._loss, self._y, self._intercept = loss, y, intercept
        self._follows = intercept and not penalize_intercept
        self._rows = np.hstack([X, np.ones((len(y), 1))]) if intercept else np.asarray(X, dtype=np.float64)
        self._rate = v.astype(np.float64) / penalty
        self._dtype = X.dtype
        self._alpha = np.zeros((len(y), n_classes))
        if loss.kind == "softmax":
            self._alpha[np.arange(len(y)), y] = 1
        self._weights = np.zeros((n_classes, self._rows.shape[1]))
        self._centre = np.zeros(n_classes)
        self._rng = np.random.default_rng(seed)

    def epoch(self) -> float:
        """Visit all rows."""
        if self._follows:
            self._weights[:, -1], self._centre = 2 * self._weights[:, -1] - self._centre, self._weights[:, -1].copy()
        for i in self._rng.permutation(len(self._y)):
            x, y = self._rows[i], int(self._y[i])
            q = max(float(self._rate[i] * (x @ x)), 1e-12)
            s = self._weights @ x
            best = np.array(best_row(self._loss, s.tolist(), self._alpha[i].tolist(), y, q))
            change = best - self._alpha[i]
            self._alpha[i] = best
            if self._loss.kind != "softmax":
                change[y] = -change[y] if self._loss.kind == "one_vs_rest" else -change.sum()
            self._weights -= self._rate[i] * np.outer(change, x)
        return 1.0

    @property
    def alpha(self) -> FloatArray:
        """The dual variables, N×C."""
        return self._alpha

    @property
    def weights(self) -> FloatArray:
        """W, and b as last column if there are intercepts."""
        return self._weights.astype(self._dtype)

    mean_weights = weights

    def start_intercepts(self, weights: FloatArray) -> None:
        """Begin with these intercepts."""
        if self._intercept:
            self._centre = weights[:, -1].astype(np.float64)
            self._weights[:, -1] = self._centre

    def refresh(self, gradient: FloatArray) -> None:
        """Replace W by −G/penalty, summed anew."""
        D = self._rows.shape[1] - self._follows
        self._weights[:, :D] = -gradient[:, :D]
