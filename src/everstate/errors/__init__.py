"""Everything Everstate raises, as one tree.

EverstateError
├── DefinitionError              the description of a service is wrong: correct the code
│   ├── UnknownColumnError       a column that is not there
│   ├── SchemaError              a type or schema that does not fit
│   ├── FunctionError            a function that cannot be called as it would be
│   ├── CallError                an option that is not there, or an argument that is missing
│   ├── NameClashError           two things of one name
│   ├── UnsupportedError         an operation that is refused here, with what to use instead
│   │   └── AbsentError          a method that is not there, with what to use instead
│   └── FingerprintError         something whose change could not be noticed: declare it, or write it otherwise
├── ConfigurationError           a setting, an option or the environment is wrong: correct it
├── LogError                     a topic cannot be used as asked
│   ├── TopicNameError           not a valid topic name
│   ├── TopicNotFoundError       no such topic
│   ├── TopicRecreatedError      it was deleted and created again: its records are others
│   ├── TopicExistsError         it is there already
│   ├── OffsetOutOfRangeError    those records are gone, or not there yet
│   ├── LogBusyError             another process holds the log's lock for too long: try again
│   ├── LogUnavailableError      brokers do not answer, or a transaction does not end: see to it, try again
│   ├── LogDeniedError           brokers refuse the credentials, or a right is missing: correct them
│   ├── SegmentDamagedError      stored bytes do not match their checksum: restore them
│   └── ManifestDamagedError     the log's manifest is missing, cut off or not what was written: restore it
├── LeaseError                   another process owns this
│   ├── LeaseHeldError           it is alive: stop it first
│   └── FencedError              this process no longer has its lease, and must stop
│       └── TakenOverError       another one was started in its place
├── StateError                   state and log do not belong together
│   ├── CheckpointMissingError   the checkpoint is gone, or a part of it
│   ├── CheckpointDamagedError   a part of it cannot be read
│   ├── CommitConflictError      a batch was committed before with another content
│   ├── TombstonesMissedError    deletions were compacted away before they were read
│   └── FinalityError            a row has reached what is final, which Everstate must never let happen
├── DeploymentError              a new version cannot take the place of the active one
│   ├── GenerationError          there is no such generation, or it is not at that point of its life
│   ├── ApprovalNeededError      the cutover would remove more than it may without being approved
│   ├── HistoryTruncatedError    a source no longer has all the records that a recalculation needs
│   ├── MigrationError           state could not be converted, or did not pass the check: it is recalculated
│   └── PlanDriftError           code or sources are not those that the plan was made for
├── RecordError                  one record cannot be processed
│   ├── DecodeError              its bytes do not fit the schema
│   ├── UserFunctionError        a function of the service raised
│   ├── StateValueError          a function put something into its state that cannot be stored
│   └── NumberOverflowError      an integer result does not fit into 64 bits
├── ResourceError                the machine does not give something; nothing is damaged: see that it does, run again
│   ├── DiskFullError            no space is left on a disk, or a quota is used up
│   ├── OpenFilesError           too many files are open
│   └── AccessError              a file or folder may not be read or written by this user
└── EngineError                  Spark, Java or a worker failed: the message says what to do
    └── StalledError             a query lives but does nothing
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from everstate.errors.secrets import masked
from everstate.errors.texts import with_margin

if TYPE_CHECKING:
    from everstate.location import Location


class EverstateError(Exception):
    """Root of all errors.

    Attributes:
        message: What failed.
        location: The user's file and line, where there is one.
        hint: What to do next, with the command.
        cure: The hint of a class of errors that are all treated alike.
    """

    cure: ClassVar[str] = ""

    def __init__(self, message: str, *, location: Location | None = None, hint: str | None = None) -> None:
        # Addresses and headers come with credentials, and an error is printed, logged and stored.
        self.message = masked(message)
        self.location = location
        self.hint = masked(hint or self.cure) or None
        super().__init__(self.message)

    def __str__(self) -> str:
        where = f" ({self.location})" if self.location else ""
        hint = f"\n  {self.hint}" if self.hint else ""
        # What a record or an exception of the user's says may have lines of its own, which must not pass for a hint.
        return f"{with_margin(self.message)}{where}{hint}"

    def __reduce__(self) -> tuple[object, ...]:
        # Spark carries errors between processes; the keyword-only arguments would be lost by the default protocol.
        return (_rebuild, (type(self), self.__dict__, self.args))


def _rebuild(kind: type[EverstateError], attributes: dict[str, object], args: tuple[object, ...]) -> EverstateError:
    error = kind.__new__(kind)
    Exception.__init__(error, *args)
    error.__dict__.update(attributes)
    return error


class DefinitionError(EverstateError, ValueError):
    """The description of a service is wrong; found when the service is built."""


class UnknownColumnError(DefinitionError):
    """A column that is not there; the message lists those that are."""

    def __init__(self, column: str, available: list[str], *, location: Location | None = None) -> None:
        self.column = column
        self.available = available
        super().__init__(
            f"unknown column {column!r}",
            location=location,
            hint=f"The columns here are: {', '.join(available) or 'none'}.",
        )


class SchemaError(DefinitionError, TypeError):
    """A type or a schema that does not fit."""


class FunctionError(DefinitionError, TypeError):
    """A function that cannot be called as the operation calls it: of other arguments, async, or not callable."""


class CallError(DefinitionError, TypeError):
    """An operation was called with arguments that it does not have, or without one that it needs."""


class NameClashError(DefinitionError):
    """Two things of one name."""


class UnsupportedError(DefinitionError):
    """An operation that is refused here; the hint says what to use instead."""


class AbsentError(UnsupportedError, AttributeError):
    """A method or name that is not there; the hint says what to use instead."""


class FingerprintError(DefinitionError):
    """Something in a function or an expression whose change could not be noticed; the hint says how to declare it."""


class ConfigurationError(EverstateError, ValueError):
    """A setting, an option or the environment is wrong."""


class LogError(EverstateError):
    """A topic cannot be used as asked."""


class TopicNameError(LogError, ValueError):
    """Not a valid topic name."""


class TopicNotFoundError(LogError, LookupError):
    """No such topic."""

    def __init__(self, topic: str, *, location: Location | None = None, hint: str = "") -> None:
        self.topic = topic
        hint = hint or f"See which there are: everstate topic list. Create it: everstate topic create {topic}"
        super().__init__(f"topic {topic!r} does not exist", location=location, hint=hint)


class TopicRecreatedError(LogError):
    """A topic was deleted and created again, so offsets in it mean other records."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        super().__init__(
            f"topic {topic!r} was deleted and created again: its offsets now belong to other records",
            hint="Start the service again: outputs that read the topic are recalculated, and whatever is "
            "missing is published. To see it first: everstate plan SERVICE.py",
        )


