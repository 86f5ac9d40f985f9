"""What a plan consists of: one action for each output, in topological order.

The list says all that the one who carries it out needs to know; `text.py` and `document.py` show the same list.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from everstate.plan.facts import Options
from everstate.plan.words import counted, listed

if TYPE_CHECKING:
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

    @property
    @abstractmethod
    def follows(self) -> str:
        """What happens, in one sentence."""

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

    @property
    def follows(self) -> str:
        """What happens, in one sentence."""
        taken = f", and consumes what changes in {listed(self.consumes)}" if self.consumes else ""
        return f"Generation {self.active} carries on unchanged{taken}."


@dataclass(frozen=True, kw_only=True)
class Begin(Action):
    """The first deployment of an output.

    Attributes:
        keys: Keys that its topic has already; they are treated as those of an earlier generation.
        estimate: How long it takes to catch up.
        resumes: Number of a generation with this fingerprint that is half built or prepared.
    """

    kind: ClassVar[str] = "begin"
    publishes: ClassVar[bool] = True
    keys: int = 0
    estimate: Estimate = Estimate(0)
    resumes: int | None = None

    @property
    def follows(self) -> str:
        """What happens, in one sentence."""
        if not self.keys:
            return "The first generation processes all that its sources have and publishes as it goes."
        return (
            f"The topic already has {counted(self.keys, 'key')}: the first generation is calculated without "
            "publishing; then what differs is published, with a tombstone for each key that it does not produce."
        )


@dataclass(frozen=True, kw_only=True)
class Continue(Action):
    """The state is carried over; only new input meets the new logic."""

    kind: ClassVar[str] = "continue"

    @property
    def follows(self) -> str:
        """What happens, in one sentence."""
        return f"The state of generation {self.active} is carried over and results so far stand, as on_change says."


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

    @property
    def follows(self) -> str:
        """What happens, in one sentence."""
        if self.again:
            return "A new generation processes all that its sources have and publishes the stream from the beginning."
        beside = f" alongside generation {self.active}" if self.active is not None else ""
        if self.stream:
            return (
                f"State is rebuilt{beside} without publishing; what the stream has published stands, and the new "
                "version picks up where the old one stops."
            )
        return (
            f"A new generation is built{beside}; then what differs is published, with a tombstone for each key that it "
            "does not produce."
        )


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

    @property
    def follows(self) -> str:
        """What happens, in one sentence."""
        state = f"The state of generation {self.active}"
        published = "then what differs is published"
        if self.stream:
            published = "what the stream has published stands, and the new version picks up where the old one stops"
        if not self.checked:
            return f"{state} stays as it is; {published}, without a replay."
        return (
            f"{state} is converted, and a sample of its keys is recalculated to check it; {published}. If the sample "
            "disagrees, the whole output is recalculated."
        )


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

    @property
    def follows(self) -> str:
        """What happens, in one sentence."""
        which = "takes over again" if self.asked else "is this version"
        return (
            f"Generation {self.generation} {which}: it catches up from where it stopped, without a replay, and "
            "publishes what differs."
        )


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

    @property
    def follows(self) -> str:
        """What happens, in one sentence."""
        if self.active is None:
            return "The generation that is being built is discarded."
        if self.keep_topic or not self.keys:
            return f"Generation {self.active} is retired and the topic stays as it is."
        readers = f", which {listed(self.readers)} will see" if self.readers else ""
        keys = counted(self.keys, "key")
        return f"Generation {self.active} is retired, with a tombstone for each of its {keys}{readers}."


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
