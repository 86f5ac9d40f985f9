"""Where a function depends on the time zone of the machine."""

from __future__ import annotations

import ast
import datetime as dt
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.code.slots import MISSING

if TYPE_CHECKING:
    from everstate.fingerprints.outside.meanings import Meanings
    from everstate.fingerprints.outside.usage import Use

#: It does.
SURELY: Final = "surely"
#: It does if a datetime without a time zone comes along.
PERHAPS: Final = "perhaps"
_TZINFO_PLACE: Final = 8


def judged(meanings: Meanings, attribute: str, use: Use) -> str:
    """Whether a method of an unknown object depends on the machine's time zone: empty, `PERHAPS` or `SURELY`."""
    call = use.call
    if attribute == "strftime" and call is not None and call.args:
        format_ = call.args[0]
        return SURELY if isinstance(format_, ast.Constant) and "%s" in str(format_.value) else ""
    if attribute == "astimezone" and call is not None and not _has_zone(call):
        return SURELY
    if attribute not in ("timestamp", "astimezone") or call is None:
        return ""
    return SURELY if _is_naive(meanings, use) else PERHAPS


def _has_zone(call: ast.Call) -> bool:
    given = [*call.args, *(word.value for word in call.keywords)]
    return any(not (isinstance(part, ast.Constant) and part.value is None) for part in given)


def _is_naive(meanings: Meanings, use: Use) -> bool:
    """Whether the datetime certainly has no time zone."""
    if use.base is None:
        return False
    if len(use.attributes) > 1:
        value: Any = meanings.value(use.base)
        return isinstance(value, dt.datetime) and value.tzinfo is None
    return all(_made_naive(meanings, source) for source in meanings.sources(use.base))


def _made_naive(meanings: Meanings, node: ast.expr) -> bool:
    value = meanings.value(node)
    if value is not MISSING:
        return isinstance(value, dt.datetime) and value.tzinfo is None
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr == "replace":
        return any(
            word.arg == "tzinfo" and isinstance(word.value, ast.Constant) and word.value.value is None
            for word in node.keywords
        )
    made = meanings.called(node)
    if made is dt.datetime:
        return len(node.args) < _TZINFO_PLACE and not any(word.arg in ("tzinfo", None) for word in node.keywords)
    if made == dt.datetime.strptime and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
        return "%z" not in str(node.args[1].value)
    return bool(made == dt.datetime.utcfromtimestamp)


def local_zone() -> str:
    """The time zone of the machine: one name for all that are UTC."""
    if set(time.tzname) == {"UTC"}:
        return "UTC"
    link = Path("/etc/localtime")
    linked = str(link.resolve()).partition("/zoneinfo/")[2] if link.is_symlink() else ""
    return " ".join(part for part in (os.environ.get("TZ") or linked, *time.tzname) if part)
