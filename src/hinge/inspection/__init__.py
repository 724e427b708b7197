"""Looking at what a classifier learned and where it errs."""

from hinge.inspection.confusion import Confusion, confusion
from hinge.inspection.templates import weight_templates

__all__ = ["Confusion", "confusion", "weight_templates"]
