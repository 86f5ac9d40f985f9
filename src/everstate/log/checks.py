"""What every log refuses, in the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everstate.errors import ConfigurationError, LogError, OffsetOutOfRangeError

if TYPE_CHECKING:
    import polars as pl

    from everstate.log.descriptions import TopicConfig

MAX_PARTITIONS: Final = 10_000


def check_config(name: str, config: TopicConfig) -> None:
    """Refuse a configuration that no topic can have.

    Raises:
        ConfigurationError: With the setting and what it may be.
    """
    if not 1 <= config.partitions <= MAX_PARTITIONS:
        raise ConfigurationError(
            f"topic {name!r} cannot have {config.partitions} partitions", hint=f"Use 1 to {MAX_PARTITIONS}."
        )
    for setting in ("retention_ms", "delete_retention_ms"):
        value = getattr(config, setting)
        if value is not None and value < 0:
            raise ConfigurationError(
                f"topic {name!r} cannot have {setting}={value}", hint="Use 0 or more milliseconds."
            )


def check_keys(name: str, config: TopicConfig, content: pl.DataFrame) -> None:
    """Refuse records without a key on a topic that keeps the last record of each key.

    Raises:
        LogError: If there are any.
    """
    lacking = content.get_column("key").null_count() if config.compact else 0
    if lacking:
        raise LogError(
            f"topic {name!r} is compacted, so each record needs a key; {lacking} have none",
            hint="Give the records keys (everstate produce --key-field F), or create the topic without --compact.",
        )


def unknown_partition(name: str, config: TopicConfig, partition: int) -> LogError:
    """The error for a partition that a topic does not have."""
    return LogError(
        f"topic {name!r} has no partition {partition}", hint=f"It has {config.partitions}, numbered from 0."
    )


def check_range(name: str, partition: int, bounds: tuple[int, int], start: int, end: int | None = None) -> None:
    """Refuse offsets that a partition does not have.

    Args:
        name: The topic.
        partition: Which partition.
        bounds: Its first offset, and the next one to be written.
        start: The first offset that is wanted.
        end: One after the last, if that is known.

    Raises:
        OffsetOutOfRangeError: If records from `start` on have been deleted, or do not exist yet.
    """
    begin, limit = bounds
    place = f"topic {name!r}, partition {partition}"
    if start < begin:
        raise OffsetOutOfRangeError(
            f"offset {start} of {place} is gone: retention has deleted everything before offset {begin}",
            hint=f"Read from offset {begin} on, or keep records longer: create the topic with a longer retention.",
        )
    highest = start if end is None else max(start, end)
    if highest > limit:
        raise OffsetOutOfRangeError(
            f"offset {highest} of {place} is not there yet: the next record will get offset {limit}",
            hint="The reader's position comes from another log, or the topic was deleted and created again.",
        )


def check_split_size(max_records: int) -> None:
    """Refuse splits that could hold nothing.

    Raises:
        ConfigurationError: If that is asked for.
    """
    if max_records < 1:
        raise ConfigurationError(f"a split cannot have at most {max_records} records", hint="Use 1 or more.")
