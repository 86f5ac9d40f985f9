"""Bytes as text, where they are."""

from __future__ import annotations

from typing import Final

import polars as pl

#: Values that are looked at one by one if one of them is not UTF-8; Polars refuses all or none.
_CHUNK: Final = 4096


def text(values: pl.Series) -> pl.Series:
    """The text of each value; null where it is null or not valid UTF-8."""
    try:
        return values.cast(pl.String)
    except pl.exceptions.ComputeError:
        if len(values) <= _CHUNK:
            return pl.Series(values.name, [_text(value) for value in values], dtype=pl.String)
    chunks = [text(values.slice(start, _CHUNK)) for start in range(0, len(values), _CHUNK)]
    return pl.concat(chunks)


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None
