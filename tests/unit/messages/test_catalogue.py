"""All texts for users side by side in `catalogue.md`, so that a person can read them in one go."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.unit.messages.extraction import catalogue, messages, module_messages

KEPT = Path(__file__).parent / "catalogue.md"


def found(source: str, *, module: str = "plan/made_up.py") -> list[tuple[str, str]]:
    return [(message.kind, message.text) for message in module_messages(module, ast.parse(source), {"LogError"})]


def test_catalogue_is_that_of_the_source() -> None:
    assert KEPT.read_text(encoding="utf-8") == catalogue(), "run `make catalogue`, and read what has changed"


@pytest.mark.parametrize("kind", ["error", "hint", "help", "says", "logs", "plan", "text"])
def test_catalogue_has_every_kind_of_message(kind) -> None:
    assert any(message.kind == kind for message in messages())


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("raise LogError(f'topic {self.topic!r} is gone', hint='Look.')", [("error", "topic {topic} is gone")]),
        ("raise LogError('gone', hint=f'Run: {command}')", [("error", "gone"), ("hint", "Run: {command}")]),
        ("raise kind('gone')", [("error", "gone")]),
        ("typer.echo('Done.' if it else f'{counted(n)} left')", [("says", "Done."), ("says", "{n} left")]),
        ("logger.warning('Topic %s was not found', topic)", [("logs", "Topic %s was not found")]),
        ("class LogError:\n  def __init__(self): super().__init__('gone')", [("error", "gone")]),
        ("def f(x: Annotated[str, Option(help='Which.')]): ...", [("help", "Which.")]),
        ('why = f\'the {noun} was {"kept" if it else "lost"}\'', [("text", "the {noun} was {kept|lost}")]),
        ("why = 'a part of ' + 'a sentence'", [("text", "a part of "), ("text", "a sentence")]),
        ("def f():\n  'What a function does.'\n  assert x, 'this is for us'", []),
        ("database.execute('SELECT name FROM topics')", []),
        ("names = 'one two three'.split()", []),
        ("x: 'dict of names' = {'the key here': 1}", []),
    ],
)
def test_texts_are_found_by_the_call_that_takes_them(source, expected) -> None:
    assert [entry for entry in found(source) if entry[1] != "Look."] == expected


def test_commands_help_is_the_first_paragraph_of_their_docstrings() -> None:
    source = 'def run():\n  """Run it,\n  and stop.\n\n  More."""\ndef _inner():\n  "Not shown."'
    assert found(source, module="cli/commands/run.py") == [("help", "Run it, and stop.")]
    assert found(source, module="cli/main.py") == []


def test_messages_are_in_the_order_of_their_lines() -> None:
    places = [(message.module, message.line) for message in messages()]
    assert places == sorted(places)
