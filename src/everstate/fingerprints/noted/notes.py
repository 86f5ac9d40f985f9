"""Notes of an output: plain values that outlive the process, and the version that made them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, TypeAlias

_VERSION: Final = 1

#: What a definition is. A "closure" is a value that a function closes over, a "default" that of a parameter; a "text"
#: is a statement whose value is not known any more, such as one inside a function that has returned.
DefinitionKind: TypeAlias = Literal["function", "lambda", "class", "constant", "closure", "default", "text"]


@dataclass(frozen=True)
class Definition:
    """Something of the user's that a step reaches.

    Attributes:
        name: Dotted, with its module; unique in its notes.
        kind: What it is.
        label: As people call it: `is_late()`, `LATE_MINUTES`.
        file: Where it is written.
        line: Its first line.
        text: Its source, or the text of its value.
        digest: Of its own content, without what it uses.
        written: Of the statement that gives a constant its value; empty where there is none.
        uses: Names of the definitions that it refers to.
    """

    name: str
    kind: DefinitionKind
    label: str
    file: str
    line: int
    text: str
    digest: str
    written: str = ""
    uses: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Its file and line."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class StepNote:
    """The call that made a step.

    Attributes:
        label: As people call it: `apply(stateful=True)`.
        file: Where it is written.
        line: The line that its method's name is on.
        text: Its source, from the dot on.
        digest: Of that.
        uses: Names of the definitions that it refers to, and of the functions that it was given.
    """

    label: str
    file: str
    line: int
    text: str
    digest: str
    uses: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Its file and line."""
        return f"{self.file}:{self.line}"

    @property
    def last_line(self) -> int:
        """Where it ends."""
        return self.line + self.text.count("\n")


@dataclass(frozen=True)
class Notes:
    """What the text of an output's service says.

    Attributes:
        steps: By the name of the node.
        definitions: By name.
    """

    steps: dict[str, StepNote] = field(default_factory=dict)
    definitions: dict[str, Definition] = field(default_factory=dict)

    def reached(self, step: str) -> dict[str, tuple[str, ...]]:
        """What a step reaches: by name, the shortest way there, itself first and what the call names last."""
        found: dict[str, tuple[str, ...]] = {}
        note = self.steps.get(step)
        waiting: list[tuple[str, tuple[str, ...]]] = [(name, ()) for name in note.uses] if note is not None else []
        for name, way in waiting:  # grows as it is walked: nearest first
            if name not in found and name in self.definitions:
                found[name] = (name, *way)
                waiting.extend((use, found[name]) for use in self.definitions[name].uses)
        return found

    def to_document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "version": _VERSION,
            "steps": {name: asdict(step) for name, step in self.steps.items()},
            "definitions": [asdict(definition) for definition in self.definitions.values()],
        }

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Notes | None:
        """From what `to_document` gave; None if another version has written it, since nothing depends on it."""
        if document.get("version") != _VERSION:
            return None
        steps = {name: StepNote(**{**step, "uses": tuple(step["uses"])}) for name, step in document["steps"].items()}
        found = [Definition(**{**known, "uses": tuple(known["uses"])}) for known in document["definitions"]]
        return cls(steps, {definition.name: definition for definition in found})
