"""Choosing among settings and classifiers."""

from hinge.selection.grid import SearchResult, Trial, grid_search
from hinge.selection.split import stratified_split
from hinge.selection.study import Study, Trained, run_study

__all__ = ["SearchResult", "Study", "Trained", "Trial", "grid_search", "run_study", "stratified_split"]
