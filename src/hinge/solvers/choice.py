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

_NAMED: dict[str, type] = {
    "lbfgs": LBFGS,
    "newton_cg": NewtonCG,
    "orthant_newton": OrthantNewton,
    "dual": DualCoordinateAscent,
    "interior_point": InteriorPoint,
    "sgd": SGD,
    "gradient_descent": GradientDescent,
}
SOLVER_NAMES = ("auto", *_NAMED)

SPARSE = 0.01  # of all values are stored
MOST_STEP_FLOPS = 2e11  # of an interior-point step, for some ten steps a minute
EXPECTED_STEPS, LEAST_PATIENCE = 30, 60


def named_solver(name: str, objective: LinearObjective) -> Solver:
    """Return the solver of that name; "auto" looks at the objective."""
    if name == "auto":
        return _automatic(objective)
    if name not in _NAMED:
        raise UsageError(f"solver={name!r}", remedy=f"Use one of {', '.join(map(repr, SOLVER_NAMES))}, or an object.")
    solver: Solver = _NAMED[name]()
    return solver


def _automatic(objective: LinearObjective) -> Solver:
    first: Solver
    if objective.l1 > 0:
        return OrthantNewton()
    if objective.loss.is_smooth and not _visits_pay(objective):
        first = LBFGS()
    elif dual_variables_fit(objective):
        first = DualCoordinateAscent()
    else:
        return SGD()
    steps = step_flops(objective)
    if objective.loss.kind == "softmax" or steps > MOST_STEP_FLOPS or not interior_point_fits(objective):
        return first
    passes = objective.passes
    worth = EXPECTED_STEPS * steps / (4.0 * max(passes.n_values, passes.n_rows) * passes.n_classes)
    patience = min(max(int(worth), LEAST_PATIENCE), first.default_iterations)
    return Fallback(first, InteriorPoint(), patience)


def _visits_pay(objective: LinearObjective) -> bool:
    """Return whether visiting rows one by one beats passes over all: few values a row, more features than they fill."""
    passes = objective.passes
    sparse = passes.n_values < SPARSE * passes.n_rows * passes.n_features
    return sparse and objective.loss.squared and dual_variables_fit(objective)
