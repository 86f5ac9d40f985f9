"""The `everstate` command."""

from __future__ import annotations

import sys

import typer
from rich.console import Console
from rich.markup import escape

from everstate.cli.clear import clear
from everstate.cli.consume import consume
from everstate.cli.describe import describe
from everstate.cli.discard import discard
from everstate.cli.exit_codes import exit_code
from everstate.cli.generations import generations
from everstate.cli.graph import graph
from everstate.cli.plan import plan
from everstate.cli.prepare import prepare
from everstate.cli.produce import produce
from everstate.cli.rollback import rollback
from everstate.cli.run import run
from everstate.cli.topic import topic_app
from everstate.topology.errors import EverstateError

app = typer.Typer(
    name="everstate",
    help="Stateful streaming services in Python, on Spark, that never need a reset.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command()(run)
app.command()(plan)
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


def main() -> None:
    """Run a command; errors are shown as a message, never as a traceback."""
    try:
        app()
    except EverstateError as error:
        _show(error)
        sys.exit(exit_code(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone, as in `everstate consume t | head`.
        sys.stderr.close()
        sys.exit(0)


def _show(error: EverstateError) -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"[bold red]error:[/] {escape(error.message)}")
    if error.location:
        console.print(f"  at {escape(str(error.location))}")
    if error.hint:
        console.print(f"  {escape(error.hint)}")


if __name__ == "__main__":
    main()
