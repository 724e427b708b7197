"""A progress bar on stderr, and only where somebody can see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Callable[[str, float], None]]:
    """Yield a function that is told what is being done and which share is done; silent off a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda doing, share: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("Reading", total=1.0)
        yield lambda doing, share: progress.update(task, description=doing, completed=share)
