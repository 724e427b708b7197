"""Solvers as objects with options: `LinearSVM(solver=solvers.SGD(learning_rate=1e-3, batch_size=256))`."""

from hinge.solvers.dual_coordinate_ascent import DualCoordinateAscent
from hinge.solvers.gradient_descent import GradientDescent
from hinge.solvers.interior_point import InteriorPoint
from hinge.solvers.lbfgs import LBFGS
from hinge.solvers.newton_cg import NewtonCG
from hinge.solvers.orthant_newton import OrthantNewton
from hinge.solvers.result import Callback, Iteration, Solver, SolverResult
from hinge.solvers.sgd import SGD

__all__ = [
    "LBFGS",
    "SGD",
    "Callback",
    "DualCoordinateAscent",
    "GradientDescent",
    "InteriorPoint",
    "Iteration",
    "NewtonCG",
    "OrthantNewton",
    "Solver",
    "SolverResult",
]