class TopicExistsError(LogError):
    """The topic is there already."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        super().__init__(f"topic {topic!r} already exists", hint=f"See it: everstate topic describe {topic}")


class OffsetOutOfRangeError(LogError, LookupError):
    """Those records are gone, or not there yet."""


class LogBusyError(LogError):
    """Another process has held the log's lock for too long."""


class LogUnavailableError(LogError):
    """Brokers do not answer, or a transaction does not come to its end. Nothing is lost; it may pass."""


class LogDeniedError(LogError):
    """Brokers refuse the credentials or the certificate, or a right is missing. Trying again does not help."""


class SegmentDamagedError(LogError):
    """Stored bytes do not match their checksum."""


class ManifestDamagedError(LogError):
    """The log's manifest is missing, cut off, or not what was written."""


class LeaseError(EverstateError):
    """Another process owns this."""


class LeaseHeldError(LeaseError):
    """The holder is alive."""


class FencedError(LeaseError):
    """This process no longer has its lease, and must stop."""


class TakenOverError(FencedError):
    """Another process was started in the place of this one.

    Attributes:
        lease: What it has taken.
        host: Where it runs.
        pid: Its number there.
    """

    lease: str = ""
    host: str = ""
    pid: int = 0

    def __init__(self, lease: str, host: str, pid: int, *, token: int, own: int) -> None:
        self.lease, self.host, self.pid = lease, host, pid
        super().__init__(
            f"{lease!r} has been taken over by process {pid} on {host} (token {token}, this process has {own})",
            hint="This process has to stop; none of its last batch was published.",
        )


class StateError(EverstateError):
    """State and log do not belong together."""


class CheckpointMissingError(StateError):
    """The checkpoint is gone, or a part of it."""


class CheckpointDamagedError(StateError):
    """A part of the checkpoint cannot be read."""


class CommitConflictError(StateError):
    """A batch was committed before with another content."""


class TombstonesMissedError(StateError):
    """Deletions were compacted away before they were read."""


class FinalityError(StateError):
    """A row has reached what is final: an error in Everstate itself, noticed before anything wrong is published."""

    cure = "Please report it. Rebuilt from scratch, the output is right: everstate run SERVICE.py --recalculate OUTPUT"


class DeploymentError(EverstateError):
    """A new version cannot take the place of the active one; that one stays as it is."""


class GenerationError(DeploymentError):
    """There is no such generation, or it is not at that point of its life."""

    cure = "See the generations and how far they are: everstate generations SERVICE.py"


class ApprovalNeededError(DeploymentError):
    """A cutover would remove more than it may without being approved."""


class HistoryTruncatedError(DeploymentError):
    """A source no longer has all the records that a recalculation needs."""


class MigrationError(DeploymentError):
    """The state of the active version cannot be converted, or not so that it equals a recalculation."""

    cure = "Nothing has been published, and the output is recalculated instead."


class PlanDriftError(DeploymentError):
    """Code or sources are not those that a plan was made for."""


class RecordError(EverstateError):
    """One record cannot be processed."""


class DecodeError(RecordError, ValueError):
    """The record's bytes do not fit the schema."""


class UserFunctionError(RecordError):
    """A function of the service raised."""


class StateValueError(RecordError, TypeError):
    """A stateful function used its state in a way, or with a value, that cannot be."""


class NumberOverflowError(RecordError, ArithmeticError):
    """An integer result does not fit into 64 bits."""


class ResourceError(EverstateError):
    """The machine does not give something. Nothing is damaged: see that it does, and run it again."""


class DiskFullError(ResourceError):
    """No space is left on a disk, or a quota is used up."""


class OpenFilesError(ResourceError):
    """Too many files are open."""


class AccessError(ResourceError):
    """A file or folder may not be read or written by this user."""


class EngineError(EverstateError, RuntimeError):
    """Spark, Java or a worker failed."""

    cure = "Run it again with --log-level INFO to see what Spark was doing."


class StalledError(EngineError):
    """A query lives but does nothing."""
