"""Newton's equations for hinges against those of all variables at once, written down and solved without elimination."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from hinge.ops import CpuBackend, Loss
from hinge.problems.hinge_program import HingeProgram, Point, program_memory
from hinge.problems.objective import bind_objective

HINGES = [
    Loss(kind, squared, 1.5)
    for kind in ("weston_watkins", "crammer_singer", "one_vs_rest")
    for squared in (False, True)
]
INTERCEPTS = [(False, False), (True, False), (True, True)]


def ids(loss):
    return f"{'squared_' if loss.squared else ''}{loss.kind}"


def problem(loss, *, N=9, D=3, C=3, intercept=True, penalize=False, form="dense", weighted=True, l2=0.3):
    rng = np.random.default_rng(N + D)
    X = rng.standard_normal((N, D))
    y = (np.arange(N) % C).astype(np.int32)
    v = rng.integers(0, 4, N).astype(float) if weighted else None
    if weighted:
        v[:C] = 2
    rows = sparse.csr_array(np.where(np.abs(X) < 0.4, 0, X)) if form == "csr" else X
    return bind_objective(
        CpuBackend(2), rows, y, v, C, loss=loss, l2=l2, intercept=intercept, penalize_intercept=penalize
    )


def inner_point(program, seed=0):
    """Return a point inside all bounds that meets what follows from the rest exactly: z = ξ − m, β = 1 − Σα."""
    rng = np.random.default_rng(seed)
    at = program.start()
    W = 0.1 * rng.standard_normal(at.W.shape)
    alpha = program.pairs * rng.uniform(0.1, 0.4, at.alpha.shape) / (program.pairs.shape[1] - 1)
    slack = at.slack + rng.uniform(0, 1, at.slack.shape)
    z = np.where(program.pairs, slack - program.loss.margin - program.differences(W), 1.0)
    return Point(W, alpha, 1 - program.total(alpha), slack, z)


def flat(program, direction):
    """Return dW, dα and dξ of the variables that there are."""
    slacks = direction.slack.ravel() if program.loss.kind == "crammer_singer" else direction.slack[program.pairs]
    return np.concatenate([direction.W.ravel(), direction.alpha[program.pairs], slacks])


def all_at_once(program, at, aim):
    """Solve for dW, dα and dξ together by least squares on the equations as the module's head gives them."""
    C, K = at.W.shape
    pairs, shared = program.pairs, program.loss.kind == "crammer_singer"
    n_pairs = int(pairs.sum())
    n_slacks = at.slack.size if shared else n_pairs
    size = C * K + n_pairs + n_slacks

    def spread(x):
        W = x[: C * K].reshape(C, K)
        alpha, slack = np.zeros(pairs.shape), np.zeros(at.slack.shape)
        alpha[pairs] = x[C * K : C * K + n_pairs]
        if shared:
            slack[:] = x[C * K + n_pairs :].reshape(slack.shape)
        else:
            slack[pairs] = x[C * K + n_pairs :]
        return W, alpha, slack

    def linear(x):
        W, alpha, slack = spread(x)
        z = np.where(pairs, slack - program.differences(W), 0)
        first = program.ridge * W + program.gradient(alpha)
        second = (at.alpha * z + at.z * alpha)[pairs]
        if program.loss.squared:
            third = 2 * slack - program.total(alpha)
        else:
            third = at.room * slack - at.slack * program.total(alpha)
        return np.concatenate([first.ravel(), second, third.ravel() if shared else third[pairs]])

    right_slack = program.total(at.alpha) - 2 * at.slack if program.loss.squared else aim.slack
    right = np.concatenate(
        [
            -(program.ridge * at.W + program.gradient(at.alpha)).ravel(),
            aim.pairs[pairs],
            right_slack.ravel() if shared else right_slack[pairs],
        ]
    )
    M = np.column_stack([linear(e) for e in np.eye(size)])
    return np.linalg.lstsq(M, right, rcond=None)[0], M, right


