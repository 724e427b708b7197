"""hinge: multiclass margin classifiers, fast, readable and honest about their fit.

>>> from hinge import LinearSVM, datasets
>>> digits = datasets.load_digits()
>>> model = LinearSVM(random_state=0).fit(digits.X, digits.y)
>>> bool(model.score(digits.X, digits.y) > 0.95)
True
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hinge import datasets, inspection, losses, selection, solvers
    from hinge.estimators import LinearSVM, SoftmaxRegression
    from hinge.estimators.model_file import load_model, save_model
    from hinge.selection import LinearSVMCV, SoftmaxRegressionCV

__version__ = version("hinge")

# Names are imported on first use: `import hinge` stays cheap for a command that only prints its help.
_HOMES = {
    "LinearSVM": "hinge.estimators",
    "LinearSVMCV": "hinge.selection",
    "SoftmaxRegression": "hinge.estimators",
    "SoftmaxRegressionCV": "hinge.selection",
    "load_model": "hinge.estimators.model_file",
    "save_model": "hinge.estimators.model_file",
}
_MODULES = ("datasets", "inspection", "losses", "selection", "solvers")

__all__ = [
    "LinearSVM",
    "LinearSVMCV",
    "SoftmaxRegression",
    "SoftmaxRegressionCV",
    "datasets",
    "inspection",
    "load_model",
    "losses",
    "save_model",
    "selection",
    "solvers",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"hinge.{name}")
    raise AttributeError(f"module 'hinge' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
