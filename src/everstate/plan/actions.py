"""What a plan consists of: one action for each output, in topological order.

The list says all that the one who carries it out needs to know; `text.py` and `document.py` show the same list.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, Final

from everstate.errors import EverstateError, HistoryTruncatedError, LogError, TopicNotFoundError
from everstate.plan.facts import Options
from everstate.plan.steps import (
    Build,
    CarryOver,
    CatchUp,
    Convert,
    Discard,
    Host,
    Open,
    Phase,
    Publish,
    Step,
    TakeOver,
    Withdraw,
    sentences,
)

if TYPE_CHECKING:
    from everstate.location import Location
    from everstate.plan.differences import Difference
    from everstate.plan.facts import Offsets
    from everstate.plan.preview import Preview

#: Fewer records take a few seconds, whatever is done to them; how fast they were read says nothing about more.
FEW: Final = 10_000


@dataclass(frozen=True)
class Reading:
    """What an output reads of a source topic to carry an action out.

    Attributes:
        topic: The topic.
        records: How many records are read again.
        archived: How many of them come from the service's archive.
        start: The first offset that could be read when the plan was made, by partition.
        end: The offset after the last one then.
        truncated: What of its past is gone; the user has accepted that, or nothing is on the output's topic yet.
    """

    topic: str
    records: int = 0
    archived: int = 0
    start: Offsets = field(default_factory=dict)
    end: Offsets = field(default_factory=dict)
    truncated: str = ""


@dataclass(frozen=True)
class Estimate:
    """How long an action takes.

    Attributes:
        records: To be processed.
        rate: Records a second, as an earlier run of this output was measured on this machine; None if none was.
    """

    records: int
    rate: float | None = None

    @property
    def is_short(self) -> bool:
        """Whether it takes a few seconds in any case."""
        return self.records < FEW

    @property
    def seconds(self) -> float | None:
        """The time; None if it cannot be told."""
        return None if self.rate is None else self.records / self.rate


@dataclass(frozen=True, kw_only=True)
class Action(ABC):
    """What happens to one output.

    Attributes:
        output: The output's topic.
        fingerprint: Of the version that is deployed; of the active one where the output is retired.
        active: Number of the generation that is active now; None if there is none.
        differences: Why.
        sources: What is read, with the state of the topics when the plan was made.
        ordered: Names of the steps whose results depend on the order of arrival, which is kept for them.
        discards: Number of a generation that is being built for another version, and is discarded.
        warnings: What whoever deploys it should know.
    """

    #: The word for it, in texts and documents.
    kind: ClassVar[str] = ""
    #: It ends in a cutover, which publishes differences.
    publishes: ClassVar[bool] = False
    output: str
    fingerprint: str
    active: int | None = None
    differences: tuple[Difference, ...] = ()
    sources: tuple[Reading, ...] = ()
    ordered: tuple[str, ...] = ()
    discards: int | None = None
    warnings: tuple[str, ...] = ()

    @abstractmethod
    def _steps(self) -> tuple[Step, ...]:
        """What is done when nothing is built for another version."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """What is done, in this order."""
        given_up = () if self.discards is None else (Discard(self.output, self.discards),)
        return (*given_up, *self._steps())

    @property
    def follows(self) -> str:
        """What happens, in a sentence or two; what is discarded is a circumstance, unless nothing else happens."""
        steps = self.steps
        return sentences([step for step in steps if not isinstance(step, Discard)] or steps)

    @property
    def hosts(self) -> bool:
        """Whether what publishes is there already, or needs nothing to be compared with."""
        return any(step.phase is Phase.HOST for step in self.steps)

    @property
    def records(self) -> int:
        """Records that are read again."""
        return sum(reading.records for reading in self.sources)


@dataclass(frozen=True, kw_only=True)
class Keep(Action):
    """The active generation goes on.

    Attributes:
        consumes: Outputs of the same service whose differences it takes in, as it takes in any other record.
    """

    kind: ClassVar[str] = "nothing"
    consumes: tuple[str, ...] = ()

    def _steps(self) -> tuple[Step, ...]:
        return (Host(self.output, self.active, self.consumes),)


@dataclass(frozen=True, kw_only=True)
class Begin(Action):
    """The first deployment of an output.

    Attributes:
        keys: Keys that its topic has already; they are treated as those of an earlier generation.
        estimate: How long it takes to catch up.
        resumes: Number of a generation with this fingerprint that is half built or prepared.
        closed: It is calculated without publishing first, since something is or was on its topic.
        stream: The output is a stream, so what it has published stands.
    """

    kind: ClassVar[str] = "begin"
    publishes: ClassVar[bool] = True
    keys: int = 0
    estimate: Estimate = Estimate(0)
    resumes: int | None = None
    closed: bool = False
    stream: bool = False

    def _steps(self) -> tuple[Step, ...]:
        if not self.closed:
            return (Open(self.output),)
        build = Build(self.output, resumes=self.resumes, stream=self.stream, keys=self.keys)
        return (build, _cutover(self.output, stream=self.stream, whole=True))


@dataclass(frozen=True, kw_only=True)
class Continue(Action):
    """The state is carried over; only new input meets the new logic."""

    kind: ClassVar[str] = "continue"

    def _steps(self) -> tuple[Step, ...]:
        return (CarryOver(self.output, self.active),)


@dataclass(frozen=True, kw_only=True)
class Recalculate(Action):
    """A new generation is built from the history of its sources.

    Attributes:
        estimate: How long that takes.
        stream: The output is a stream, so what it has published stands.
        asked: It was requested, whether or not something differs.
        instead: Why the state is not carried over or migrated although `on_change` says so; else empty.
        resumes: Number of a generation with this fingerprint that is half built or prepared.
        again: The output is a stream whose topic is gone with what it had published.
    """

    kind: ClassVar[str] = "recalculate"
    publishes: ClassVar[bool] = True
    estimate: Estimate
    stream: bool = False
    asked: bool = False
    instead: str = ""
    resumes: int | None = None
    again: bool = False

    def _steps(self) -> tuple[Step, ...]:
        build = Build(self.output, self.active, self.resumes, self.stream, again=self.again)
        cutover = (
            TakeOver(self.output, again=True) if self.again else _cutover(self.output, stream=self.stream, whole=True)
        )
        return (build, cutover)


@dataclass(frozen=True, kw_only=True)
class Migrate(Action):
    """Stored state is converted, and a sample of keys is recalculated to check it.

    Attributes:
        estimate: How long a recalculation takes, should the sample not agree.
        checked: State is converted; else it stays as it is, and only results are derived from it again.
        stream: The output is a stream, so what it has published stands.
        resumes: Number of a generation with this fingerprint that is half built or prepared.
    """

    kind: ClassVar[str] = "migrate"
    publishes: ClassVar[bool] = True
    estimate: Estimate
    checked: bool = True
    stream: bool = False
    resumes: int | None = None

    def _steps(self) -> tuple[Step, ...]:
        convert = Convert(self.output, self.active, self.resumes, self.checked)
        return (convert, _cutover(self.output, stream=self.stream))


@dataclass(frozen=True, kw_only=True)
class Restore(Action):
    """A retained generation has this fingerprint: it catches up and takes over again.

    Attributes:
        generation: Its number.
        estimate: How long it takes to catch up.
        asked: It was requested, whatever version the service's file holds.
    """

    kind: ClassVar[str] = "restore"
    publishes: ClassVar[bool] = True
    generation: int
    estimate: Estimate
    asked: bool = False

    def _steps(self) -> tuple[Step, ...]:
        return (CatchUp(self.output, self.generation, self.asked), Publish(self.output))


@dataclass(frozen=True, kw_only=True)
class Retire(Action):
    """The output is no longer declared.

    Attributes:
        keys: Live keys on its topic.
        keep_topic: They stay as they are.
        readers: Outputs of the service that still read the topic.
    """

    kind: ClassVar[str] = "retire"
    publishes: ClassVar[bool] = True
    keys: int = 0
    keep_topic: bool = False
    readers: tuple[str, ...] = ()

    def _steps(self) -> tuple[Step, ...]:
        if self.active is None:
            return ()
        return (Withdraw(self.output, self.active, self.keys, self.keep_topic, self.readers),)


@dataclass(frozen=True, kw_only=True)
class Refuse(Action):
    """It cannot be done; the active generation, if there is one, stays in place.

    Attributes:
        problem: What is wrong.
        hint: What to do, with the command.
        truncated: The sources can be read, but have lost some of the history that is needed.
        missing: A source topic that does not exist; empty if that is not the reason.
    """

    kind: ClassVar[str] = "refuse"
    problem: str
    hint: str
    truncated: bool = False
    missing: str = ""

    def error(self, location: Location | None = None) -> EverstateError:
        """What is raised where someone wants to carry it out anyway.

        Args:
            location: The user's line that declares the output or the source.

        Example:
            >>> refused = Refuse(output="totals", fingerprint="f", problem="it has ...", hint="", truncated=True)
            >>> type(refused.error()).__name__
            'HistoryTruncatedError'
        """
        if self.missing:
            return TopicNotFoundError(self.missing, location=location)
        kind = HistoryTruncatedError if self.truncated else LogError
        return kind(f"output {self.output!r}: {self.problem}", location=location, hint=self.hint)

    def _steps(self) -> tuple[Step, ...]:
        return ()

    @property
    def follows(self) -> str:
        """What happens, in one sentence."""
        stays = f"; generation {self.active} stays in place" if self.active is not None else ""
        return f"Nothing is started{stays}."


@dataclass(frozen=True)
class Plan:
    """What happens if a service is started now.

    Attributes:
        service: Its name.
        actions: One for each output; one that another reads comes first, retired ones come last.
        options: What was asked for; the same must be asked for again to carry it out.
        previews: What a recalculation in the shadow has found, by output.
        startup: Seconds that Spark took to start on this machine the last time; None if that is not known.
    """

    service: str
    actions: tuple[Action, ...]
    options: Options = field(default_factory=Options)
    previews: tuple[Preview, ...] = ()
    startup: float | None = None

    @property
    def refusals(self) -> tuple[Refuse, ...]:
        """What stands in the way of starting the service."""
        return tuple(action for action in self.actions if isinstance(action, Refuse))

    @property
    def changes(self) -> tuple[Action, ...]:
        """All actions that do something."""
        return tuple(action for action in self.actions if not isinstance(action, Keep))

    @property
    def levels(self) -> dict[str, int]:
        """By output: those that it reads have a lower level, those that are no longer declared the highest one."""
        found: dict[str, int] = {}
        for action in self.actions:
            feeders = [found[reading.topic] for reading in action.sources if reading.topic in found]
            found[action.output] = 1 + max(feeders, default=-1)
        last = 1 + max((found[action.output] for action in self.actions if not isinstance(action, Retire)), default=-1)
        return {**found, **{action.output: last for action in self.actions if isinstance(action, Retire)}}

    @property
    def steps(self) -> tuple[Step, ...]:
        """All that is done, in the order of a process that may publish from the start.

        One that replaces a live process takes the steps of hosting when it has taken its place.
        """
        levels = self.levels
        order = sorted(self.actions, key=lambda action: levels[action.output])
        done = [step for action in self.actions for step in action.steps if action.hosts]
        for _, level in groupby((a for a in order if not a.hosts), key=lambda action: levels[action.output]):
            steps = [step for action in level for step in action.steps]
            done += [step for phase in (Phase.PREPARE, Phase.REPLACE) for step in steps if step.phase is phase]
        return tuple(done)

    def action(self, output: str) -> Action:
        """The action of an output.

        Raises:
            KeyError: If the plan has no such output.
        """
        for action in self.actions:
            if action.output == output:
                return action
        raise KeyError(output)

    def preview(self, output: str) -> Preview | None:
        """What the shadow has found for an output."""
        return next((preview for preview in self.previews if preview.output == output), None)


def _cutover(output: str, *, stream: bool, whole: bool = False) -> Step:
    return TakeOver(output) if stream else Publish(output, whole)
