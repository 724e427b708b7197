"""Choosing among settings and classifiers."""

from hinge.selection.grid import SearchResult, Trial, grid_search
from hinge.selection.split import stratified_split

__all__ = ["SearchResult", "Trial", "grid_search", "stratified_split"]
