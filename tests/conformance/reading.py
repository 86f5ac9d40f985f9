"""Cases from files: which there are, what may be missing in them, and how their records are sent.

A folder may bring operators, functions and fields that nobody here has heard of. Each such case is left out with a
sentence that says what is unknown; a file that holds no cases is an error that names it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from everstate.errors import EverstateError
from tests.conformance.expectations import settled
from tests.conformance.functions import InexpressibleError
from tests.conformance.services import service_of

if TYPE_CHECKING:
    from pathlib import Path

#: Without these there is nothing to play.
_NEEDED = ("operator", "params", "inputs")
_OF_RECORD = ("topic", "key", "value", "ts")
#: What a case need not say.
_DEFAULTS: dict[str, Any] = {
    "result_kind": "table",
    "batching": "per_record",
    "expected_per_record": None,
    "expected_groups": None,
    "expected_final": None,
}


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """All cases of a folder by file and name.

    Raises:
        ValueError: If there are none, or a file holds something else.
    """
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.json")):
        for number, case in enumerate(_content(path)):
            name = f"{path.stem}-{case.get('name', number)}"
            found[name if name not in found else f"{name}-{number}"] = settled({**_DEFAULTS, **case})
    if not found:
        raise ValueError(f"{folder} has no conformance cases: files called NAME.json, each with a list of cases")
    return found


def _content(path: Path) -> list[dict[str, Any]]:
    try:
        content = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    cases = content.get("cases") if isinstance(content, dict) else content
    if not isinstance(cases, list) or not all(isinstance(case, dict) for case in cases):
        raise ValueError(f"{path} holds no list of cases")
    return cases


def missing(case: dict[str, Any]) -> str | None:
    """Why a case cannot be played; None if it can."""
    absent = [name for name in _NEEDED if name not in case]
    absent += [f"{name} of an input" for name in _OF_RECORD if any(name not in r for r in case.get("inputs", ()))]
    if absent:
        return f"it does not say: {', '.join(absent)}"
    if not any(case[name] is not None for name in _DEFAULTS if name.startswith("expected")) and not (
        case.get("expected_states") or case.get("expect_error")
    ):
        return "it does not say what is expected"
    try:
        service = service_of(case)
    except InexpressibleError as error:
        return str(error)
    except KeyError as error:
        return f"its params have no {error.args[0]!r}, or name something unknown by it"
    except EverstateError as error:
        return None if case.get("expect_error") else f"Everstate refuses it: {error}"
    topics = {source.topic for unit in service.units() for source in unit.sources}
    unread = sorted({str(record["topic"]) for record in case["inputs"]} - topics)
    return f"{case['operator']} does not read {', '.join(unread)}" if unread else None
