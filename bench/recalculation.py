"""A change of a service: recalculation and cutover, beside deleting the checkpoint and replaying with Spark's own way.

Three edits of one service change no key, one key in a hundred, and one in ten. Both sides are timed as a deployer waits
for them, with the start of Spark: until the new version is active, and until the replay has written its last batch.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench import inputs, services
from bench.processes import fresh
from bench.report import Figure
from bench.throughput import SETTINGS
from everstate.engine.commands.runner import Runner
from everstate.generations.registry import Registry
from everstate.log.opening import open_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.scale import Scale

#: Of so many keys, one is changed; 0 for none.
_ONE_IN: Final = (0, 100, 10)
#: A recalculation must not take longer than the replay.
_SLOWEST: Final = 1.0


def measure(scale: Scale, say: Callable[[str], None]) -> tuple[dict[str, Any], list[Figure]]:
    """Deploy the service and its edits, then replay."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        return _compared(scale, Path(folder), say)


def _compared(scale: Scale, folder: Path, say: Callable[[str], None]) -> tuple[dict[str, Any], list[Figure]]:
    url, keys, count = str(folder / "log"), scale.keys[1], scale.recalculated_batches
    for number, lines in enumerate(inputs.batches(count, scale.batch_records, keys)):
        inputs.append(url, lines, batch=number)
        inputs.write_files(folder / "files", lines, batch=number)
    records = count * scale.batch_records
    say(f"recalculation, {records:,} records, {keys:,} keys: the first version")
    arguments: dict[str, Any] = {"url": url, "state": folder / "state"}
    fresh("recalculation:deploy", edit=-1, **arguments)
    raw: dict[str, Any] = {"records": records}
    figures: list[Figure] = []
    for edit in _ONE_IN:
        share = f"{1 / edit:.0%}" if edit else "0 %"
        say(f"recalculation: an edit that changes {share} of the keys")
        raw[share] = found = fresh("recalculation:deploy", edit=edit, **arguments)
        if found["written"] != found["differs"]:
            raise RuntimeError(f"{found['written']} records were written where {found['differs']} keys differ")
        figures += [
            Figure(f"edit that changes {share}: until it is active", found["seconds"], "s"),
            Figure(f"edit that changes {share}: records written", found["written"], "records"),
            Figure(f"edit that changes {share}: the cutover itself", found["cutover"], "s"),
        ]
    say("recalculation: the checkpoint deleted and replayed with groupBy().agg()")
    began = time.monotonic()
    fresh("native:aggregation", folder=folder / "files", work=folder / "native", settings=SETTINGS)
    raw["replay"] = replay = time.monotonic() - began
    figures.append(Figure("replay with groupBy().agg(), all keys written again", replay, "s"))
    slowest = max(raw[share]["seconds"] for share in raw if "%" in share)
    figures.append(Figure("slowest edit to that replay", slowest / replay, "x", at_most=_SLOWEST))
    return raw, figures


def deploy(url: str, state: str, edit: int) -> dict[str, Any]:
    """Deploy a version, and say what it took and wrote."""
    log = open_log(url)
    topic = services.TOTALS
    before = _table(url) if log.has_topic(topic) else {}
    written = sum(log.describe(topic).end.values()) if before else 0
    began = time.time()
    settings = {**SETTINGS, "approval": "approve", "retain_generations": 0}
    Runner(services.edited(url, edit), state_dir=Path(state), show=False, **settings).run(once=True)
    after = _table(url)
    events = [event for event in Registry(log, topic).read(topic).audit if event.what in {"publishing", "active"}]
    return {
        "seconds": events[-1].at_ms / 1_000 - began,
        "written": sum(log.describe(topic).end.values()) - written,
        "differs": sum(before.get(key) != value for key, value in after.items()) + len(before.keys() - after.keys()),
        "cutover": (events[-1].at_ms - events[-2].at_ms) / 1_000 if len(events) > 1 else 0.0,
    }


def _table(url: str) -> dict[bytes, bytes]:
    return dict(open_log(url).latest(services.TOTALS).select("key", "value").iter_rows())
