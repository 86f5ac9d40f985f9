"""`read_table` and `read_stream`: topics as Polars frames."""

from __future__ import annotations

import contextlib
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypedDict

import polars as pl

from everstate.dsl.arguments import one_of, switch, whole_number
from everstate.errors import ConfigurationError
from everstate.generations.deploy.settings import log_address
from everstate.kernels.records.typed_rows import DELETED, METADATA
from everstate.location import caller
from everstate.log.opening import check_address, open_log
from everstate.reading import forms, spans
from everstate.reading.bad_records import BadRecords
from everstate.reading.inference import Inference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from everstate.dsl.service import Service
    from everstate.formats.descriptions import Format
    from everstate.log.protocol import Log
    from everstate.reading.forms import Form
    from everstate.reading.spans import Bound, Span
    from everstate.schema.keys import KeyForm

_BAD: Final = ("error", "skip")
_CURE: Final = (
    "Look at them with everstate consume; leave them out with bad='skip'; or read other columns with schema=."
)


def read_table(  # noqa: PLR0913 - the arguments of `Service.table`, and where
    topic: str,
    *,
    log: str | Path | Log | None = None,
    service: Service | None = None,
    schema: object = None,
    key: str | Sequence[str] = "key",
    key_type: object = str,
    key_format: KeyForm = "text",
    format: Format = "json",  # noqa: A002 - the word users know
    metadata: bool = False,
    bad: Literal["error", "skip"] = "error",
) -> pl.DataFrame:
    """Read a topic as a table: the latest value of each key, without deleted ones, sorted by key.

    Args:
        topic: The topic.
        log: Where it is: a folder, `kafka://host:9092` or an open log. By default `EVERSTATE_LOG`, the service's own,
            or `./.everstate`.
        service: A service that reads or writes the topic: columns and key are as it declares them.
        schema: The value's columns, as for `Service.table`. Without it and a service they are inferred from the
            records, and the key is the column `key`.
        key: The key's column or columns, if there is a schema.
        key_type: The key's type, if the schema does not name the key column.
        key_format: How keys are written: "text" or "number".
        format: If there is a schema: "json", "string", "bytes", "number", `es.Avro()` or `es.Protobuf(Message)`.
        metadata: Add `$timestamp`, `$partition` and `$offset`.
        bad: What happens if a record cannot be decoded: "error", or "skip" to leave it out with a warning that says how
            many.

    Raises:
        DecodeError: If records cannot be decoded; it names them.
        TopicNotFoundError: If there is no such topic.

    Example:
        >>> from everstate.log import MemoryLog
        >>> log = MemoryLog()
        >>> log.create_topic("orders")
        >>> log.append("orders", pl.DataFrame({"key": [b"1", b"2", b"1"], "value": [b'{"n": 1}', b'{"n": 5}', None]}))
        >>> read_table("orders", log=log, schema={"n": int}, key="id", key_type=int).to_dicts()
        [{'id': 2, 'n': 5}]
    """
    _check(schema, service, metadata=metadata, bad=bad)
    with opened(log, service) as source:
        words: _Words = {"key": key, "key_type": key_type, "key_format": key_format, "format": format}
        declared = _declared(topic, service, schema, words)
        latest = source.latest(topic)
        form = declared or inferred([latest])
        frame = _decoded(form, [latest], topic, bad).drop(DELETED)
    frame = frame.sort(form.keys, maintain_order=True)
    return frame if metadata else frame.drop([name for name in METADATA if name != DELETED])


