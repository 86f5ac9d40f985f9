"""What is done to an output, step by step. The plan prints these steps, and the rollout walks them: nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from everstate.plan.words import counted, listed

if TYPE_CHECKING:
    from collections.abc import Sequence


class Phase(Enum):
    """When a step is taken."""

    #: When the process may publish.
    HOST = auto()
    #: While the active generation goes on.
    PREPARE = auto()
    #: When all outputs of the same level are prepared, and nothing stands in the way.
    REPLACE = auto()


@dataclass(frozen=True)
class Step(ABC):
    """One thing that is done to an output.

    Attributes:
        output: The output's topic.
    """

    #: The word for it, in documents.
    kind: ClassVar[str] = ""
    phase: ClassVar[Phase]
    output: str

    @property
    @abstractmethod
    def clause(self) -> str:
        """What it does, as a part of a sentence."""

    @property
    def otherwise(self) -> str:
        """What happens if it fails and the deployment goes on all the same, as a sentence; empty if it does not."""
        return ""


@dataclass(frozen=True)
class Host(Step):
    """The active generation publishes, with the code of this version, which means the same.

    Attributes:
        generation: Its number.
        consumes: Outputs of the same service whose differences it takes in.
    """

    kind: ClassVar[str] = "host"
    phase: ClassVar[Phase] = Phase.HOST
    generation: int | None
    consumes: tuple[str, ...] = ()

    @property
    def clause(self) -> str:
        """What it does, as a part of a sentence."""
        taken = f", and consumes what changes in {listed(self.consumes)}" if self.consumes else ""
        return f"generation {self.generation} carries on unchanged{taken}"


@dataclass(frozen=True)
class Open(Step):
    """The first generation of an output on whose topic nothing ever was: it publishes from its first batch on."""

    kind: ClassVar[str] = "open"
    phase: ClassVar[Phase] = Phase.HOST

    @property
    def clause(self) -> str:
        """What it does, as a part of a sentence."""
        return "the first generation processes all that its sources have and publishes as it goes"


@dataclass(frozen=True)
class Discard(Step):
    """A generation that is being built for a different version is given up.

    Attributes:
        generation: Its number.
    """

    kind: ClassVar[str] = "discard"
    phase: ClassVar[Phase] = Phase.PREPARE
    generation: int

    @property
    def clause(self) -> str:
        """What it does, as a part of a sentence."""
        return f"discards generation {self.generation}, which is being built"


@dataclass(frozen=True)
class Build(Step):
    """A generation is calculated from the history of its sources, without publishing.

    Attributes:
        beside: Number of the generation that publishes meanwhile; None if none does.
        resumes: Number of the generation, if it is half built or prepared already.
        stream: Only state is built.
        keys: Keys that are on the topic although no generation is active.
        again: What the active generation has read counts for nothing, since what it had published is gone.
    """

    kind: ClassVar[str] = "build"
    phase: ClassVar[Phase] = Phase.PREPARE
    beside: int | None = None
    resumes: int | None = None
    stream: bool = False
    keys: int = 0
    again: bool = False

    @property
    def clause(self) -> str:
        """What it does, as a part of a sentence."""
        if self.again:
            return "a new generation begins without state"
        beside = f" alongside generation {self.beside}" if self.beside is not None else ""
        if self.stream:
            return f"state is rebuilt{beside} without publishing"
        if self.beside is not None:
            return f"a new generation is built{beside}"
        there = f"the topic already has {counted(self.keys, 'key')}: " if self.keys else ""
        return f"{there}the first generation is calculated without publishing"


@dataclass(frozen=True)
class Convert(Step):
    """A generation begins with the state of the active one.

    Attributes:
        active: Number of the active one.
        resumes: Number of the generation, if it is half built or prepared already.
        checked: State is converted, and a sample is recalculated; else it stays as it is.
    """

    kind: ClassVar[str] = "convert"
    phase: ClassVar[Phase] = Phase.PREPARE
    active: int | None
    resumes: int | None = None
    checked: bool = True

    @property
    def clause(self) -> str:
        """What it does, as a part of a sentence."""
        state = f"the state of generation {self.active}"
        if not self.checked:
            return f"{state} stays as it is, and nothing is replayed"
        return f"{state} is converted, and a sample of its keys is recalculated to check it"

    @property
    def otherwise(self) -> str:
        """What happens if it fails and the deployment goes on all the same, as a sentence."""
        return "If the sample disagrees, the whole output is recalculated." if self.checked else ""


@dataclass(frozen=True)
class CatchUp(Step):
    """A generation that is kept goes on from where it stopped, without publishing.

    Attributes:
        resumes: Its number.
        asked: It was requested, whatever version the service's file holds.
    """

    kind: ClassVar[str] = "catch up"
    phase: ClassVar[Phase] = Phase.PREPARE
    resumes: int
    asked: bool = False

    @property
    def clause(self) -> str:
        """What it does, as a part of a sentence."""
        which = "takes over again" if self.asked else "is this version"
        return f"generation {self.resumes} {which}: it catches up from where it stopped, without a replay"


#: What leaves a generation ready for a cutover.
Preparation: TypeAlias = Build | Convert | CatchUp


@dataclass(frozen=True)
class Publish(Step):
    """The generation that was prepared becomes the active one, and what differs is published.

    Attributes:
        whole: All of it was calculated again, so a key that it does not produce is one that no longer exists.
    """

    kind: ClassVar[str] = "publish"
    phase: ClassVar[Phase] = Phase.REPLACE
    whole: bool = False

    @property
    def clause(self) -> str:
        """What it does, as a part of a sentence."""
        gone = ", with a tombstone for each key that it does not produce" if self.whole else ""
        return f"then what differs is published{gone}"


@dataclass(frozen=True)
class TakeOver(Step):
    """The generation of a stream that was prepared becomes the active one.

    Attributes:
        again: The topic is gone with what was published.
    """

    kind: ClassVar[str] = "take over"
    phase: ClassVar[Phase] = Phase.REPLACE
    again: bool = False

    @property
    def clause(self) -> str:
        """What it does, as a part of a sentence."""
        if self.again:
            return "it processes all that its sources have and publishes the stream from the beginning"
        return "what the stream has published stands, and the new version picks up where the old one stops"


@dataclass(frozen=True)
class CarryOver(Step):
    """The active generation goes on with new code on the state that it has.

    Attributes:
        generation: Its number.
    """

    kind: ClassVar[str] = "carry over"
    phase: ClassVar[Phase] = Phase.REPLACE
    generation: int | None

    @property
    def clause(self) -> str:
        """What it does, as a part of a sentence."""
        return f"the state of generation {self.generation} is carried over and results so far stand, as on_change says"


@dataclass(frozen=True)
class Withdraw(Step):
    """The active generation of an output that is no longer declared is retired.

    Attributes:
        generation: Its number.
        keys: Live keys on its topic.
        keep_topic: They stay as they are.
        readers: Outputs of the service that still read the topic.
    """

    kind: ClassVar[str] = "withdraw"
    phase: ClassVar[Phase] = Phase.REPLACE
    generation: int
    keys: int = 0
    keep_topic: bool = False
    readers: tuple[str, ...] = ()

    @property
    def clause(self) -> str:
        """What it does, as a part of a sentence."""
        if self.keep_topic or not self.keys:
            return f"generation {self.generation} is retired and the topic stays as it is"
        readers = f", which {listed(self.readers)} will see" if self.readers else ""
        keys = counted(self.keys, "key")
        return f"generation {self.generation} is retired, with a tombstone for each of its {keys}{readers}"


def sentences(steps: Sequence[Step]) -> str:
    """What these steps do, for people.

    Example:
        >>> sentences([Build("totals", beside=1), Publish("totals")])
        'A new generation is built alongside generation 1; then what differs is published.'
    """
    clauses = "; ".join(step.clause for step in steps)
    others = [step.otherwise for step in steps if step.otherwise]
    return " ".join([f"{clauses[:1].upper()}{clauses[1:]}.", *others])
