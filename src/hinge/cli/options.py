"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class ImageShape(click.ParamType[Any]):
    """HEIGHTxWIDTH, or HEIGHTxWIDTHxCHANNELS."""

    name = "HxW[xC]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Return the sizes."""
        if isinstance(value, tuple):
            return value
        parts = str(value).lower().split("x")
        if len(parts) not in (2, 3) or not all(part.isdigit() and int(part) > 0 for part in parts):
            self.fail(f"{value!r} is not a shape such as 28x28 or 32x32x3", param, ctx)
        return tuple(int(part) for part in parts)


def data_options(command: F) -> F:
    """Say how a file is to be read."""
    for option in (
        click.option(
            "--header/--no-header",
            default=None,
            help="Whether a CSV's first line names the columns.  [default: look]",
        ),
        click.option(
            "--target",
            metavar="COL",
            help="The column with the classes: its name, or its number from 0. For NPY and IDX also a file of labels.",
        ),
    ):
        command = option(command)
    return command


def image_option(command: F) -> F:
    """Say that rows are pictures."""
    return click.option("--image-shape", type=ImageShape(), help="Rows are pictures of this shape, e.g. 28x28.")(
        command
    )


def jobs_option(command: F) -> F:
    """Say how many threads to use."""
    return click.option(
        "-j", "--n-jobs", type=int, metavar="N", help="Threads.  [default: all that this process may use]"
    )(command)