def read_stream(  # noqa: PLR0913 - the arguments of `Service.stream`, and what of it
    topic: str,
    *,
    log: str | Path | Log | None = None,
    service: Service | None = None,
    schema: object = None,
    key: str | Sequence[str] = "key",
    key_type: object = str,
    key_format: KeyForm = "text",
    format: Format = "json",  # noqa: A002 - the word users know
    start: Bound = None,
    end: Bound = None,
    limit: int | None = None,
    tail: int | None = None,
    metadata: bool = False,
    bad: Literal["error", "skip"] = "error",
) -> pl.DataFrame:
    """Read all records of a topic by timestamp, partition and offset; a tombstone is a row with its key and nulls.

    Arguments that it has in common with `read_table` mean the same, and so do its errors.

    Args:
        topic: The topic.
        log: Where it is.
        service: A service that reads or writes it.
        schema: The value's columns; without it and a service they are inferred.
        key: The key's column or columns.
        key_type: The key's type.
        key_format: "text" or "number".
        format: As for `read_table`.
        start: The first time (a datetime; text such as "2024-05-01 10:00" in UTC, or "2h" for two hours ago), or the
            first offset: a number for every partition, or a dict by partition.
        end: Likewise, the time or offset before which it ends.
        limit: The maximum number of records: the first ones.
        tail: The maximum number of records: the last of each partition, and of these the last by time.
        metadata: Add `$timestamp`, `$partition`, `$offset` and `$deleted`, which is true for tombstones.
        bad: "error", or "skip" with a warning.

    Example:
        >>> from everstate.log import MemoryLog
        >>> log = MemoryLog()
        >>> log.create_topic("clicks")
        >>> log.append("clicks", pl.DataFrame({"key": [b"a", b"b"], "value": [b'{"page": "/"}', b'{"page": "/x"}']}))
        >>> read_stream("clicks", log=log, limit=1).to_dicts()
        [{'key': 'a', 'page': '/'}]
    """
    _check(schema, service, metadata=metadata, bad=bad)
    _check_numbers(limit, tail)
    with opened(log, service) as source:
        words: _Words = {"key": key, "key_type": key_type, "key_format": key_format, "format": format}
        declared = _declared(topic, service, schema, words)
        part = spans.span(source, topic, start, end)
        found = partial(_chosen, source, part, limit, tail)
        frame = _decoded(declared or inferred(found()), found(), topic, bad)
    frame = frame.sort(list(METADATA)[:3], maintain_order=True)
    return frame if metadata else frame.drop(list(METADATA))


def _chosen(source: Log, part: Span, limit: int | None, tail: int | None) -> Iterable[pl.DataFrame]:
    if limit is not None:
        return [spans.first(spans.frames(source, part), limit)]
    return spans.frames(source, part) if tail is None else [spans.tail(source, part, tail)]


def _check_numbers(limit: int | None, tail: int | None) -> None:
    for name, number in {"limit": limit, "tail": tail}.items():
        if number is not None:
            whole_number(name, number, caller(), least=0, kind=ConfigurationError)
    if limit is not None and tail is not None:
        raise ConfigurationError("limit= and tail= exclude each other", location=caller(), hint="Use one of them.")


@contextlib.contextmanager
def opened(log: str | Path | Log | None, service: Service | None = None) -> Iterator[Log]:
    """The log that is meant; one that was opened for this is closed again.

    Raises:
        ConfigurationError: If there is none.
    """
    if log is not None and not isinstance(log, (str, Path)):
        yield log
        return
    address = log_address(log, None if service is None else service.log)
    check_address(address)
    if "://" not in address and not address.startswith("memory:") and not Path(address).is_dir():
        raise ConfigurationError(
            f"there is no log at {Path(address).absolute()}",
            location=caller(),
            hint="Name its folder: log='./folder', or EVERSTATE_LOG.",
        )
    source = open_log(address)
    try:
        yield source
    finally:
        source.close()


def inferred(frames: Iterable[pl.DataFrame]) -> Form:
    """How to read these records, by what they look like."""
    inference = Inference()
    for frame in frames:
        inference.add(frame)
    return inference.form()


def _check(schema: object, service: Service | None, *, metadata: bool, bad: str) -> None:
    switch("metadata", metadata, caller())
    one_of("bad", bad, _BAD, caller(), kind=ConfigurationError)
    if schema is not None and service is not None:
        raise ConfigurationError(
            "schema= and service= exclude each other", location=caller(), hint="A service has the columns already."
        )


class _Words(TypedDict):
    """What is said of a topic besides its columns."""

    key: str | Sequence[str]
    key_type: object
    key_format: KeyForm
    format: Format


_UNSAID: Final[_Words] = {"key": "key", "key_type": str, "key_format": "text", "format": "json"}


def _declared(topic: str, service: Service | None, schema: object, words: _Words) -> Form | None:
    if service is not None:
        return forms.of_service(service, topic)
    if schema is not None:
        return forms.declared(topic, schema=schema, **words)
    if words != _UNSAID:
        raise ConfigurationError(
            "key=, key_type=, key_format= and format= belong to a schema, and there is none",
            location=caller(),
            hint="Give the columns with schema=, or leave these out: the key is then the column `key`.",
        )
    return None


def _decoded(form: Form, found: Iterable[pl.DataFrame], topic: str, bad: str) -> pl.DataFrame:
    letters = BadRecords(topic, skip=bad == "skip", hint=_CURE)
    parts = [pl.DataFrame(schema={**forms.columns_of(form), **METADATA})]
    for frame in found:
        rows = form.rows(frame)
        letters.add(rows.bad)
        parts.append(rows.frame)
    letters.check()
    if letters.count:
        warnings.warn(f"{letters.told()} left out: {letters.named()}", stacklevel=3)
    return pl.concat(parts)
