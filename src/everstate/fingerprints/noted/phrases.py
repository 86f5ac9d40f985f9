"""The calls that made the steps of a service, in the user's own words, for drawings and descriptions."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from everstate.errors import secrets
from everstate.fingerprints.noted.walk import Walk
from everstate.topology.drawing.cards import Phrase

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from everstate.topology.unit import Unit


def texts(units: Sequence[Unit], settings: Mapping[str, Any]) -> dict[str, dict[int, str]]:
    """By output and number of a node, the text of the calls that made it; none where it cannot be told.

    Args:
        units: The outputs.
        settings: The configuration values that the service has read: those that are secrets are masked.
    """
    walk = Walk(tuple(secrets.named(settings).values()))
    found: dict[str, dict[int, str]] = {unit.output.topic: {} for unit in units}
    for unit in units:
        for number, node in enumerate(unit.nodes):
            with suppress(Exception):  # a description does without what cannot be read
                if source := walk.source(node):
                    found[unit.output.topic][number] = source
    return found


def wording(units: Sequence[Unit], settings: Mapping[str, Any]) -> dict[str, dict[int, tuple[Phrase, ...]]]:
    """The same, call by call; see `texts`."""
    found: dict[str, dict[int, tuple[Phrase, ...]]] = {}
    for output, sources in texts(units, settings).items():
        calls = found.setdefault(output, {})
        for number, source in sources.items():
            with suppress(SyntaxError, ValueError):
                calls[number] = phrases_of(source)
    return found


def phrases_of(source: str) -> tuple[Phrase, ...]:
    """The calls in a piece of the user's text, which begins with a dot or a name.

    Example:
        >>> [(found.verb, *found.arguments) for found in phrases_of('.group_by("customer").agg(n=es.count())')]
        [('group_by', '"customer"'), ('agg', 'n=es.count()')]
    """
    text = f"(_{source})" if source.startswith(".") else f"({source})"
    call = ast.parse(text, mode="eval").body if source else None
    found: list[Phrase] = []
    while isinstance(call, ast.Call):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
        found.append(Phrase(name, tuple(_arguments(call, text))))
        call = call.func.value if isinstance(call.func, ast.Attribute) else None
    return tuple(reversed(found))


def _arguments(call: ast.Call, text: str) -> Iterator[str]:
    for argument in call.args:
        yield ast.get_source_segment(text, argument) or ast.unparse(argument)
    for word in call.keywords:
        value = ast.get_source_segment(text, word.value) or ast.unparse(word.value)
        yield f"{word.arg}={value}" if word.arg else f"**{value}"
