"""A generation that begins with the state of the active one, converted.

It has a clone of the active generation's checkpoint, and a first commit that says where that stands and which dead
letters it has already. From then on it is built like any other: closed, round after round. The shards convert their
state in its first batch, each once, and compare what comes out with a sample of keys that was recalculated here.
Whatever goes wrong is a `MigrationError`, upon which the output is recalculated.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.errors import EverstateError, LeaseError, MigrationError, ResourceError
from everstate.errors.exhaustion import exhausted, exhaustion
from everstate.fingerprints.prints import UnitPrint
from everstate.generations.deploy.migration_plan import Version, passage, standing_letters
from everstate.generations.deploy.outputs import prepared, require_every_deletion
from everstate.generations.generation import own_dead_letters
from everstate.generations.state.past import beginning, past_of
from everstate.generations.state.recorded import order_of
from everstate.kernels.migration.convert import place
from everstate.kernels.migration.proof import recalculated
from everstate.kernels.output import RECORD, with_headers
from everstate.log import vectors
from everstate.log.archive.reading import read_split, splits
from everstate.log.crash import crash_point
from everstate.log.descriptions import Commit
from everstate.log.planning import Timing, suited
from everstate.schema.topic_names import dead_letter_topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from everstate.generations.deploy.migration_plan import MigrationPlan
    from everstate.generations.deploy.outputs import PreparedOutput
    from everstate.generations.deploy.site import Site
    from everstate.generations.generation import Generation
    from everstate.kernels.migration.convert import Migration, Sample
    from everstate.kernels.pipeline import Piece
    from everstate.log.archive.reading import Past
    from everstate.log.descriptions import Vector
    from everstate.log.protocol import Log
    from everstate.topology.unit import Unit

#: Records that are decoded together.
_TOGETHER: Final = 200_000


def note(site: Site, output: str, generation: Generation, active: Generation) -> None:
    """Note in a generation's folder that it begins with the state of the active one."""
    site.folder(output, generation).write_migration(of=active.number)


def begin(unit: Unit, generation: Generation, site: Site) -> None:
    """Give a generation that migrates its checkpoint and its first commit, unless it has them.

    Raises:
        MigrationError: If the state of the active generation cannot be had.
    """
    log, output = site.log, unit.output.topic
    folder = site.folder(output, generation)
    if not folder.migrated or log.last_commit(unit.service, output, generation.name) is not None:
        return
    active = site.registry.read(output).active
    document = folder.read_migration()
    if active is None or document.get("of") != active.number:
        raise MigrationError("another generation has become active in the meantime")
    last = log.last_commit(unit.service, output, active.name)
    if last is not None:
        with _as_migration():
            require_every_deletion(unit, last, log)
    way = _way(unit, generation, active, site)
    crash_point("migration.before_clone")
    with _as_migration():
        found = site.executor.clone(output, active, generation)
        converted = int(site.folder(output, active).read_migration().get("batch", -1)) + 1
    if found.batch_id < converted:
        raise MigrationError("the active generation has completed no micro-batch since its own state was migrated")
    folder.write_migration(of=active.number, batch=found.batch_id)
    crash_point("migration.after_clone")
    letters = standing_letters(_letters(log, dead_letter_topic(output)), way.conversion, found.end, output)
    staged = log.stage_all(
        own_dead_letters(unit.service, output, generation), with_headers(letters, unit.service, active.name)
    )
    commit = Commit.of(
        replace(found, times=last.times) if last is not None and last.end == found.end else found,
        staged,
        site.leases.building(),
        service=unit.service,
        output=output,
        generation=generation.name,
        kind="closed",
        ordered=unit.recorded,
    )
    log.commit(commit, staged)
    crash_point("migration.after_commit")
    with _as_migration():
        prepared(unit, generation, site)  # Spark would take state that is not there for empty state


class Preparation:
    """What the shards need to convert their state; worked out in a thread, since it reads the sources' history.

    Args:
        output: The generation; `begin` has been called for it.
        site: What it acts on.
    """

    def __init__(self, output: PreparedOutput, site: Site) -> None:
        self._output = output
        self._site = site
        self._thread: threading.Thread | None = None
        self._found: Migration | None = None
        self._failure: EverstateError | None = None

    def ready(self) -> bool:
        """Whether it is known; begins to work it out when it is first asked.

        Raises:
            MigrationError: If it cannot be.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="everstate-migration", daemon=True)
            self._thread.start()
            if not self._site.executor.pause:
                self._thread.join()  # nothing else would be done meanwhile
        if self._thread.is_alive():
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def due(self) -> bool:
        """Whether the shards have not converted their state yet: they do so in the generation's first batch."""
        return _unconverted(self._output, self._site)

    def result(self) -> Migration | None:
        """What the shards need, None if they have converted their state; waits for it.

        Raises:
            MigrationError: If it cannot be known.
        """
        while not self.ready():
            if self._thread is not None:
                self._thread.join()
        return self._found

    def _work(self) -> None:
        try:
            with _as_migration():
                self._found = _migration(self._output, self._site)
        except EverstateError as error:
            self._failure = error
        except Exception as error:  # noqa: BLE001 - in a thread, nobody else would see it
            self._failure = MigrationError(f"a sample cannot be recalculated: {type(error).__name__}: {error}")


