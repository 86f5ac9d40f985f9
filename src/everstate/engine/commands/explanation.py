"""One key of an output under both versions: its value, and the records of the sources that it is made of.

Both versions process the sources' past in this process, beside each other, and nothing of it is kept.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import polars as pl

from everstate.errors import EverstateError
from everstate.fingerprints.prints import UnitPrint
from everstate.generations.compare.sampling import every_field, sample
from everstate.generations.deploy.outputs import PreparedOutput
from everstate.generations.generation import Generation, Status
from everstate.generations.in_process.execution import Course, InProcessExecution
from everstate.generations.in_process.kept import Kept
from everstate.generations.state.past import beginning
from everstate.kernels.lineage import Lineage
from everstate.kernels.rows import KEY, OFF, PART, TOPIC, user_columns
from everstate.plan.preview import Contribution, Explanation
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from everstate.generations.compare.difference import Difference
    from everstate.generations.deploy.planning import Planned
    from everstate.generations.deploy.site import Site
    from everstate.log.descriptions import Vector
    from everstate.topology.unit import Unit

#: Contributions that are shown.
_SHOWN: Final = 10
_CHANGES: Final = {"new": "new", "changed": "changed", "stale": "tombstone"}
#: Topic, partition and offset of a record.
_Place: TypeAlias = tuple[str, int, int]


class _Version(NamedTuple):
    """What a version makes of a key: its records by place, with what enters the last step, and its last value."""

    records: dict[_Place, tuple[str | None, str]]
    entering: dict[_Place, bytes]
    result: bytes | None


_NOTHING: Final = _Version({}, {}, None)


def on_topic(key: str) -> str:
    """A key as it is on a topic: that of several parts is a JSON array, however it was spaced by whoever typed it.

    Example:
        >>> on_topic('["ada", 3]'), on_topic("[ada"), on_topic("ada")
        ('["ada",3]', '[ada', 'ada')
    """
    if not key.startswith("["):
        return key
    try:
        return json.dumps(json.loads(key), ensure_ascii=False, separators=(",", ":"))
    except ValueError:
        return key


def outcome(key: str, found: Difference, present: pl.DataFrame | None) -> Explanation:
    """What becomes of a key of a table.

    Args:
        key: The key.
        found: What differs between the new version and the topic.
        present: key and value of what is on the topic; None for a stream.
    """
    wanted = pl.col("key") == pl.lit(key.encode())
    for kind, change in _CHANGES.items():
        for _, old, new in found.parts[kind].filter(wanted).rows():
            return _told(key, change, old, new)
    held = [] if present is None else present.filter(wanted)["value"].to_list()
    value = held[0] if held else None
    return _told(key, "absent" if value is None else "unchanged", value, value)


def with_records(known: Explanation, output: str, planned: Planned, site: Site, *, every: bool) -> Explanation:
    """The same with the records that the key is made of.

    Args:
        known: What becomes of the key.
        output: Whose key it is.
        planned: The plan; it has the new version.
        site: Where.
        every: All records, not some of them.
    """
    active, key = site.registry.read(output).active, known.key.encode()
    unit = planned.units.get(output)
    try:
        old, new = _NOTHING, _NOTHING
        if active is not None:
            last = site.log.last_commit(planned.plan.service, output, active.name)
            described = UnitPrint.from_json(active.description)
            old = _traced(site.code(output, active), described, site, key, end=None if last is None else last.end)
        if unit is not None:
            new = _traced(unit, planned.prints[output], site, key)
    except EverstateError as error:
        return replace(known, unknown=error.message)
    if unit is not None and unit.output.kind is Kind.STREAM:
        same = "absent" if old.result is None else "unchanged"
        known = _told(known.key, same if old.result == new.result else "changed", old.result, new.result)
    found = [_contribution(place, old, new) for place in sorted({**old.records, **new.records})]
    found.sort(key=lambda one: (one.counts == "both", not one.fields))
    return replace(known, records=len(found), contributions=tuple(found if every else found[:_SHOWN]))


def _told(key: str, change: str, old: bytes | None, new: bytes | None) -> Explanation:
    shown = sample((key.encode(), old, new), longest=None)
    return Explanation(key=key, change=change, old=shown.old, new=shown.new, fields=every_field(old, new))


def _traced(unit: Unit, described: UnitPrint, site: Site, key: bytes, end: Vector | None = None) -> _Version:
    """What a version makes of a key, from the beginning of its sources on."""
    initial, missing = beginning(site.log, unit.service, site.home, described, unit.topics)
    generation = Generation(
        number=0,  # no version has it, so nothing was committed under it
        status=Status.PLANNED,
        fingerprint=described.fingerprint,
        description=described.to_json(),
        shards=1,
        initial=initial,
        missing=missing,
        code="",
        policy="skip",
    )
    kept = Kept(site.home)
    course = Course(lease=site.leases.building(), closed=True, end=end)
    execution = InProcessExecution(PreparedOutput(unit, kept, generation), kept, site.log, site.settings, course)
    lineage = Lineage(unit)
    execution.replay(lineage.witness)
    records = {
        place: (None if row[KEY] is None else _text(row[KEY]), _json(row, unit.nodes[number].key.names).decode())
        for number, frame in lineage.records(key).items()
        for place, row in _placed(frame, unit)
    }
    entering = {place: _json(row) for place, row in _placed(lineage.entering(key), unit)}
    results = [_json(row) for _, row in _placed(lineage.results(key), unit)]
    return _Version(records, entering, results[-1] if results else None)


def _placed(frame: pl.DataFrame, unit: Unit) -> list[tuple[_Place, dict[str, Any]]]:
    names = [KEY, *user_columns(frame)]
    return [
        ((unit.topics[row[TOPIC]], row[PART], row[OFF]), {name: row[name] for name in names})
        for row in frame.iter_rows(named=True)
    ]


def _contribution(place: _Place, old: _Version, new: _Version) -> Contribution:
    topic, partition, offset = place
    key, value = (new.records.get(place) or old.records[place])[:2]
    both = place in old.records and place in new.records
    fields = sample((b"", old.entering.get(place), new.entering.get(place))).fields if both else ()
    counts = "both" if both else "new" if place in new.records else "old"
    return Contribution(
        topic=topic, key=key, partition=partition, offset=offset, value=value, counts=counts, fields=fields
    )


def _json(row: dict[str, Any], key: tuple[str, ...] = ()) -> bytes:
    """The values of a row; those of its key are told by the key, if it has one."""
    aside = {KEY, *(key if row[KEY] is not None else ())}
    values = {name: value for name, value in row.items() if name not in aside}
    return json.dumps(values, ensure_ascii=False, default=str).encode()


def _text(key: bytes) -> str:
    return key.decode(errors="backslashreplace")
