"""How the records of a topic become typed rows: as a service declares them, or as the caller does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from everstate.dsl.service import Service
from everstate.errors import ConfigurationError
from everstate.kernels.records.typed_rows import DeclaredForm
from everstate.schema.schema import Schema

if TYPE_CHECKING:
    import polars as pl

    from everstate.kernels.records.typed_rows import Rows
    from everstate.schema.types import DataType
    from everstate.topology.nodes import Output, Routed, Source


class Form(Protocol):
    """How records are read."""

    @property
    def types(self) -> dict[str, DataType]:
        """The user's columns, those of the key first."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Those of them that are the key."""

    def rows(self, records: pl.DataFrame) -> Rows:
        """The rows of a records frame."""


def columns_of(form: Form) -> dict[str, pl.DataType]:
    """The user's columns as frames have them."""
    return {name: type_.polars for name, type_ in form.types.items()}


def declared(topic: str, *, schema: object, **words: Any) -> DeclaredForm:
    """The form that a caller declares.

    Args:
        topic: The topic.
        schema: The value's columns.
        words: Further arguments of `Service.table`.

    Raises:
        DefinitionError: If they cannot be.
    """
    node = cast("Source", Service("reading").stream(topic, schema=schema, **words).node)
    return DeclaredForm(node.key, node.declared, node.format)


def of_service(service: Service, topic: str) -> DeclaredForm | None:
    """The form in which a service writes a topic, or reads it; None for its dead letters, which say it themselves.

    Where it reads several selections of a topic's columns, all of them are taken.

    Raises:
        ConfigurationError: If it does neither.
    """
    units = service.units()
    for unit in units:
        if topic in unit.routed:
            return _of_node(unit.routed[topic], unit.routed[topic].record)
    if topic in {name for unit in units for name in unit.written if name != unit.output.topic}:
        return None
    for unit in units:
        if unit.output.topic == topic:
            return _of_node(unit.output, unit.output.record)
    readings = [source for unit in units for source in unit.sources if source.topic == topic]
    if not readings:
        known = sorted({name for unit in units for name in (*unit.topics, unit.output.topic, *unit.routed)})
        raise ConfigurationError(
            f"service {service.name!r} neither reads nor writes topic {topic!r}",
            hint=f"Its topics are: {', '.join(known) or 'none'}. Give the columns themselves with schema=, or leave "
            "service= out, and they are inferred.",
        )
    fields = {field.name: field for source in readings for field in source.declared.fields}
    return _of_node(readings[0], Schema(tuple(fields.values()), scalar=readings[0].declared.scalar))


def _of_node(node: Output | Source | Routed, schema: Schema) -> DeclaredForm:
    return DeclaredForm(node.key, schema, node.format)
