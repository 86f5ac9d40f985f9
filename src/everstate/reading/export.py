"""A topic into a file, without ever holding more than some of its records (or, for the table, its latest ones)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from everstate.errors import ConfigurationError
from everstate.kernels.records.typed_rows import METADATA
from everstate.reading import spans
from everstate.reading.bad_records import BadRecords
from everstate.reading.files import require_writable, writing
from everstate.reading.inference import Inference
from everstate.schema.types import of_polars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import polars as pl

    from everstate.log.protocol import Log
    from everstate.reading.forms import Form
    from everstate.reading.spans import Bound

_CURE: Final = "Leave them out with --skip-bad, or give the columns with --service FILE."


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to export.

    Attributes:
        topic: The topic.
        file: Where to; its extension is the format.
        latest: Only the last record of each key, without deleted ones.
        start: The first time or offset.
        end: The time or offset before which it ends.
        metadata: With the columns of `METADATA`.
        skip_bad: Records that cannot be decoded are left out and counted.
    """

    topic: str
    file: Path
    latest: bool = False
    start: Bound = None
    end: Bound = None
    metadata: bool = False
    skip_bad: bool = False


@dataclass(frozen=True)
class Exported:
    """What became of it.

    Attributes:
        rows: How many rows the file has.
        size_bytes: How large it is.
        bad: What was left out.
    """

    rows: int
    size_bytes: int
    bad: BadRecords


def export(
    log: Log, request: Request, form: Form | None, progress: Callable[[str, int, int], None] = lambda *_: None
) -> Exported:
    """Write a topic to a file.

    Args:
        log: Where the topic is.
        request: What to write.
        form: How its records are read; None infers it from all of them first.
        progress: Called with what is being done, how much of it is done, and how much there is.

    Raises:
        ConfigurationError: If the file cannot be written.
        DecodeError: If records cannot be decoded, and are not to be left out; no file is made.
    """
    require_writable(request.file)
    if request.latest and request.end is not None:
        raise ConfigurationError(
            "the latest records are the current ones, so they cannot end at a time or an offset",
            hint="Leave --latest or --to out.",
        )
    source = _Source(log, request, progress)
    if form is None:
        inference = Inference()
        for frame in source.frames("reading"):
            inference.add(frame)
        form = inference.form()
    types = {**form.types, **({name: of_polars(kind) for name, kind in METADATA.items()} if request.metadata else {})}
    letters = BadRecords(request.topic, skip=request.skip_bad, hint=_CURE)
    count = 0
    with writing(request.file, types) as writer:
        for frame in source.frames("writing"):
            rows = form.rows(frame)
            letters.add(rows.bad)
            letters.check()
            writer.write(rows.frame.select(list(types)))
            count += rows.frame.height
    return Exported(count, request.file.stat().st_size, letters)


class _Source:
    """The records, as often as they are needed: those that were there at the first look."""

    def __init__(self, log: Log, request: Request, progress: Callable[[str, int, int], None]) -> None:
        self._log, self._progress = log, progress
        self._part = spans.span(log, request.topic, request.start, request.end)
        self._table = self._part.within(log.latest(request.topic)) if request.latest else None

    def frames(self, doing: str) -> Iterator[pl.DataFrame]:
        """All of them, some at a time."""
        done, total = 0, self._part.offsets if self._table is None else self._table.height
        for frame in self._pieces():
            yield frame
            # On a compacted topic there are fewer records than offsets, and the last of them is the end.
            done += frame.height
            self._progress(doing, min(done, total), total)
        self._progress(doing, total, total)

    def _pieces(self) -> Iterator[pl.DataFrame]:
        if self._table is None:
            yield from spans.frames(self._log, self._part)
        else:
            yield from self._table.iter_slices(spans.RECORDS_AT_A_TIME)
