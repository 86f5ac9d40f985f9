from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from everstate.cli.option_groups import asked, grouped


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where."""

    log: Annotated[str | None, typer.Option("--log", help="The log's folder.")] = None
    shards: int | None = None
    keep_topic: Annotated[bool, typer.Option("--keep-topic")] = False


@grouped
def ship(what: str, *, once: bool = False, place: Place) -> None:
    """Ship it."""
    typer.echo(f"{what} {once} {sorted(asked(place).items())}")


app = typer.Typer()
app.command()(ship)


def test_group_gives_a_command_its_options_and_their_values():
    result = CliRunner().invoke(app, ["box", "--log", "here", "--keep-topic", "--once"])
    assert result.output == "box True [('keep_topic', True), ('log', 'here')]\n"


def test_group_options_that_are_left_out_are_not_asked_for():
    assert CliRunner().invoke(app, ["box"]).output == "box False [('keep_topic', False)]\n"


def test_group_options_are_shown_with_their_help():
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "100"}).output
    assert "Ship it." in shown
    assert "The log's folder." in shown
    assert "--shards" in shown
