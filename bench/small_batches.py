"""Small micro-batches: on a small and on a large state, and with the page policy and with pages of one size."""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench import inputs, services
from bench.commits import Commits
from bench.processes import fresh
from bench.report import Figure
from everstate.engine import execution
from everstate.engine.commands.runner import Runner
from everstate.engine.jvm.session import start_session, stop_session
from everstate.engine.query.job import Job
from everstate.generations.deploy.settings import Settings
from everstate.kernels.pages.addressing import PagePolicy
from everstate.log.opening import open_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from bench.scale import Scale

_MEMORY: Final = "4g"
#: Batches at the beginning of a run that do not count.
_WARM_UP: Final = 3
#: Every run is repeated, in turn with the others, so that none has the machine's better minutes.
_TURNS: Final = 3
_LOADED_AT_ONCE: Final = 1_000_000
_POLICY: Final = "policy"


def measure(scale: Scale, say: Callable[[str], None]) -> tuple[dict[str, Any], list[Figure]]:
    """Take both measurements."""
    few, many = scale.small_keys
    records, batches = scale.small_records, max(1, scale.small_batches // _TURNS)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        say(f"batches of {records:,} records on {few:,} and {many:,} keys")
        sizes = fresh("small_batches:state_sizes", folder=folder, keys=[few, many], records=records, batches=batches)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        say(f"batches of {records:,} records on {few:,} keys with several page sizes")
        pages = fresh(
            "small_batches:page_sizes",
            folder=folder,
            keys=few,
            sizes=list(scale.page_sizes),
            records=records,
            batches=batches,
        )
    middles = {name: statistics.median(taken) for name, taken in sizes.items()}
    medians = {name: statistics.median(taken) for name, taken in pages.items()}
    best = min((name for name in medians if name != _POLICY), key=lambda name: medians[name])
    figures = [
        *(Figure(f"{records:,} records on {keys:,} keys", middles[str(keys)], "s") for keys in (few, many)),
        Figure(f"{many:,} keys to {few:,} keys", middles[str(many)] / middles[str(few)], "x", at_most=2.0),
        Figure(
            f"page policy to the best fixed page size, {few:,} keys",
            medians[_POLICY] / medians[best],
            "x",
            at_most=1.2,
            note=f"the best is {int(best):,} bytes",
        ),
    ]
    return {"by_keys": sizes, "by_page_size": pages}, figures


def state_sizes(folder: str, keys: list[int], records: int, batches: int) -> dict[str, list[float]]:
    """Seconds of small batches by the number of keys that the state has."""
    cases = {str(count): Case(Path(folder) / str(count), count) for count in keys}
    return _in_turn(cases, records, batches)


def page_sizes(folder: str, keys: int, sizes: list[int], records: int, batches: int) -> dict[str, list[float]]:
    """Seconds of small batches by the size of pages."""
    fixed = {str(size): PagePolicy(largest=size, smallest=size) for size in sizes}
    policies: dict[str, PagePolicy | None] = {_POLICY: None, **fixed}
    cases = {name: Case(Path(folder) / name, keys, policy) for name, policy in policies.items()}
    return _in_turn(cases, records, batches)


class Case:
    """A service on a log of its own, with a state of so many keys.

    Args:
        folder: For log and state.
        keys: Distinct keys, each with one record to begin with.
        policy: Page policy; None for the usual one.
    """

    def __init__(self, folder: Path, keys: int, policy: PagePolicy | None = None) -> None:
        self._url = str(folder)
        self._keys = keys
        self._policy = policy
        self._random = np.random.default_rng(7)

    def load(self, session: SparkSession) -> None:
        """Build the state."""
        order = self._random.permutation(self._keys)
        for first in range(0, self._keys, _LOADED_AT_ONCE):
            part = order[first : first + _LOADED_AT_ONCE]
            inputs.append(self._url, inputs.texts(part, np.ones(len(part), np.int64)))
        self._run(session, max_records=_LOADED_AT_ONCE)

    def seconds(self, session: SparkSession, records: int, batches: int) -> list[float]:
        """Run small batches over random keys; returns the seconds of those that count."""
        for number in range(batches + _WARM_UP):
            customers = self._random.integers(0, self._keys, records)
            inputs.append(self._url, inputs.texts(customers, np.ones(records, np.int64)), batch=number)
        with Commits(self._url, services.TOTALS, services.TOTALS) as commits:
            self._run(session, max_records=records)
        end = sum(open_log(self._url).describe(inputs.TOPIC).end.values())
        if len(commits.seconds) != batches + _WARM_UP - 1:
            raise RuntimeError(f"{len(commits.seconds) + 1} batches up to offset {end} instead of {batches + _WARM_UP}")
        return commits.seconds[_WARM_UP - 1 :]

    def _run(self, session: SparkSession, max_records: int) -> None:
        _use(self._policy)
        service = services.totals(self._url)
        Runner(service, session=session, show=False, memory=_MEMORY, max_records=max_records).run(once=True)


def _in_turn(cases: dict[str, Case], records: int, batches: int) -> dict[str, list[float]]:
    session = start_session(Settings(memory=_MEMORY), "bench")
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for case in cases.values():
        case.load(session)
    next(iter(cases.values())).seconds(session, records, batches)  # Java compiles what small batches need
    for _ in range(_TURNS):
        for name, case in cases.items():
            taken[name] += case.seconds(session, records, batches)
    stop_session(session)
    return taken


def _use(policy: PagePolicy | None) -> None:
    """Let queries of this process use a page policy."""

    class PolicyJob(Job):
        @classmethod
        def of(cls, *args: Any, **options: Any) -> Job:
            return replace(Job.of(*args, **options), page_policy=policy)

    execution.Job = PolicyJob  # type: ignore[attr-defined]
