"""Reasons of dead letters as texts that are the same whenever the same record fails in the same way.

Messages of Python's errors show objects, and an object without a text of its own is shown with its place in memory; a
set is shown in an order that changes with every process. Left as they are, a recalculation of unchanged code would
write every such letter again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from everstate.errors.secrets import masked

#: Why a row has no time that can be calculated with.
UNDATED: Final = "the record has no timestamp"
BEFORE_1970: Final = "time= gives no time at or after 1970"
TOO_LATE: Final = "its time is after the year 8999: times are milliseconds since 1970, not micro- or nanoseconds"

#: `<Order object at 0x7f2c4d1e5a90>`
_ADDRESS: Final = re.compile(r"\bat 0x[0-9A-Fa-f]+\b")
#: A quoted text is one sign: what looks like a bracket in it is none.
_SIGN: Final = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|.", re.DOTALL)
_CLOSED_BY: Final = {"{": "}", "[": "]", "(": ")", "<": ">"}


def stable(reason: str) -> str:
    """A reason without what differs from process to process, without credentials, as text that UTF-8 can hold.

    Example:
        >>> stable("ValueError: no <Rate object at 0x7f2c4d1e5a90> for {'usd', 'eur'}")
        "ValueError: no <Rate object at 0x...> for {'eur', 'usd'}"
    """
    # A message may quote half of a surrogate pair, which JSON can escape and no topic can hold.
    writable = reason.encode(errors="backslashreplace").decode()
    text = _ADDRESS.sub("at 0x...", masked(writable))
    return _sorted_sets(text) if "{" in text else text


@dataclass
class _Bracket:
    """What stands between two brackets, cut at its commas."""

    opening: str = ""
    parts: list[str] = field(default_factory=lambda: [""])
    has_colon: bool = False

    def text(self, *, closed: bool) -> str:
        if closed and self.opening == "{" and not self.has_colon and len(self.parts) > 1:
            return self.opening + ", ".join(sorted(part.strip() for part in self.parts))
        return self.opening + ",".join(self.parts)


def _sorted_sets(text: str) -> str:
    """The members of every `{a, b}` in order; a dict has colons and stays as it is."""
    stack = [_Bracket()]
    for sign in _SIGN.findall(text):
        top = stack[-1]
        if sign in _CLOSED_BY:
            stack.append(_Bracket(sign))
        elif len(stack) > 1 and sign == _CLOSED_BY[top.opening]:
            stack.pop()
            stack[-1].parts[-1] += top.text(closed=True) + sign
        elif sign == ",":
            top.parts.append("")
        else:
            top.has_colon |= sign == ":"
            top.parts[-1] += sign
    while len(stack) > 1:
        left_open = stack.pop()
        stack[-1].parts[-1] += left_open.text(closed=False)
    return stack[0].text(closed=True)
