"""The command `hinge`: finds the subcommand, runs it, and ends with an exit code that says how it went.

0 done, 2 usage, 3 bad data, 4 not converged, 5 out of resources, 130 interrupted. Results go to stdout, all else to
stderr. A subcommand's module is imported when it is called, so that help is quick.
"""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from typing import Any

import click

from hinge import __version__
from hinge.errors import HingeError, ResourceError, UsageError

COMMANDS = {
    "run": "Train, test and report on labelled rows: the main job.",
    "predict": "Predict rows with a model that `hinge run` wrote.",
    "inspect": "Show what is in a data set or a model, or what this machine offers.",
    "datasets": "List the data sets that come with hinge.",
}


class _Commands(click.Group):
    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"hinge.cli.{name}").command
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hinge")
def hinge() -> None:
    """Multiclass margin classifiers: fast, readable and honest about their fit.

    Start with `hinge run`, which needs no data, or `hinge run DATA`.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code. Warnings are lines on stderr like any other."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            code = hinge.main(arguments, prog_name="hinge", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as ended:
        return int(ended.exit_code)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted; nothing was written", 130)
    except HingeError as error:
        return _fail(str(error), error.exit_code)
    except MemoryError:
        return _fail(
            "out of memory. Use fewer rows or columns, or a machine with more memory.",
            ResourceError.exit_code,
        )
    except ImportError as error:
        if "HINGE_ISA" not in str(error):
            raise
        return _fail(str(error), UsageError.exit_code)
    except BrokenPipeError:
        # The reader of our output went away, e.g. `| head`: nothing more to say, not even at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _show_warning(message: Warning | str, *rest: Any) -> None:
    click.echo(f"hinge: warning: {message}", err=True)


def _fail(message: Any, code: int) -> int:
    click.echo(f"hinge: {message}", err=True)
    return code
