"""Finds the problems, one file bench_<name>.py each, and runs those that were asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from benchmarks.machine import Rates, description, headline, measured_rates, thread_limit
from benchmarks.measurement import Settings
from benchmarks.table import Table

PREFIX = "bench_"


class Problem(Protocol):
    """What a problem's file defines: a line that says what it measures, and how to measure it."""

    TITLE: str

    @staticmethod
    def tables(settings: Settings, rates: Rates) -> list[Table]: ...


@dataclass(frozen=True)
class Outcome:
    """Everything that a run leaves behind."""

    settings: Settings
    machine: dict[str, Any]
    problems: dict[str, list[Table]]

    def as_json(self) -> dict[str, Any]:
        problems = {name: [table.as_json() for table in tables] for name, tables in self.problems.items()}
        return {"settings": asdict(self.settings), "machine": self.machine, "problems": problems}


def problem_names() -> list[str]:
    """Return the names of all problems, the main one first."""
    found = {path.stem.removeprefix(PREFIX) for path in Path(__file__).parent.glob(f"{PREFIX}*.py")}
    return sorted(found, key=lambda name: (name != "linear_pass", name))


def problem(name: str) -> Problem:
    module: Any = import_module(f"benchmarks.{PREFIX}{name}")
    return module  # type: ignore[no-any-return]


def run(names: Sequence[str], settings: Settings, show: Callable[[str], None]) -> Outcome:
    """Measure the machine, then each problem, and show each table as soon as it is there."""
    with thread_limit(settings.threads):
        rates = measured_rates(settings.threads, quick=settings.quick)
        machine = description(rates)
        show(headline(machine) + "\n")
        outcome = Outcome(settings, machine, {})
        for name in names:
            outcome.problems[name] = problem(name).tables(settings, rates)
            for table in outcome.problems[name]:
                show(table.as_text() + "\n")
    return outcome
