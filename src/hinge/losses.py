"""Losses and their gradients in three forms; see `hinge.problems.losses`."""

from hinge.problems.losses import (
    GradientCheck,
    check_gradient,
    crammer_singer_hinge,
    cross_entropy,
    l2_penalty,
    multiclass_hinge,
    one_hot,
    one_vs_rest_hinge,
    softmax,
    softmax_cross_entropy,
)

__all__ = [
    "GradientCheck",
    "check_gradient",
    "crammer_singer_hinge",
    "cross_entropy",
    "l2_penalty",
    "multiclass_hinge",
    "one_hot",
    "one_vs_rest_hinge",
    "softmax",
    "softmax_cross_entropy",
]
