"""What an output is, in a form that outlives the process: compared by plans, kept with each generation.

A print has one entry a node and, in it, one part for each thing that can change results. Parts carry digests to compare
and words to show, never live objects: the version that made an older print may no longer be importable.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from everstate.errors import LogError
from everstate.fingerprints.earlier import completed
from everstate.topology.traits import Traits

#: What a part of a node is, which decides the category that a difference of it falls into.
PartKind: TypeAlias = Literal["topic", "key", "schema", "grouping", "expression", "function", "parameter", "semantics"]


@dataclass(frozen=True)
class Part:
    """One thing about a node that can change results.

    Attributes:
        kind: What it is.
        digest: Of its meaning.
        shape: Of its meaning with the values of configuration settings replaced by their names: where two prints agree
            in shape and not in digest, configuration has changed and nothing else.
        text: For people, short.
        location: The user's file and line, as "file:line"; empty if it is the node's own.
    """

    kind: PartKind
    digest: str
    shape: str
    text: str
    location: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a record or row.

    Attributes:
        name: Its name.
        type: Its type, for people.
        nullable: It may be null.
        default: The JSON of what stands where it is left out; None if nothing is declared.
        exact: Its type to the last detail; empty where it was not stored.
    """

    name: str
    type: str
    nullable: bool = False
    default: str | None = None
    exact: str = ""

    def is_same(self, other: Column) -> bool:
        """Whether nothing about it has changed, as far as both say."""
        known = [(column.name, column.type, column.nullable, column.default) for column in (self, other)]
        return known[0] == known[1] and (self.exact == other.exact or not (self.exact and other.exact))


@dataclass(frozen=True)
class NodePrint:
    """One node.

    Attributes:
        name: Unique in its output; made of topics and operations, so that inserting a step does not rename the others.
        operation: As `describe()` calls it.
        inputs: Names of the nodes that feed it, by port.
        stateful: It keeps state.
        parts: By name.
        location: The user's file and line, as "file:line".
        columns: Those of a record or row; like all that follows no part of the fingerprint, since the parts have it.
        migrates: The user gave a function that converts its state.
        kind: "stream" or "table".
        traits: What the operation is.
    """

    name: str
    operation: str
    inputs: tuple[str, ...]
    stateful: bool
    parts: dict[str, Part]
    location: str = ""
    columns: tuple[Column, ...] = ()
    migrates: bool = False
    kind: str = "stream"
    traits: Traits = field(default_factory=Traits)

    def has_columns_of(self, other: NodePrint) -> bool:
        """Whether its columns are the same as another's, in the same order."""
        return len(self.columns) == len(other.columns) and all(map(Column.is_same, self.columns, other.columns))


@dataclass(frozen=True)
class Setting:
    """A configuration value that ends up in an output. `text` is what may be shown: secrets are masked."""

    digest: str
    text: str


@dataclass(frozen=True)
class UnitPrint:
    """One output.

    Attributes:
        service: Its service.
        output: Its topic.
        kind: "table" or "stream".
        nodes: In topological order; the last is the output.
        settings: Configuration values in it, by name.
        packages: Versions of the distributions that its functions reach, by name.
        policy: What happens to records that cannot be processed.
        libraries: Versions of Python, Polars and Everstate: not part of the fingerprint, since an upgrade is not a
            change by itself.
        scheme: How its functions were looked at. Digests of two schemes cannot be compared: that they differ does not
            say that a function was changed. Not part of the fingerprint, so that what has no functions stays as it is.
        sides: The further topics that it writes to, with what they hold; the steps have them in the fingerprint.
    """

    service: str
    output: str
    kind: str
    nodes: tuple[NodePrint, ...]
    settings: dict[str, Setting] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)
    policy: str = "dead-letter"
    libraries: dict[str, str] = field(default_factory=dict)
    scheme: int = 1
    sides: dict[str, str] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """The digest of everything that can change results."""
        nodes = [
            [node.name, node.operation, node.inputs, sorted((name, part.digest) for name, part in node.parts.items())]
            for node in self.nodes
        ]
        meaning = [self.output, self.kind, nodes, sorted(self.packages.items()), self.policy]
        return hashlib.sha256(json.dumps(meaning).encode()).hexdigest()

    def to_json(self) -> str:
        """As text that `from_json` reads."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> UnitPrint:
        """From the text of `to_json`, also of an earlier version's.

        Raises:
            LogError: If it is not such a text.
        """
        try:
            known: dict[str, Any] = json.loads(text)
            known["nodes"] = tuple(_node(node) for node in completed(known["nodes"]))
            known["settings"] = {name: Setting(**setting) for name, setting in known["settings"].items()}
            return cls(**known)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise LogError(
                f"the description of a generation in the registry is damaged: {type(error).__name__}: {error}",
                hint="Restore the log's folder from a backup.",
            ) from error


def _node(known: dict[str, Any]) -> NodePrint:
    parts = {name: Part(**part) for name, part in known["parts"].items()}
    columns = tuple(Column(**column) for column in known["columns"])
    return NodePrint(**{**known, "inputs": tuple(known["inputs"]), "parts": parts, "columns": columns})
