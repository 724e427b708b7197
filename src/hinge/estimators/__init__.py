"""Classifiers under scikit-learn's contract."""

from hinge.estimators.linear import LinearSVM, SoftmaxRegression

__all__ = ["LinearSVM", "SoftmaxRegression"]
