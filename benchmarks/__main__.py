"""python -m benchmarks [PROBLEM …] [-j N] [--repeat N] [--json FILE] [--only TEXT] [--quick] [--list]"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.measurement import Settings
from benchmarks.runner import problem, problem_names, run
from hinge.config import resolve_threads

USAGE_ERROR = 2


def parser() -> argparse.ArgumentParser:
    arguments = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure hinge and its rivals.")
    arguments.add_argument("problems", nargs="*", metavar="PROBLEM", help="what to measure (default: everything)")
    arguments.add_argument("-j", "--threads", type=_count, help="threads for everyone (default: all cores)")
    arguments.add_argument("--repeat", type=_count, default=15, help="rounds (default: 15; fits take a third)")
    arguments.add_argument("--json", type=Path, metavar="FILE", help="write all rounds and the machine to FILE")
    arguments.add_argument("--only", default="", metavar="TEXT", help="of `linear`, the rows whose label holds TEXT")
    arguments.add_argument("--quick", action="store_true", help="tiny sizes: does it run, not how fast")
    arguments.add_argument("--list", action="store_true", help="print the problems and stop")
    return arguments


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def main(words: list[str] | None = None) -> int:
    options = parser().parse_args(words)
    names = problem_names()
    if options.list:
        print("\n".join(f"{name:12} {problem(name).TITLE}" for name in names))
        return 0
    unknown = [name for name in options.problems if name not in names]
    if unknown:
        print(f"unknown problem {unknown[0]!r}; choose from: {', '.join(names)}", file=sys.stderr)
        return USAGE_ERROR
    threads, attempts = options.threads or resolve_threads(None), 1 if options.quick else 3
    settings = Settings(threads, options.repeat, options.quick, attempts, options.only)
    outcome = run(options.problems or names, settings, lambda text: print(text, flush=True))
    if options.json is not None:
        text = json.dumps(outcome.as_json(), indent=1, ensure_ascii=False, allow_nan=False)
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
