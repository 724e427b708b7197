"""Which solver fits which problem; docs/algorithms/solver_choice.md explains the choice."""

from __future__ import annotations

from hinge.errors import UsageError
from hinge.problems.objective import LinearObjective
from hinge.solvers.dual_coordinate_ascent import DualCoordinateAscent, dual_variables_fit
from hinge.solvers.gradient_descent import GradientDescent
from hinge.solvers.lbfgs import LBFGS
from hinge.solvers.newton_cg import NewtonCG
from hinge.solvers.result import Solver
from hinge.solvers.sgd import SGD

_NAMED: dict[str, type] = {
    "lbfgs": LBFGS,
    "newton_cg": NewtonCG,
    "dual": DualCoordinateAscent,
    "sgd": SGD,
    "gradient_descent": GradientDescent,
}
SOLVER_NAMES = ("auto", *_NAMED)


def named_solver(name: str, objective: LinearObjective) -> Solver:
    """Return the solver of that name; "auto" looks at the objective."""
    if name == "auto":
        return _automatic(objective)
    if name not in _NAMED:
        raise UsageError(f"solver={name!r}", remedy=f"Use one of {', '.join(map(repr, SOLVER_NAMES))}, or an object.")
    solver: Solver = _NAMED[name]()
    return solver


def _automatic(objective: LinearObjective) -> Solver:
    if objective.loss.is_smooth:
        return LBFGS()
    return DualCoordinateAscent() if dual_variables_fit(objective) else SGD()
