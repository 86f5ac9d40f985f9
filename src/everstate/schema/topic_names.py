"""Which names a topic may have: Kafka's rule, checked before a name reaches a broker or a path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from everstate.errors import TopicNameError

if TYPE_CHECKING:
    from everstate.location import Location

LONGEST: Final = 249
#: Topics that Everstate keeps for itself begin like this.
INTERNAL: Final = "__everstate."
#: How the topics end that say which keys of another topic were removed.
REMOVALS: Final = ".removed"
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def dead_letter_topic(output: str) -> str:
    """The topic that takes the records which an output cannot process."""
    return f"{output}.dlq"


def removals_topic(topic: str) -> str:
    """The topic that says which keys were removed, and which record each of them had last.

    Example:
        >>> removals_topic("customers")
        'customers.removed'
    """
    return f"{topic}{REMOVALS}"


def is_internal(name: str) -> bool:
    """Whether Everstate keeps a topic of that name for itself."""
    return name.startswith(INTERNAL)


def check_topic_name(name: str, *, location: Location | None = None) -> str:
    """Return the name if a topic may have it.

    Raises:
        TopicNameError: If it may not; the message says why.

    Example:
        >>> check_topic_name("customer-totals")
        'customer-totals'
        >>> check_topic_name("../etc")
        Traceback (most recent call last):
        everstate.errors.TopicNameError: '../etc' cannot be the name of a topic: '/' is not allowed in it
          Use letters, digits, '.', '_' and '-', at most 249 of them.
    """
    reason = _fault(name)
    if reason is None:
        return name
    raise TopicNameError(
        f"{_shown(name)} cannot be the name of a topic: {reason}",
        location=location,
        hint=f"Use letters, digits, '.', '_' and '-', at most {LONGEST} of them.",
    )


def _shown(name: object) -> str:
    return repr(name) if isinstance(name, (str, int, float, bytes)) or name is None else f"a {type(name).__name__}"


def _fault(name: object) -> str | None:
    if not isinstance(name, str):
        return "it is not text"
    if not name:
        return "it is empty"
    if name in {".", ".."}:
        return "it names a folder"
    if len(name) > LONGEST:
        return f"it has {len(name)} characters"
    if not _LEGAL.fullmatch(name):
        illegal = next(letter for letter in name if not _LEGAL.fullmatch(letter))
        return f"{illegal!r} is not allowed in it"
    return None
