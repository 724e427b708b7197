"""A lower bound that ever exceeds the optimum is a lie: the optimum comes from SciPy, to 1e-9."""

import numpy as np
import pytest
from scipy.optimize import minimize

from hinge.ops import Loss, ReferenceBackend
from hinge.problems.certificate import DualPoint, lower_bound, relative_gap
from hinge.problems.objective import bind_objective

SMOOTH = [Loss("softmax"), Loss("weston_watkins", True, 1.5), Loss("one_vs_rest", True, 0.5)]
ALL = [*SMOOTH, *(Loss(kind, False, 1.5) for kind in ("weston_watkins", "crammer_singer", "one_vs_rest"))]


def name(loss):
    return f"squared_{loss.kind}" if loss.squared else loss.kind


def problem(loss, *, l2=0.05, intercept=True, penalize=False, shares=(0.4, 0.3, 0.2, 0.1)):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((200, 5))
    y = rng.choice(4, 200, p=shares).astype(np.int32)
    X[:, :4] += np.eye(4)[y]
    v = rng.uniform(0.2, 2, 200)
    return bind_objective(
        ReferenceBackend(), X, y, v, 4, loss=loss, l2=l2, intercept=intercept, penalize_intercept=penalize
    )


def solved(objective):
    shape = objective.zero_weights().shape

    def flat(w):
        at = objective.evaluate(w.reshape(shape))
        return at.value, at.gradient.ravel()

    options = {"maxiter": 20_000, "maxfun": 200_000, "ftol": 1e-16, "gtol": 1e-11}
    return minimize(flat, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options=options)


@pytest.mark.parametrize("loss", SMOOTH, ids=name)
@pytest.mark.parametrize(("intercept", "penalize"), [(True, False), (True, True), (False, False)])
def test_the_gap_is_never_optimistic_and_closes_at_the_optimum(loss, intercept, penalize):
    objective = problem(loss, intercept=intercept, penalize=penalize)
    optimum = solved(objective)
    means = objective.class_means() if objective.free_intercept else None
    rng = np.random.default_rng(0)
    gaps = []
    for size in (3.0, 0.3, 1e-2, 1e-4, 1e-6, 0.0):
        weights = optimum.x.reshape(objective.zero_weights().shape)
        weights = weights + size * rng.standard_normal(weights.shape)
        at = objective.evaluate(weights)
        gap = objective.gap(weights, at, means)
        assert (at.value - optimum.fun) / at.value <= gap + 1e-12
        gaps.append(gap)
    assert gaps[-1] < 1e-6


@pytest.mark.parametrize("loss", ALL, ids=name)
def test_slopes_of_any_weights_bound_the_optimum_from_below(loss):
    """Plain hinges have no smooth optimum to find; the best of many points stands above it, every bound below."""
    objective = problem(loss)
    means = objective.class_means()
    rng = np.random.default_rng(1)
    values, gaps = [], []
    for size in np.geomspace(1e-3, 3, 40):
        weights = size * rng.standard_normal(objective.zero_weights().shape)
        at = objective.evaluate(weights)
        values.append(at.value)
        gaps.append(objective.gap(weights, at, means))
    bounds = [value - gap * max(value, objective.l2) for value, gap in zip(values, gaps, strict=True)]
    assert max(bounds) <= min(values)


@pytest.mark.parametrize("loss", ALL, ids=name)
def test_a_repaired_point_is_feasible(loss):
    """Build the repaired point row by row: its slopes add up to 0, and the bound is at most its dual value."""
    objective = problem(loss)
    means = objective.class_means()
    drift = np.array([0.02, -0.05, 0.04, -0.01])
    if loss.kind == "one_vs_rest":
        drift = drift + 0.03
    from hinge.problems import certificate

    t, slopes, value = certificate._repair(loss, DualPoint(0.0, np.zeros((4, 5)), drift), means.shares)
    assert 0 < t < 1
    np.testing.assert_allclose((1 - t) * drift + t * slopes @ means.shares, 0, atol=1e-14)
    conjugate = []
    for c in range(4):  # a bound needs slopes inside the loss's own domain
        u = slopes[:, c]
        if loss.kind == "softmax":
            p = u + np.eye(4)[c]
            assert p.min() >= 0
            np.testing.assert_allclose(p.sum(), 1)
            conjugate.append(np.sum(p[p > 0] * np.log(p[p > 0])))
            continue
        paid = np.where(np.arange(4) == c, -u, u) if loss.kind == "one_vs_rest" else np.delete(u, c)
        paid = paid.sum(keepdims=True) if loss.kind == "crammer_singer" else paid
        assert paid.min() >= 0
        assert loss.squared or paid.max() <= 1 + 1e-12
        conjugate.append(np.sum((paid**2 / 4 if loss.squared else 0) - loss.margin * paid))
    np.testing.assert_allclose(value, -np.dot(conjugate, means.shares), atol=1e-14)


def test_class_means_are_those_of_the_rows():
    objective = problem(SMOOTH[0])
    X, y, v = objective.passes.rows(np.arange(200))
    means = objective.class_means()
    for c in range(4):
        np.testing.assert_allclose(means.shares[c], v[y == c].sum() / v.sum(), rtol=1e-14)
        np.testing.assert_allclose(means.rows[c], (v[y == c, None] * X[y == c]).sum(axis=0) / v.sum(), atol=1e-15)


def test_a_drift_needs_the_means_of_the_classes():
    with pytest.raises(ValueError, match="means"):
        lower_bound(SMOOTH[0], 1.0, DualPoint(0.0, np.zeros((2, 3)), np.array([0.1, -0.1])), None)


@pytest.mark.parametrize(("primal", "bound", "gap"), [(2.0, 1.0, 0.5), (1e-9, 0.0, 1e-8), (1.0, 1.1, 0.0)])
def test_relative_gap(primal, bound, gap):
    assert relative_gap(primal, bound, 0.1) == pytest.approx(gap)


def test_no_gap_is_claimed_where_numbers_end():
    assert relative_gap(float("nan"), 1.0, 0.1) == relative_gap(1.0, float("-inf"), 0.1) == float("inf")
