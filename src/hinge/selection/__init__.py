"""Choosing among settings and classifiers."""

from hinge.selection.cross_validation import LinearSVMCV, SoftmaxRegressionCV
from hinge.selection.grid import SearchResult, Trial, grid_search
from hinge.selection.path import PenaltyPath, path
from hinge.selection.split import stratified_split
from hinge.selection.study import Study, Trained, run_study

__all__ = [
    "LinearSVMCV",
    "PenaltyPath",
    "SearchResult",
    "SoftmaxRegressionCV",
    "Study",
    "Trained",
    "Trial",
    "grid_search",
    "path",
    "run_study",
    "stratified_split",
]
