import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from hinge.ops import CpuBackend, Loss
from hinge.problems.objective import bind_objective

SOFTMAX = Loss("softmax")


def make_objective(loss=SOFTMAX, *, N=300, l2=0.05, weighted=False, dtype=np.float64, threads=1):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 6)).astype(dtype)
    W = rng.standard_normal((4, 6))
    y = (X @ W.T + rng.gumbel(size=(N, 4))).argmax(axis=1).astype(np.int32)
    v = rng.uniform(0, 2, N).astype(dtype) if weighted else None
    return bind_objective(CpuBackend(threads), X, y, v, 4, loss=loss, l2=l2, intercept=True)


@pytest.fixture(name="make_objective")
def _make_objective():
    return make_objective


@pytest.fixture
def optimum():
    """SciPy's L-BFGS-B on the same objective: an independent solver."""

    def solve(objective):
        shape = objective.zero_weights().shape

        def flat(w):
            value, gradient = objective.value_and_gradient(w.reshape(shape))
            return value, gradient.ravel()

        options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-10}
        result = minimize(flat, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options=options)
        assert np.linalg.norm(result.jac) < 1e-6
        return result.fun

    return solve


@pytest.fixture
def hinge_optimum():
    """A hinge as a program of its own: slacks ξ ≥ margin + (a linear function of the weights), ξ ≥ 0, by SLSQP."""

    def solve(objective):
        X, y, loss = objective.passes._X, objective.passes._y, objective.loss
        C, D, N = 4, X.shape[1], len(y)
        rows = np.hstack([X, np.ones((N, 1))])
        per_row = 1 if loss.kind == "crammer_singer" else C
        W_size, slacks = C * (D + 1), N * per_row
        A, b = [], []
        for i in range(N):
            for c in range(C):
                if c == y[i] and loss.kind != "one_vs_rest":
                    continue
                m = np.zeros((C, D + 1))
                m[c] = -rows[i] if c == y[i] else rows[i]
                if loss.kind != "one_vs_rest":
                    m[y[i]] = -rows[i]
                slack = np.zeros(slacks)
                slack[i * per_row + (c if per_row > 1 else 0)] = 1
                A.append(np.concatenate([-m.ravel(), slack]))
                b.append(loss.margin)

        penalised = np.tile([1.0] * D + [0.0], C)

        def program(z):
            w, xi = z[:W_size], z[W_size:]
            value = (xi @ xi if loss.squared else xi.sum()) / N + objective.l2 / 2 * (penalised * w) @ w
            slope = (2 * xi if loss.squared else np.ones(slacks)) / N
            return value, np.concatenate([objective.l2 * penalised * w, slope])

        result = minimize(
            program,
            np.concatenate([np.zeros(W_size), np.full(slacks, 2 * loss.margin)]),
            jac=True,
            method="SLSQP",
            bounds=[(None, None)] * W_size + [(0, None)] * slacks,
            constraints=LinearConstraint(np.array(A), lb=np.array(b)),
            options={"maxiter": 500, "ftol": 1e-12},
        )
        assert result.success, result.message
        return result.fun

    return solve
