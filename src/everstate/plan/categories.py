"""One difference between two versions of an output, and the categories it can fall into."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everstate.plan.edits import Edit


class Category(StrEnum):
    """What kind of difference it is; a plan lists them in this order."""

    NEW_OUTPUT = "new output"
    REMOVED_OUTPUT = "removed output"
    NEW_SOURCE = "new source topic"
    REMOVED_SOURCE = "removed source topic"
    RECREATED_SOURCE = "recreated source topic"
    OUTPUT_TOPIC = "lost output topic"
    SOURCE_KEY = "changed source key"
    MORE_STATE = "more intermediate state"
    LESS_STATE = "less intermediate state"
    SCHEMA = "changed private schema"
    CONFIGURATION = "changed configuration"
    LOGIC = "changed logic"
    GROUPING = "changed grouping"
    PACKAGE = "changed package"
    LIBRARY = "changed library"
    MISSED = "missed change"
    POLICY = "changed policy"
    SHARDS = "changed shards"


@dataclass(frozen=True)
class Difference:
    """One difference between the active version of an output and the new one.

    Attributes:
        category: What kind it is.
        node: Name of the node; empty where it concerns the output as a whole.
        cause: One sentence in the user's words.
        location: The user's file and line, as "file:line"; that of the old version where something was removed.
        old: What it was, short; None where there was nothing or nothing can be shown.
        new: What it is.
        edits: What the user wrote differently, as far as that can be told; then the sentence need not be read.
    """

    category: Category
    node: str
    cause: str
    location: str = ""
    old: str | None = None
    new: str | None = None
    edits: tuple[Edit, ...] = ()