@pytest.mark.parametrize("loss", HINGES, ids=ids)
@pytest.mark.parametrize(("intercept", "penalize"), INTERCEPTS)
@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("D", [3, 12])
def test_a_direction_solves_all_equations_together(loss, intercept, penalize, form, D):
    program = HingeProgram.of(problem(loss, D=D, intercept=intercept, penalize=penalize, form=form))
    at = inner_point(program)
    for wanted in (0.0, 0.05):
        aim = program.aim(at, wanted)
        direction = program.newton(at).direction(aim)
        expected, M, right = all_at_once(program, at, aim)
        ours = flat(program, direction)
        np.testing.assert_allclose(M @ ours, right, atol=1e-10)
        n = at.W.size  # weights may differ by a shift that all classes share, which no loss of differences sees
        np.testing.assert_allclose(ours[n:], expected[n:], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(
            direction.z[program.pairs],
            (direction.slack - program.differences(direction.W))[program.pairs],
            atol=1e-9,
        )
        np.testing.assert_allclose(direction.room, -program.total(direction.alpha), atol=1e-15)


@pytest.mark.parametrize("loss", HINGES, ids=ids)
def test_a_direction_keeps_its_digits_next_to_the_bounds(loss):
    """z, ξ and β of 1e-12 as at the end of a run: what is left of each product is what was aimed at."""
    program = HingeProgram.of(problem(loss, N=30, C=4, l2=1e-3))
    at = inner_point(program)
    rng = np.random.default_rng(1)
    small = np.where(rng.random(at.z.shape) < 0.5, 1e-12, 1.0)
    at = replace(
        at, z=np.where(program.pairs, at.z * small, 1.0), alpha=np.where(small < 1, at.alpha, at.alpha * 1e-12)
    )
    if not loss.squared:
        tight = np.where(rng.random(at.slack.shape) < 0.5, 1e-12, 1.0)
        at = replace(at, slack=at.slack * tight, room=np.where(tight < 1, at.room, at.room * 1e-12))
    aim = program.aim(at, 1e-14)
    by = program.newton(at).direction(aim)
    changed = (at.alpha * by.z + at.z * by.alpha - aim.pairs)[program.pairs]
    size = (np.abs(at.alpha * by.z) + np.abs(at.z * by.alpha) + np.abs(aim.pairs))[program.pairs]
    assert np.abs(changed / size).max() < 1e-10
    if not loss.squared:
        changed = at.slack * by.room + at.room * by.slack - aim.slack
        size = np.abs(at.slack * by.room) + np.abs(at.room * by.slack) + np.abs(aim.slack)
        used = np.ones_like(size, dtype=bool) if loss.kind == "crammer_singer" else program.pairs
        assert np.abs(changed / size)[used].max() < 1e-10


@pytest.mark.parametrize("loss", HINGES, ids=ids)
def test_margins_gradients_and_weights_are_those_of_the_objective(loss):
    for D in (3, 12):  # fewer and more columns than rows: the second in coordinates of the rows' span
        objective = problem(loss, D=D)
        program = HingeProgram.of(objective)
        at = inner_point(program)
        W = program.weights(at)
        rows, y, v = objective.passes.rows(np.arange(objective.passes.n_rows))
        s = (np.hstack([rows, np.ones((len(y), 1))]) @ W.T)[v > 0]
        own = s[np.arange(len(s)), y[v > 0]][:, None]
        expected = s - own
        if loss.kind == "one_vs_rest":
            expected = s.copy()
            expected[np.arange(len(s)), y[v > 0]] *= -1
        np.testing.assert_allclose(program.differences(at.W)[program.pairs], expected[program.pairs], atol=1e-12)
        gain, gradient = program.dual_point(at)
        assert gradient.shape == W.shape
        value = np.vdot(program.gradient(at.alpha), at.W)
        assert np.vdot(gradient, W) == pytest.approx(value)
        total = program.total(at.alpha)
        paid = loss.margin * total - (total**2 / 4 if loss.squared else 0)
        assert gain == pytest.approx(float(program.share @ paid.sum(axis=1)))


def test_rows_without_weight_are_left_out():
    objective = problem(HINGES[0])
    program = HingeProgram.of(objective)
    assert len(program.y) == int((objective.row_weight > 0).sum()) < 9
    assert program.share.sum() == pytest.approx(1.0)


def test_the_mean_product_counts_a_row_of_weight_two_twice():
    for loss in HINGES:
        program = HingeProgram.of(problem(loss, weighted=False))
        at = inner_point(program)
        order = np.append(np.arange(9), 3)
        twice = Point(at.W, at.alpha[order], at.room[order], at.slack[order], at.z[order])
        repeated = replace(
            program, y=program.y[order], pairs=program.pairs[order], distance=np.ones((10, 1)), share=np.full(10, 0.1)
        )
        share = np.full(9, 0.1)
        share[3] = 0.2
        weighted = replace(program, share=share)
        assert weighted.mean_product(at) == pytest.approx(repeated.mean_product(twice), rel=1e-14)


def test_aims_and_longest_steps():
    program = HingeProgram.of(problem(HINGES[0], weighted=False))
    at = inner_point(program)
    aim = program.aim(at, 0.1)
    np.testing.assert_allclose((at.z * at.alpha + aim.pairs)[program.pairs], 0.1)
    np.testing.assert_allclose(at.slack * at.room + aim.slack, 0.1)
    by = program.newton(at).direction(aim)
    longest = program.longest_step(at, by)
    used = program.pairs
    for share, inside in ((0.999, True), (1.001, False)):
        there = at.moved(by, share * longest)
        lowest = min(values[used].min() for values in (there.z, there.alpha, there.slack, there.room))
        assert (lowest > 0) == inside
    central = program.more_central(aim, replace(at, z=at.z * 1e-6), 0.1)
    assert np.all(central.pairs[used] > aim.pairs[used])
    less = program.less_second_order(aim, by, 0.5)
    np.testing.assert_allclose((aim.pairs - less.pairs)[used], 0.5 * (by.z * by.alpha)[used])


def test_memory_grows_with_the_matrix():
    small, large = (program_memory(problem(HINGES[0], N=200, D=D)) for D in (10, 100))
    assert large - small >= 8 * 3 * (300**2 - 30**2)


def test_no_factor_is_claimed_where_numbers_end():
    program = HingeProgram.of(problem(HINGES[0]))
    at = inner_point(program)
    assert program.newton(replace(at, alpha=at.alpha * np.nan)) is None
