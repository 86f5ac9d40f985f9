"""What a recalculation in the shadow has found: exact counts, and samples to look at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What a cutover would write, in keys.

    Attributes:
        new: Keys that the topic does not have.
        changed: Keys whose value changes.
        stale: Keys that the new version does not produce, and that get a tombstone.
        unchanged: Keys for which nothing is written.
        newly_dead: Records that the active version accepted and the new one dead-letters.
    """

    new: int = 0
    changed: int = 0
    stale: int = 0
    unchanged: int = 0
    newly_dead: int = 0

    @property
    def live(self) -> int:
        """Keys that the topic has now."""
        return self.changed + self.stale + self.unchanged

    @property
    def written(self) -> int:
        """Records that the cutover writes."""
        return self.new + self.changed + self.stale


@dataclass(frozen=True)
class FieldChange:
    """A field of a value before and after, as text; None where the value does not have it."""

    name: str
    old: str | None = None
    new: str | None = None


@dataclass(frozen=True)
class Sample:
    """A key with its value before and after.

    Attributes:
        key: The key.
        old: Its value on the topic, as text; None where it has none.
        new: Its value in the new version.
        fields: Where both values have fields, those that differ.
        equal: How many fields do not.
    """

    key: str
    old: str | None = None
    new: str | None = None
    fields: tuple[FieldChange, ...] = ()
    equal: int = 0


@dataclass(frozen=True)
class DeadRecord:
    """A record that the active version accepted and the new one dead-letters."""

    topic: str
    partition: int
    offset: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """A record of a source that a key's value is made of.

    Attributes:
        topic: The source topic.
        key: The record's key; None if it has none.
        partition: Where it lies.
        offset: Its place there.
        value: Its value, as text.
        counts: In which version it counts: "both", "old" (no longer) or "new" (it did not before).
        fields: Where it counts in both and the steps before the last one make something else of it now, the fields of
            that which differ.
    """

    topic: str
    key: str | None
    partition: int
    offset: int
    value: str
    counts: str
    fields: tuple[FieldChange, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """One key under both versions.

    Attributes:
        key: The key.
        change: "new", "changed", "tombstone", "unchanged", or "absent" if neither version has it.
        old: Its value on the topic, as text; None where it has none.
        new: Its value in the new version.
        fields: All fields of both values, those that are equal too.
        records: How many records of the sources it is made of, in either version.
        contributions: Some of them, first those that count in one version only; with `--all`, every one.
        unknown: Why the records cannot be told; empty if they can.
    """

    key: str
    change: str
    old: str | None = None
    new: str | None = None
    fields: tuple[FieldChange, ...] = ()
    records: int = 0
    contributions: tuple[Contribution, ...] = ()
    unknown: str = ""


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What the new version of an output would change.

    Attributes:
        output: The output's topic.
        generation: Number of the generation that was prepared, which the next run can cut over to.
        kept: It was; else the next run recalculates the output again.
        counts: Exact.
        new: Some of the new keys.
        changed: Some of the changed ones.
        stale: Some of the stale ones.
        dead: Some of the records that are newly dead.
        upstream: Outputs of the same service that it reads and that change as well: the counts leave out what these
            will publish, since nothing of it is on their topics yet.
        explained: The key that was asked for with `--key`; None if none was.
    """

    output: str
    generation: int | None = None
    kept: bool = True
    counts: Counts
    new: tuple[Sample, ...] = ()
    changed: tuple[Sample, ...] = ()
    stale: tuple[Sample, ...] = ()
    dead: tuple[DeadRecord, ...] = ()
    upstream: tuple[str, ...] = ()
    explained: Explanation | None = None
