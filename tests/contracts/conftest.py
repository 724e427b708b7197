"""Optima by slow and plain means: full Newton for losses that bend, a dense quadratic program for the others.

Nothing here is taken from hinge: losses are written out anew, and slacks are variables of their own.
"""

import numpy as np
import pytest
from scipy import linalg
from scipy.special import log_softmax, softmax
from threadpoolctl import threadpool_limits


def loss_of_rows(kind, squared, margin, scores, y):
    """Return the loss of each row at these scores."""
    rows = np.arange(len(y))
    own = scores[rows, y][:, None]
    if kind == "softmax":
        return -log_softmax(scores, axis=1)[rows, y]
    if kind == "one_vs_rest":
        m = margin + scores
        m[rows, y] = margin - own[:, 0]
    else:
        m = margin + scores - own
        m[rows, y] = 0
    m = np.maximum(m, 0)
    if kind == "crammer_singer":
        m = m.max(axis=1, keepdims=True)
    return (m**2 if squared else m).sum(axis=1)


def objective(problem, W, b):
    """Return mean loss + l2/2·‖W‖², with b penalised if the problem says so."""
    loss = loss_of_rows(problem.kind, problem.squared, problem.margin, problem.X @ W.T + b, problem.y)
    penalty = np.sum(W**2) + (np.sum(b**2) if problem.intercept == "penalized" else 0)
    return problem.v @ loss / problem.v.sum() + problem.l2 / 2 * penalty


def newton(problem):
    """Return the optimum for softmax and for squared hinges that are sums over classes."""
    X = np.hstack([problem.X, np.ones((len(problem.y), 1))]) if problem.intercept else problem.X
    ridge = np.full(X.shape[1], problem.l2)
    if problem.intercept is True:
        ridge[-1] = 0
    (N, K), C, w = X.shape, problem.n_classes, problem.v / problem.v.sum()
    rows, y = np.arange(N), problem.y

    def at(W):
        loss = loss_of_rows(problem.kind, problem.squared, problem.margin, X @ W.T, y)
        return w @ loss + 0.5 * np.sum(ridge * W**2)

    def slopes_and_bend(W):
        s = X @ W.T
        if problem.kind == "softmax":
            p = softmax(s, axis=1)
            u = p.copy()
            u[rows, y] -= 1
            return u, np.einsum("ic,cd->icd", p, np.eye(C)) - p[:, :, None] * p[:, None, :]
        A = np.tile(np.eye(C), (N, 1, 1))  # margins are Δ + A s
        if problem.kind == "one_vs_rest":
            A[rows, y, y] = -1
        else:
            A[rows, :, y] -= 1
        m = problem.margin + np.einsum("icd,id->ic", A, s)
        if problem.kind != "one_vs_rest":
            m[rows, y] = 0
        m = np.maximum(m, 0)
        return 2 * np.einsum("icd,ic->id", A, m), 2 * np.einsum("ick,ic,icl->ikl", A, (m > 0) * 1.0, A)

    W, value = np.zeros((C, K)), at(np.zeros((C, K)))
    for _ in range(300):
        u, D = slopes_and_bend(W)
        G = (w[:, None] * u).T @ X + ridge * W
        H = np.zeros((C, K, C, K))
        for c in range(C):
            for d in range(c + 1):
                H[c, :, d] = H[d, :, c] = (X.T * (w * D[:, c, d])) @ X
            H[c, :, c] += np.diag(ridge)
        step = -_solve(H.reshape(C * K, C * K), G.ravel()).reshape(C, K)
        slope = np.vdot(G, step)
        t = 1.0
        while t > 1e-12 and not at(W + t * step) <= value + 1e-4 * t * slope:
            t /= 2
        W, before = W + t * step, value
        value = min(value, at(W))
        if -slope < 1e-14 * value or before == value:
            break
    return value


