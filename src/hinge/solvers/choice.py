"""Which solver fits which problem; docs/algorithms/solver_choice.md explains the choice."""

from __future__ import annotations

from hinge.errors import UsageError
from hinge.problems.objective import LinearObjective
from hinge.solvers.gradient_descent import GradientDescent
from hinge.solvers.lbfgs import LBFGS
from hinge.solvers.newton_cg import NewtonCG
from hinge.solvers.result import Solver
from hinge.solvers.sgd import SGD

_NAMED: dict[str, type] = {"lbfgs": LBFGS, "newton_cg": NewtonCG, "sgd": SGD, "gradient_descent": GradientDescent}
SOLVER_NAMES = ("auto", *_NAMED)


def named_solver(name: str, objective: LinearObjective) -> Solver:
    """Return the solver of that name; "auto" looks at the objective."""
    if name == "auto":
        return LBFGS() if objective.loss.is_smooth else SGD()
    if name not in _NAMED:
        raise UsageError(f"solver={name!r}", remedy=f"Use one of {', '.join(map(repr, SOLVER_NAMES))}, or an object.")
    solver: Solver = _NAMED[name]()
    return solver
