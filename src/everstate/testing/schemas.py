"""How the driver writes and reads the records of a topic: by what the versions of a service declare about it."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from everstate.errors import ConfigurationError, RecordError, TopicNotFoundError
from everstate.errors.calls import suggestion
from everstate.formats.values import decode_value, encode_value
from everstate.location import caller
from everstate.schema.keys import decode_key, encode_key
from everstate.schema.record_values import check_row
from everstate.schema.topic_names import dead_letter_topic, removals_topic
from everstate.testing.plain import plain_json
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from everstate.formats.descriptions import Format
    from everstate.schema.schema import Schema
    from everstate.topology.nodes import Output, Routed, Source
    from everstate.topology.unit import Unit


class Schemas:
    """What is known of each topic.

    Records of an earlier version may still lie on a topic, so that what the newest version cannot read is read as the
    one before would, and in the end as plain text and JSON.
    """

    def __init__(self) -> None:
        self._sources: dict[str, list[Source]] = {}
        self._outputs: dict[str, list[Output]] = {}
        self._plain: set[str] = set()
        self._sides: dict[str, list[Routed]] = {}
        self._removals: dict[str, str] = {}

    def learn(self, units: Iterable[Unit]) -> None:
        """Add what a version declares; it is tried before what is known already."""
        for unit in units:
            self._outputs.setdefault(unit.output.topic, []).insert(0, unit.output)
            for side in unit.sides:
                self._sides.setdefault(side.topic, [])
            for topic, routed in unit.routed.items():
                self._sides[topic].insert(0, routed)
            for source in unit.sources:
                self._sources.setdefault(source.topic, []).insert(0, source)

    def allow(self, topic: str) -> None:
        """Let records be written to a topic that no version declares yet."""
        self._plain.add(topic)

    def allow_removals(self, topic: str) -> None:
        """Let keys be removed from a topic; what was removed can then be read.

        Raises:
            ConfigurationError: If it is no table's.
        """
        if topic in self._removals:
            raise ConfigurationError(
                f"topic {topic!r} says what was removed from {self._removals[topic]!r}, so nothing is removed from it",
                location=caller(),
                hint="Name the topic of a table.",
            )
        known = self._known(topic)
        # What a processor sends aside are streams.
        if known and all(getattr(node, "kind", Kind.STREAM) is Kind.STREAM for node in known):
            raise ConfigurationError(
                f"topic {topic!r} is a stream, in which a tombstone would remove nothing",
                location=caller(),
                hint="Name the topic of a table.",
            )
        self._removals[removals_topic(topic)] = topic

    def written(self, topic: str, key: Any, value: Any) -> tuple[bytes | None, bytes | None]:
        """A record's bytes; a value that does not fit is written as it is, so that tests can send it.

        Raises:
            TopicNotFoundError: If no version has this source, and the topic was not allowed.
            RecordError: If the key does not fit.
        """
        if topic in self._sources:
            source = self._sources[topic][0]
            absent = [name for name in source.key.names if not _has(value, name)]
            return _key_bytes(source, key), _value_bytes(value, source.declared.without(absent), source.format)
        if topic not in self._plain:
            raise self.unknown(topic, sorted({*self._sources, *self._plain}), "The service reads")
        if topic in self._outputs:
            output = self._outputs[topic][0]
            return _key_bytes(output, key), _value_bytes(value, output.record, output.format)
        return _plain_key(key), value if value is None or isinstance(value, bytes) else plain_json(value)

    def require(self, topic: str) -> None:
        """Refuse a topic that no version declares.

        Raises:
            TopicNotFoundError: If there is none of that name.
        """
        letters = {dead_letter_topic(output) for output in self._outputs}
        known = {*self._sources, *self._outputs, *letters, *self._sides, *self._plain, *self._removals}
        if topic not in known:
            raise self.unknown(topic, sorted(known), "The topics here are")

    @staticmethod
    def unknown(topic: str, known: Iterable[str], words: str) -> TopicNotFoundError:
        """The error for a topic that is not there."""
        error = TopicNotFoundError(topic, location=caller())
        error.hint = f"{suggestion(topic, known)}{words}: {', '.join(known) or 'none'}."
        return error

    def key(self, topic: str, data: bytes | None) -> Any:
        """A key as users write it."""
        if data is None:
            return None
        for node in self._known(self._removals.get(topic, topic)):
            try:
                parts = decode_key(data, node.topic_key)
            except RecordError:
                continue
            return parts[0] if len(parts) == 1 else tuple(parts)
        return data.decode(errors="replace")

    def value(self, topic: str, data: bytes | None) -> Any:
        """A value as users write it."""
        if data is None:
            return None
        others = []
        for node in self._known(topic):
            schema = node.record
            try:
                row = decode_value(data, schema, node.format)
            except RecordError:
                continue
            found = row["value"] if schema.scalar else row
            if node.format != "json" or _has_fields(data, schema):
                return found
            others.append(found)
        return others[0] if others else _plain_value(data)

    def _known(self, topic: str) -> list[Output | Source | Routed]:
        return [*self._outputs.get(topic, []), *self._sides.get(topic, []), *self._sources.get(topic, [])]


def _has_fields(data: bytes, schema: Schema) -> bool:
    """Whether a record has the fields of a schema and no others: an earlier version may have written more."""
    value = json.loads(data)
    return schema.scalar or (isinstance(value, dict) and set(value) == set(schema.names))


def _has(value: Any, name: str) -> bool:
    if is_dataclass(value) and not isinstance(value, type):
        return any(field.name == name for field in fields(value))
    return isinstance(value, dict) and name in value


def _key_bytes(node: Output | Source, key: Any) -> bytes | None:
    if key is None or isinstance(key, bytes):
        return key
    try:
        return encode_key(key, node.topic_key)
    except RecordError as error:
        raise RecordError(error.message, location=caller(), hint=error.hint) from None


def _value_bytes(value: Any, schema: Schema, fmt: Format) -> bytes | None:
    own_type = schema.scalar and schema.fields[0].type.name == "bytes"
    if value is None or (isinstance(value, bytes) and not own_type):
        return value
    try:
        return encode_value(check_row(value, schema), schema, fmt)
    except RecordError:
        return value.encode() if isinstance(value, str) and fmt == "string" else plain_json(value, schema)


def _plain_key(key: Any) -> bytes | None:
    if key is None or isinstance(key, bytes):
        return key
    if isinstance(key, tuple):
        return plain_json(list(key))
    return str(key).encode()


def _plain_value(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data
