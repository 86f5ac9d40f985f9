"""Plays packs of histories on the test driver and compares what comes out with what an oracle says."""

from __future__ import annotations

import math
from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from hypothesis import Phase, settings

import everstate as es
from tests import effort
from tests.equivalence.histories import HISTORIES, Layout, Pack, Placed, batches
from tests.figures import PLAYED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tests.equivalence.oracles import Stream, Table

#: Packs of which `make test` plays its share, and in the long run: 2,000 histories a family and more.
FEW = 30
MANY = 2000 // HISTORIES


def examples(full: int, usual: int | None = None) -> settings:
    """So many packs (`effort.py`).

    Packs do not get smaller by Hypothesis, which takes minutes: the histories at fault are named.
    """
    return settings(max_examples=effort.examples(full, usual), phases=(Phase.explicit, Phase.generate))


def play(service: es.Service, pack: Pack, layout: Layout) -> tuple[es.testing.Driver, list[Placed]]:
    """The driver after a pack, and the records in the order in which they were sent."""
    driver = es.testing.Driver(service, partitions=layout.partitions, shards=layout.shards)
    topics = {topic for unit in service.units() for topic in unit.topics}
    sent = []
    for batch in batches(pack, layout):
        with driver.batch():
            for event in (event for event in batch if event.topic in topics):
                driver.send(event.topic, event.key, event.value, event.ts, event.partition)
        sent += batch
    return driver, sent


def check_tables(
    family: str,
    service: es.Service,
    pack: Pack,
    ways: Sequence[Layout],
    expected: Callable[[list[Placed]], dict[str, Table]],
    near: Iterable[str] = (),
) -> None:
    """Every way to play the pack gives the oracle's tables, and all ways the same to the last digit.

    Args:
        family: Whose histories are counted.
        service: The service.
        pack: The histories.
        ways: How they are played.
        expected: From all records to the tables by topic.
        near: Columns that the oracle need not know to the last digit.
    """

    def check(some: Pack) -> None:
        first: dict[str, Any] = {}
        for layout in ways:
            driver, sent = play(service, some, layout)
            for topic, table in expected(sent).items():
                found = driver.table(topic)
                assert_same(rough(found, near), rough(table.published(), near), f"{topic} on {layout}")
                assert shown(found) == first.setdefault(topic, shown(found)), (topic, layout)
                assert_no_redundant_record(driver, topic)

    blaming(check, pack)
    PLAYED[family] += len(pack)


def check_streams(
    family: str,
    service: es.Service,
    pack: Pack,
    ways: Sequence[Layout],
    expected: Callable[[list[Placed]], dict[str, Stream]],
) -> None:
    """Every way to play the pack gives the oracle's rows, those of a key in the oracle's order."""

    def check(some: Pack) -> None:
        for layout in ways:
            driver, sent = play(service, some, layout)
            for topic, stream in expected(sent).items():
                wanted, found = defaultdict(list), defaultdict(list)
                for key, row in stream.rows:
                    value = {name: part for name, part in row.columns.items() if name not in stream.names}
                    wanted[None if key is None else key[0] if len(key) == 1 else key].append(shown(value))
                for record in driver.records(topic):
                    found[record.key].append(shown(record.value))
                for rows in (wanted, found):
                    if None in rows:  # rows without a key have no order among each other
                        rows[None].sort()
                assert_same(found, wanted, f"{topic} on {layout}")

    blaming(check, pack)
    PLAYED[family] += len(pack)


def blaming(check: Callable[[Pack], None], pack: Pack) -> None:
    """Checks a pack; if it fails, the first history that fails by itself is shown instead of all."""
    try:
        check(pack)
    except AssertionError as whole:
        for history in pack:
            try:
                check((history,))
            except AssertionError as single:
                events = "\n".join(map(str, history))
                raise AssertionError(f"{single}\n{events}") from None
        raise AssertionError(f"{whole}\nonly all histories of the pack together show it") from None


def assert_same(found: dict[Any, Any], wanted: dict[Any, Any], where: str) -> None:
    """Two tables are equal; if not, only the rows in which they differ are shown."""
    differing = [key for key in {**found, **wanted} if found.get(key) != wanted.get(key)]
    lines = [f"{key!r}: {found.get(key)} instead of {wanted.get(key)}" for key in differing]
    assert not lines, "\n".join([where, *lines])


def assert_dead(driver: es.testing.Driver, output: str, expected: set[tuple[str, int, int]]) -> None:
    """The dead-letter topic names these records and no others, each once."""
    letters = [record.value for record in driver.records(f"{output}.dlq")]
    found = [(letter["topic"], letter["partition"], letter["offset"]) for letter in letters]
    assert sorted(found) == sorted(expected)


def assert_no_redundant_record(driver: es.testing.Driver, topic: str) -> None:
    """Each record of a table's topic changes the value of its key."""
    held: dict[Any, str] = {}
    for record in driver.records(topic):
        before = held.pop(record.key, None)
        now = None if record.value is None else shown(record.value)
        assert now != before, f"{topic}: {record} changes nothing"
        if now is not None:
            held[record.key] = now


def shown(value: Any) -> Any:
    """A value as text in which every digit counts, and the sign of a zero; dicts and tables in order of their keys."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {shown(part)}" for key, part in sorted(value.items(), key=repr)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(shown, value)) + "]"
    # The zeros at the end of a decimal are no part of its value.
    return repr(value.normalize() + 0) if isinstance(value, Decimal) else repr(value)


def rough(table: dict[Any, dict[str, Any]], near: Iterable[str]) -> dict[Any, dict[str, str]]:
    """A table as text by key and column; of some columns only twelve digits."""
    return {
        key: {name: shown(_rounded(part) if name in near else part) for name, part in value.items()}
        for key, value in table.items()
    }


def _rounded(number: Any) -> Any:
    if isinstance(number, float) and math.isfinite(number):
        return float(f"{number:.12g}") + 0.0
    return number
