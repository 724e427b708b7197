"""hinge measured against its rivals: `python -m benchmarks` from the repository's root."""
