"""The `everstate` command."""

from __future__ import annotations

import os
import sys
import traceback
from typing import NoReturn

from rich.console import Console
from rich.text import Text

from everstate.cli.commands.clear import clear
from everstate.cli.commands.consume import consume
from everstate.cli.commands.copy import copy
from everstate.cli.commands.describe import describe
from everstate.cli.commands.discard import discard
from everstate.cli.commands.export import export
from everstate.cli.commands.generations import generations
from everstate.cli.commands.graph import graph
from everstate.cli.commands.init import init
from everstate.cli.commands.plan import plan
from everstate.cli.commands.prepare import prepare
from everstate.cli.commands.produce import produce
from everstate.cli.commands.rollback import rollback
from everstate.cli.commands.run import run
from everstate.cli.commands.status import status
from everstate.cli.commands.tombstone import tombstone
from everstate.cli.commands.topic import topic_app
from everstate.cli.exit_codes import exit_code
from everstate.cli.help_pages import Commands
from everstate.cli.version import VersionOption
from everstate.errors import AccessError, ConfigurationError, EngineError, EverstateError
from everstate.errors.exhaustion import exhausted, exhaustion
from everstate.errors.texts import one_line, printable, with_margin
from everstate.location import Location

app = Commands(
    name="everstate",
    help="Stateful streaming services in Python, on Spark, that never need a reset.",
    pretty_exceptions_enable=False,
)


@app.callback()
def _everstate(*, version: VersionOption = False) -> None:
    """What comes before the name of a command."""


app.command()(init)
app.command()(run)
app.command()(plan)
app.command()(status)
app.command()(generations)
app.command()(rollback)
app.command()(discard)
app.command()(describe)
app.command()(graph)
app.command()(clear)
app.command()(prepare)
app.add_typer(topic_app, name="topic", help="Create, list, describe, compact and delete topics.")
app.command()(produce)
app.command()(consume)
app.command()(export)
app.command()(copy)
app.command()(tombstone)


def main() -> None:
    """Run a command; errors are shown as a message, never as a traceback."""
    try:
        app(prog_name="everstate")
    except EverstateError as error:
        _end(error)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone, as in `everstate consume t | head`.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        lacking = exhaustion(error)
        if lacking is not None and lacking is not AccessError:
            _end(exhausted(lacking, f"{place}{error.strerror or error}"))
        _end(
            ConfigurationError(
                f"{place}{error.strerror or error}", hint="Check the path, its permissions and the space on the disk."
            )
        )
    except Exception as error:
        if os.environ.get("EVERSTATE_TRACEBACK"):
            raise
        _end(
            EngineError(
                f"unexpected {type(error).__name__}: {error}",
                location=_innermost(error),
                hint=(
                    "Please report this: it should have its own message. Set EVERSTATE_TRACEBACK=1 to see where "
                    "it comes from."
                ),
            )
        )


def _end(error: EverstateError) -> NoReturn:
    show(error)
    sys.exit(exit_code(error))


def show(error: EverstateError) -> None:
    """Print an error; what it quotes of records or of the user's exceptions stays text."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    # Text, not markup: `[red]` in a record is not a colour, and a backslash before a bracket is nobody's escape.
    console.print(Text.assemble(("error:", "bold red"), " ", with_margin(printable(error.message))))
    if error.location:
        console.print(Text(f"  at {one_line(str(error.location))}"))
    if error.hint:
        console.print(Text(f"  {with_margin(printable(error.hint))}"))


def _innermost(error: BaseException) -> Location | None:
    frames = traceback.extract_tb(error.__traceback__)
    return Location(frames[-1].filename, frames[-1].lineno or 0) if frames else None


if __name__ == "__main__":
    main()
