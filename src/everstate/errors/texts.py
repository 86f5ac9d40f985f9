"""Text of others on its way to a terminal: records and exceptions must not move the cursor or fake a line."""

from __future__ import annotations

import re
from typing import Final

#: Control characters but tab and newline, and those that turn the direction of writing or hide.
_UNSEEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_MARGIN: Final = "\n  | "


def printable(text: str) -> str:
    r"""The text with everything that a terminal would obey written out.

    Example:
        >>> printable("\x1b[31mred\x9b2J")
        '\\x1b[31mred\\x9b2J'
    """
    return _UNSEEN.sub(_escaped, text)


def printable_json(text: str) -> str:
    r"""The same for a text of JSON, in the escapes that JSON has.

    Example:
        >>> printable_json('"\x9b2J"')
        '"\\u009b2J"'
    """
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    r"""A printable text in which a line break is written out, for places that give each thing one line.

    Example:
        >>> one_line("a\nerror: b")
        'a\\nerror: b'
    """
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def with_margin(text: str) -> str:
    r"""Several lines as one message: those after the first are marked, so that none looks like a hint or an error.

    Example:
        >>> with_margin("it failed\n  Run this.")
        'it failed\n  |   Run this.'
    """
    return text.replace("\r\n", "\n").replace("\n", _MARGIN)


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
