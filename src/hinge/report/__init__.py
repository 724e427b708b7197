"""A study as one page that opens anywhere; it reads results and computes none."""

from hinge.report.html import render

__all__ = ["render"]
