"""Which solver fits which problem; docs/algorithms/solver_choice.md explains the choice."""

from __future__ import annotations

from hinge.errors import UsageError
from hinge.problems.objective import LinearObjective
from hinge.solvers.dual_coordinate_ascent import DualCoordinateAscent, dual_variables_fit
from hinge.solvers.fallback import Fallback
from hinge.solvers.gradient_descent import GradientDescent
from hinge.solvers.interior_point import InteriorPoint, interior_point_fits, step_flops
from hinge.solvers.lbfgs import LBFGS
from hinge.solvers.newton_cg import NewtonCG
from hinge.solvers.orthant_newton import OrthantNewton
from hinge.solvers.result import Solver
from hinge.solvers.sgd import SGD

NAMED: dict[str, type] = {
    "lbfgs": LBFGS,
    "newton_cg": NewtonCG,
    "orthant_newton": OrthantNewton,
    "dual": DualCoordinateAscent,
    "interior_point": InteriorPoint,
    "sgd": SGD,
    "gradient_descent": GradientDescent,
}
SOLVER_NAMES = ("auto", *NAMED)

SPARSE = 0.01  # of all values are stored
VISITS = 400  # epochs that dual coordinate ascent is given where L-BFGS can take over
MOST_STEP_FLOPS = 2e11  # of an interior-point step, for some ten steps a minute
PATIENCE = 200  # iterations of L-BFGS; rows far from the origin take it thousands, and Newton-CG ten
EXPECTED_STEPS, LEAST_PATIENCE = 30, 60
MATRIX_SPEED = 8  # flops of matrix products go by so many times faster than those of a solver's other work
TINY_STEP_FLOPS = 1e6  # from here on down an interior-point run takes some 20 ms, and neither seed nor order has a say


def named_solver(name: str, objective: LinearObjective) -> Solver:
    """Return the solver of that name; "auto" looks at the objective."""
    if name == "auto":
        return _automatic(objective)
    if name not in NAMED:
        raise UsageError(f"solver={name!r}", remedy=f"Use one of {', '.join(map(repr, SOLVER_NAMES))}, or an object.")
    solver: Solver = NAMED[name]()
    return solver


def _automatic(objective: LinearObjective) -> Solver:
    if objective.l1 > 0:
        return OrthantNewton()
    bends = objective.loss.is_smooth
    if not dual_variables_fit(objective):
        return Fallback(LBFGS(), NewtonCG(), PATIENCE) if bends else SGD()
    if bends and _visits_pay(objective):
        return Fallback(DualCoordinateAscent(), LBFGS(), VISITS)
    first: Solver = LBFGS() if bends else DualCoordinateAscent()
    steps = step_flops(objective)
    if objective.loss.kind == "softmax" or steps > MOST_STEP_FLOPS or not interior_point_fits(objective):
        return Fallback(first, NewtonCG(), PATIENCE) if isinstance(first, LBFGS) else first
    if not bends and steps < TINY_STEP_FLOPS:
        return InteriorPoint()
    passes = objective.passes
    worth = EXPECTED_STEPS * steps / (4.0 * MATRIX_SPEED * max(passes.n_values, passes.n_rows) * passes.n_classes)
    patience = min(max(int(worth), LEAST_PATIENCE), first.default_iterations)
    return Fallback(first, InteriorPoint(), patience)


def _visits_pay(objective: LinearObjective) -> bool:
    """Return whether visiting rows one by one beats passes over all: rows of few values, each met by few others."""
    passes = objective.passes
    return passes.n_values < SPARSE * passes.n_rows * passes.n_features
