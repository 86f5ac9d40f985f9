"""Expressions as Python: `col("amount") >= 10`, where Polars prints `[(col("amount")) >= (dyn int: 10)]`.

What the user wrote is better, and plans show that where it is known. Where it is not (an expression that a function put
together, a print of a version whose text was not kept), nobody should have to read the inside of a library.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

#: What only Polars prints: text that a user wrote has none of it, and stays as it is.
_SIGNS: Final = re.compile(r"\[\(|\bdyn (?:int|float|str): ")
_STRING: Final = re.compile(r'"[^"]*"')
_WORDS: Final = (
    (re.compile(r"\bdyn (?:int|float|str): "), ""),
    (re.compile(r"\btrue\b"), "True"),
    (re.compile(r"\bfalse\b"), "False"),
    (re.compile(r"\bnull\b"), "None"),
    (re.compile(r"\.strict_cast\("), ".cast("),
    (re.compile(r"\.not\(\)"), ".not_()"),
    (re.compile(r"\.negate\(\)"), ".neg()"),
    (re.compile(r"(?<![\w)\]])\.when\("), "when("),
)
_CLOSING: Final = {"(": ")", "[": "]"}


def python_text(expression: pl.Expr | str) -> str:
    """An expression, or what Polars has printed of one, as Python.

    Example:
        >>> python_text('[([(col("a")) > (dyn int: 1)]) & ([(col("b").sum()) != ("x")])]')
        '(col("a") > 1) & (col("b").sum() != "x")'
        >>> python_text('col("a").fill_null([dyn int: 0]).is_in([[1, 2]])')
        'col("a").fill_null(0).is_in([1, 2])'
    """
    if isinstance(expression, str) and not _SIGNS.search(expression):
        return expression
    text = str(expression)
    strings: list[str] = []

    def taken(found: re.Match[str]) -> str:
        strings.append(found.group())
        return f"\0{len(strings) - 1}\0"

    bare = _STRING.sub(taken, text)
    for pattern, word in _WORDS:
        bare = pattern.sub(word, bare)
    return re.sub(r"\0(\d+)\0", lambda found: strings[int(found[1])], _unwrapped(bare))


def _unwrapped(text: str) -> str:
    """Without the brackets around operations and lists of arguments."""
    out, place = "", 0
    while place < len(text):
        end = _end(text, place) if text[place] in _CLOSING else None
        if end is None:
            out, place = out + text[place], place + 1
            continue
        inside = text[place + 1 : end]
        both = _operation(inside) if text[place] == "[" else None
        if both is not None:
            alone = text[:place].rstrip()[-1:] in ("", "(", "[", ",") and text[end + 1 : end + 2] in ("", ")", "]", ",")
            out += both if alone else f"({both})"
        elif text[place] == "(" and _is_arguments(inside):
            out += f"({_unwrapped(inside[1:-1])})"
        else:
            out += f"{text[place]}{_unwrapped(inside)}{text[end]}"
        place = end + 1
    return out


def _operation(inside: str) -> str | None:
    """`(a) + (b)` without its brackets; None if it is something else."""
    left_end = _end(inside, 0) if inside.startswith("(") else None
    if left_end is None:
        return None
    word, _, rest = inside[left_end + 1 :].strip().partition(" ")
    if not rest.startswith("(") or _end(rest, 0) != len(rest) - 1:
        return None
    return f"{_operand(inside[1:left_end])} {word} {_operand(rest[1:-1])}"


def _operand(text: str) -> str:
    shown = _unwrapped(text)
    nested = text.startswith("[(") and _end(text, 0) == len(text) - 1
    return f"({shown})" if nested else shown


def _is_arguments(inside: str) -> bool:
    """Whether parentheses hold nothing but a list, as those of a call do, which is no operation."""
    return inside.startswith("[") and _end(inside, 0) == len(inside) - 1 and _operation(inside[1:-1]) is None


def _end(text: str, start: int) -> int | None:
    """Where the bracket that opens at a place closes; None if the text was cut short before."""
    waiting: list[str] = []
    for place in range(start, len(text)):
        letter = text[place]
        if letter in _CLOSING:
            waiting.append(_CLOSING[letter])
        elif waiting and letter == waiting[-1]:
            waiting.pop()
            if not waiting:
                return place
    return None
