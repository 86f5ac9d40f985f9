"""The print of an output."""

from __future__ import annotations

import json
import platform
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.fingerprints.outside import origins
from everstate.fingerprints.parts import PartReader, RawPart
from everstate.fingerprints.prints import Column, NodePrint, Part, UnitPrint
from everstate.fingerprints.settings import Settings
from everstate.fingerprints.tree import digest
from everstate.topology.names import node_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everstate.location import Location
    from everstate.schema.types import Field
    from everstate.topology.nodes import Node
    from everstate.topology.unit import Unit


#: How functions become trees. The number goes up when the same function gets another digest, so that a plan can say so.
SCHEME: Final = 3


def print_unit(unit: Unit, *, policy: str, settings: Mapping[str, Any]) -> UnitPrint:
    """What an output is, by its meaning.

    Args:
        unit: The output.
        policy: What happens to records that cannot be processed.
        settings: The configuration values that the service has read, by name.

    Raises:
        FingerprintError: If a function or expression holds something whose change could not be noticed.
    """
    reader = PartReader()
    with origins.of_services(node.location.file for node in unit.nodes if node.location is not None):
        raw = [reader.parts(node) for node in unit.nodes]
    known = Settings(settings, (part.tree for parts in raw for part in parts))
    return UnitPrint(
        service=unit.service,
        output=unit.output.topic,
        kind=str(unit.output.kind),
        nodes=_nodes(unit, [{part.name: _part(part, known) for part in parts} for parts in raw]),
        settings=known.prints(),
        packages=dict(sorted(reader.packages.items())),
        policy=policy,
        libraries=libraries(),
        scheme=SCHEME,
        sides={side.topic: str(side.kind) for side in unit.sides},
    )


def outline(unit: Unit, *, policy: str) -> UnitPrint:
    """The steps of an output without their meaning: enough to run one whose functions cannot be seen, not to compare.

    Args:
        unit: The output.
        policy: What happens to records that cannot be processed.
    """
    return UnitPrint(
        service=unit.service,
        output=unit.output.topic,
        kind=str(unit.output.kind),
        nodes=_nodes(unit, [{} for _ in unit.nodes]),
        policy=policy,
        libraries=libraries(),
        scheme=SCHEME,
        sides={side.topic: str(side.kind) for side in unit.sides},
    )


def _nodes(unit: Unit, parts: Sequence[dict[str, Part]]) -> tuple[NodePrint, ...]:
    """The steps with their parts; one that rows pass unchanged does not count, whatever it does."""
    names = node_names(unit)
    return tuple(
        NodePrint(
            name=names[number],
            operation=node.verb,
            inputs=tuple(names[_giver(unit, edge.source)] for edge in unit.into(number)),
            stateful=node.traits.keeps_state,
            parts=parts[number],
            location=_text(node.location),
            columns=_columns(node),
            migrates=node.converter is not None,
            kind=str(node.kind),
            traits=node.traits_here(),
        )
        for number, node in enumerate(unit.nodes)
        if not node.traits.passes
    )


def _giver(unit: Unit, number: int) -> int:
    """The node that the rows come from: a side effect on their way does not count."""
    while unit.nodes[number].traits.passes:
        number = unit.into(number)[0].source
    return number


def _columns(node: Node) -> tuple[Column, ...]:
    schema = node.schema if node.inputs else node.record
    return tuple(_column(field) for field in schema.fields)


def _column(field: Field) -> Column:
    exact = json.dumps(field.type.to_json(), sort_keys=True)
    return Column(field.name, str(field.type), field.nullable, field.default, exact)


def _part(raw: RawPart, known: Settings) -> Part:
    meaning = digest(raw.tree, keywords=raw.keywords)
    shape = digest(raw.tree, keywords=raw.keywords, name_of=known.name_of)
    return Part(raw.kind, meaning, shape, known.masked(raw.text), _text(raw.location))


def _text(location: Location | None) -> str:
    return "" if location is None else str(location)


@cache
def libraries() -> dict[str, str]:
    """The versions of what calculates, by name."""
    return {"python": platform.python_version(), "polars": pl.__version__, "everstate": _own_version()}


def _own_version() -> str:
    try:
        return metadata.version("everstate")
    except metadata.PackageNotFoundError:  # a copy of the sources that was not installed
        return ""