@contextmanager
def _as_migration() -> Iterator[None]:
    """Other failures on the way are reasons to recalculate, too: the state is of no use then."""
    try:
        yield
    except (MigrationError, LeaseError, ResourceError):
        raise  # a recalculation needs more space than a clone, not less
    except OSError as error:
        lacking = exhaustion(error)
        if lacking is not None:
            raise exhausted(lacking, "the state of the active version cannot be copied") from error
        raise MigrationError(str(error)) from error
    except EverstateError as error:
        raise MigrationError(str(error)) from error


def _migration(output: PreparedOutput, site: Site) -> Migration | None:
    if not _unconverted(output, site):
        return None
    document = output.folder.read_migration()
    batch = int(document["batch"])
    before = site.registry.read(output.name).numbered(int(document["of"]))
    if before is None:
        raise MigrationError("the generation whose state it began with is gone")
    way = _way(output.unit, output.generation, before, site)
    if not way.conversion.checked:
        return way.migration
    return replace(
        way.migration, sample=_sample(output, site, site.executor.batch_end(output.name, output.generation, batch))
    )


def _unconverted(output: PreparedOutput, site: Site) -> bool:
    """Whether the first batch of a generation that migrates has still to be run.

    It may be run again, after a crash, although the log has it: only the executor's own note counts.
    """
    done = site.executor.last_batch(output.name, output.generation) or 0
    return done <= int(output.folder.read_migration()["batch"])


def _way(unit: Unit, generation: Generation, before: Generation, site: Site) -> MigrationPlan:
    """From the archived code of the active generation to this version."""
    with _as_migration():
        archived = site.code(unit.output.topic, before)
    old = Version(archived, UnitPrint.from_json(before.description))
    new = Version(unit, UnitPrint.from_json(generation.description))
    return passage(old, new, mark=generation.name)


def _letters(log: Log, topic: str) -> pl.DataFrame:
    found = log.latest(topic) if log.has_topic(topic) else pl.DataFrame(schema=RECORD)
    return found.select("key", "value", "ts")


def _sample(output: PreparedOutput, site: Site, end: Vector) -> Sample:
    """Some keys as a recalculation up to here gives them."""
    log, unit = site.log, output.unit
    described = UnitPrint.from_json(output.generation.description)
    initial, missing = beginning(log, unit.service, site.home, described, unit.topics)
    generation = replace(output.generation, initial=initial, missing=missing)
    past = past_of(replace(output, generation=generation), log, initial)
    recorded = log.order(unit.service, output.name, unit.topics) if unit.recorded else None
    order = None if recorded is None else suited(recorded, Timing.of(unit))

    def batches() -> Iterator[list[Piece]]:
        position = initial
        for stop in _stops(order or (), initial, end):
            pieces = _pieces(log, past, position, stop)
            if order:
                yield list(pieces)
            else:
                yield from ([piece] for piece in pieces)
            position = stop

    sample = recalculated(unit, batches, order_of(order, unit.topics))
    return replace(sample, unknown=_superseded(log, unit, past, end, sample.limit))


def _superseded(log: Log, unit: Unit, past: Past, end: Vector, limit: int) -> frozenset[bytes]:
    """Keys of the sample with later records, whose earlier ones a compacted topic may have dropped by now.

    Only where the output has its sources' key. Whom a dropped record belonged to otherwise, nobody can tell: the sample
    does not agree then, and the output is recalculated.
    """
    compacted = [topic for topic in unit.topics if log.describe(topic).config.compact]
    if unit.depth > 1 or not compacted:
        return frozenset()
    found: set[bytes] = set()
    ends = {topic: now for topic, now in log.end_offsets(compacted).items() if topic not in past.whole}
    for _, _, records in _pieces(log, past, end, ends):
        keys = records["key"].drop_nulls().unique()
        found.update(keys.filter(pl.Series(place(keys) < limit, dtype=pl.Boolean)))
    return frozenset(found)


def _stops(order: Sequence[Vector], start: Vector, end: Vector) -> Iterator[Vector]:
    """Where batches end: on vectors at which live ones ended, if their order matters, with many records in between."""
    for vector in order:
        if vectors.reached(end, vector) and vectors.lag(start, vector) >= _TOGETHER:
            yield vector
            start = vector
    yield end


def _pieces(log: Log, past: Past, start: Vector, end: Vector) -> Iterator[Piece]:
    for topic, partition, until in vectors.positions(end):
        first = vectors.offset_at(start, topic, partition)
        if first < until:
            for split in splits(log, past, topic, partition, first, until, max_records=_TOGETHER):
                records = read_split(log, split)
                if records.height:
                    yield topic, partition, records
