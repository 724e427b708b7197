"""`hinge datasets`: what can be run without a file."""

from __future__ import annotations

import click


@click.command("datasets")
def command() -> None:
    """List the data sets that come with hinge; `hinge run NAME` uses one."""
    from hinge import datasets

    for name in datasets.names():
        data = datasets.load(name)
        n_classes = len(set(data.y.tolist()))
        click.echo(f"{name:<16}{data.X.shape[0]:>6,} rows {data.X.shape[1]:>5,} features {n_classes:>4} classes")