def quadratic_program(problem):
    """Return the optimum of any hinge: min over W, b, ξ subject to a row of G for each margin and each slack."""
    X = np.hstack([problem.X, np.ones((len(problem.y), 1))]) if problem.intercept else problem.X
    (N, K), C, w = X.shape, problem.n_classes, problem.v / problem.v.sum()
    apart, one_slack = problem.kind == "one_vs_rest", problem.kind == "crammer_singer"
    slacks = N if one_slack else N * C
    variables = C * K + slacks
    G, h = [], []
    for i in range(N):
        for c in range(C):
            if c == problem.y[i] and not apart:
                continue
            g = np.zeros((C, K))
            g[c] = -X[i] if c == problem.y[i] else X[i]
            if not apart:
                g[problem.y[i]] -= X[i]
            slack = np.zeros(slacks)
            slack[i if one_slack else i * C + c] = -1
            G.append(np.concatenate([g.ravel(), slack]))
            h.append(-problem.margin)
    q, linear = np.zeros(variables), np.zeros(variables)
    ridge = np.full((C, K), problem.l2)
    if problem.intercept is True:
        ridge[:, -1] = 0
    q[: C * K] = ridge.ravel()
    per_slack = w if one_slack else np.repeat(w, C)
    if problem.squared:
        q[C * K :] = 2 * per_slack
    else:
        linear[C * K :] = per_slack
        G.extend(np.hstack([np.zeros((slacks, C * K)), -np.eye(slacks)]))
        h.extend([0.0] * slacks)
    used = np.ones(variables, dtype=bool)
    if problem.intercept is True and not apart:
        used[C * K - 1] = False  # one intercept may be 0: only differences count
    if not one_slack and not apart:
        used[C * K + np.arange(N) * C + problem.y] = False
    G = np.array(G)[:, used]
    h = np.array(h)
    kept = np.any(G != 0, axis=1)
    return _mehrotra(q[used], linear[used], G[kept], h[kept])


def _mehrotra(q, c, G, h):
    """min ½ xᵀ diag(q) x + cᵀx subject to G x + s = h, s ≥ 0, with multipliers z."""
    x, s, z = np.zeros(len(q)), np.maximum(np.abs(h), 1.0) * 4, np.full(len(h), 1 / len(h))
    best = np.inf
    for _ in range(100):
        dual, primal = q * x + c + G.T @ z, G @ x + s - h
        M = np.diag(q) + (G.T * (z / s)) @ G

        def solve(product, dual=dual, primal=primal, M=M, s=s, z=z):
            dx = _solve(M, -(dual + G.T @ ((product + z * primal) / s)))
            ds = -primal - G @ dx
            return dx, ds, (product - z * ds) / s

        dx, ds, dz = solve(-s * z)
        a = min(1.0, _longest(s, ds), _longest(z, dz))
        mu = s @ z / len(s)
        sigma = (((s + a * ds) @ (z + a * dz)) / len(s) / mu) ** 3
        dx, ds, dz = solve(sigma * mu - s * z - ds * dz)
        a = min(1.0, 0.99 * min(_longest(s, ds), _longest(z, dz)))
        x, s, z = x + a * dx, s + a * ds, z + a * dz
        value = 0.5 * q @ x**2 + c @ x
        if np.abs(primal).max() < 1e-10 and s @ z < 1e-10 * abs(value):
            return value
        if a < 1e-8:
            break
        best = value
    assert s @ z < 1e-7 * abs(best), "the reference itself has failed"
    return best


def _longest(values, change):
    falling = change < 0
    return float((values[falling] / -change[falling]).min()) if falling.any() else np.inf


def _solve(M, right):
    """Cholesky after scaling the diagonal to 1, with two steps of refinement."""
    size = 1 / np.sqrt(np.maximum(M.diagonal(), 1e-300))
    scaled = M * size[:, None] * size
    for jitter in (1e-15, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5):
        try:
            factor = linalg.cho_factor(scaled + jitter * np.eye(len(M)))
            break
        except linalg.LinAlgError:
            continue
    x = linalg.cho_solve(factor, right * size)
    for _ in range(2):
        x += linalg.cho_solve(factor, right * size - scaled @ x)
    return x * size


@pytest.fixture(name="objective")
def _objective():
    return objective


@pytest.fixture
def optimum():
    """Return a function that solves a problem by the means that suit it."""

    def solve(problem):
        smooth = problem.kind == "softmax" or (problem.squared and problem.kind != "crammer_singer")
        with threadpool_limits(1):  # small products: threads that wait for one another would cost most of the time
            return newton(problem) if smooth else quadratic_program(problem)

    return solve
