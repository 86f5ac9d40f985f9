"""A plan for machines: JSON that can be read back, and compared with what would happen now."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

from everstate.errors import ConfigurationError
from everstate.plan.actions import (
    Action,
    Begin,
    Continue,
    Estimate,
    Keep,
    Migrate,
    Plan,
    Reading,
    Recalculate,
    Refuse,
    Restore,
    Retire,
)
from everstate.plan.differences import Category, Difference
from everstate.plan.edits import Edit
from everstate.plan.facts import Options
from everstate.plan.guards import concerns_of
from everstate.plan.preview import Contribution, Counts, DeadRecord, Explanation, FieldChange, Preview, Sample
from everstate.plan.shown.causes import causes_of

if TYPE_CHECKING:
    from everstate.plan.facts import Offsets
    from everstate.plan.guards import Limits
    from everstate.plan.shown.causes import Cause

#: The schema that docs/reference/plan-json.md describes.
_VERSION: Final = 3
#: Fields of actions that this version of the schema did not have from the start.
_LATER: Final = ("closed", "stream")
_OF_EDITS: Final = ("kind", "name", "location", "old", "new", "diff")
_SCALARS: Final[dict[str, Any]] = {"str": str, "int": int, "float": (int, float), "bool": bool, "None": type(None)}
_KINDS: Final[dict[str, type[Action]]] = {
    action.kind: action for action in (Keep, Begin, Continue, Recalculate, Migrate, Restore, Retire, Refuse)
}


def to_json(plan: Plan, *, limits: Limits | None = None) -> str:
    """A plan as a document; `steps`, `follows`, `causes` and `concerns` are for its readers, and not read back."""
    known = {
        "version": _VERSION,
        "service": plan.service,
        "options": asdict(plan.options),
        "actions": [
            {"kind": action.kind, **asdict(action), "steps": _steps(action), "follows": action.follows}
            for action in plan.actions
        ],
        "previews": [asdict(preview) for preview in plan.previews],
        "startup": plan.startup,
        "causes": [_cause(cause) for cause in causes_of(plan.changes)],
        "concerns": [asdict(concern) for concern in concerns_of(plan, limits)],
    }
    return json.dumps(known, indent=2)


def _steps(action: Action) -> list[dict[str, str]]:
    return [{"step": step.kind, "does": step.clause} for step in action.steps]


def _cause(cause: Cause) -> dict[str, Any]:
    edit = None if cause.edit is None else {name: getattr(cause.edit, name) for name in _OF_EDITS}
    return {
        "categories": cause.categories,
        "sentence": cause.difference.cause,
        "location": cause.difference.location,
        "old": cause.difference.old,
        "new": cause.difference.new,
        "edit": edit,
        "outputs": cause.outputs,
        "steps": [{"chain": chain, "step": step, "location": place} for chain, step, place in cause.ways],
    }


def from_json(text: str) -> Plan:
    """A plan from the text of `to_json`.

    Raises:
        ConfigurationError: If it is not such a text.
    """
    try:
        known = json.loads(text)
        version = known["version"]
        if version == _VERSION:
            plan = _plan(known)
            _require_types(plan)
            return plan
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
        raise ConfigurationError(
            f"this is not a plan: {type(error).__name__}: {str(error)[:200]}",
            hint="Write one: everstate plan SERVICE.py --out FILE",
        ) from error
    raise ConfigurationError(
        f"the plan has version {str(version)[:20]}, but this version of Everstate reads version {_VERSION}",
        hint="Make it again: everstate plan SERVICE.py --out FILE",
    )


def drift(plan: Plan, now: Plan) -> str | None:
    """What has changed since a plan was made, so that it must not be carried out; None if nothing.

    Sources may have grown meanwhile. Their past, the code and the active generations must be the same.

    Args:
        plan: The plan as it was made.
        now: The plan as it would be made now, with the same options.
    """
    if plan.service != now.service:
        return f"the plan is for service {plan.service}, but this is {now.service}"
    before, after = ({action.output: action for action in made.actions} for made in (plan, now))
    for output in [*before, *(output for output in after if output not in before)]:
        if output not in before:
            return f"output {output} is not in the plan"
        if output not in after:
            return f"output {output} is gone"
        if found := _drifted(before[output], after[output]):
            return found
    return None


def _drifted(was: Action, now: Action) -> str | None:
    if was.fingerprint != now.fingerprint:
        return f"the code or configuration of output {was.output} has changed since the plan was made"
    if was.active != now.active:
        return f"{_active(now)} of {was.output} is active; when the plan was made, {_active(was)} was"
    if isinstance(now, Refuse) and not isinstance(was, Refuse):
        return f"output {was.output} can no longer be deployed: {now.problem}"
    if was.kind != now.kind:
        return f"the plan says {was.kind} for output {was.output}, but now it would be {now.kind}"
    if _operational(was) != _operational(now):
        return f"output {was.output} would get a different number of shards"
    topics = {reading.topic: reading for reading in now.sources}
    gone = [reading.topic for reading in was.sources if reading.topic not in topics]
    if gone:
        return f"output {was.output} no longer reads topic {gone[0]}"
    return next((found for reading in was.sources if (found := _lost(reading, topics[reading.topic]))), None)


def _active(action: Action) -> str:
    return "no generation" if action.active is None else f"generation {action.active}"


def _operational(action: Action) -> list[tuple[str | None, str | None]]:
    return [(found.old, found.new) for found in action.differences if found.category is Category.SHARDS]


def _lost(was: Reading, now: Reading) -> str | None:
    """What a source has lost; it may only have grown."""
    if was.end.keys() - now.end.keys():
        return f"topic {was.topic} has {len(now.end)} partitions; it had {len(was.end)}"
    for partition, end in was.end.items():
        if (ends := now.end[partition]) < end:
            return f"topic {was.topic} was created again: partition {partition} ends at {ends:,}, not {end:,}"
    if now.truncated and was.truncated != now.truncated:
        return f"topic {was.topic} {now.truncated}"
    return None


def _plan(known: dict[str, Any]) -> Plan:
    asked: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in known["options"].items()
    }
    return Plan(
        known["service"],
        tuple(_action(action) for action in known["actions"]),
        Options(**asked),
        tuple(_preview(preview) for preview in known["previews"]),
        known["startup"],
    )


def _require_types(value: Any) -> None:
    """A file may hold anything: a number where a name belongs is found here, not where it is used."""
    if isinstance(value, (tuple, list)):
        for part in value:
            _require_types(part)
    elif is_dataclass(value):
        for field in fields(value):
            part, words = getattr(value, field.name), str(field.type).split(" | ")
            if field.type == "tuple[str, ...]" and not _are_names(part):
                raise TypeError(f"{field.name} does not consist of names")
            if all(word in _SCALARS for word in words) and not any(_is(part, _SCALARS[word]) for word in words):
                raise TypeError(f"{field.name} is not {' or '.join(words)}")
            _require_types(part)


def _are_names(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(word, str) for word in value)


def _is(value: object, kind: type | tuple[type, ...]) -> bool:
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _action(known: dict[str, Any]) -> Action:
    kind = _KINDS[known["kind"]]
    # Fields that an earlier version did not write have their defaults.
    names = [field.name for field in fields(kind) if field.name in known or field.name not in _LATER]
    values: dict[str, Any] = {name: known[name] for name in names}
    values["differences"] = tuple(_difference(difference) for difference in values["differences"])
    values["sources"] = tuple(_reading(reading) for reading in values["sources"])
    for name in ("ordered", "consumes", "readers", "warnings"):
        if name in values:
            values[name] = tuple(values[name])
    if "estimate" in values:
        values["estimate"] = Estimate(**values["estimate"])
    return kind(**values)


def _difference(known: dict[str, Any]) -> Difference:
    edits = tuple(
        Edit(**{**edit, "diff": tuple(edit["diff"]), "chain": tuple(edit["chain"])}) for edit in known["edits"]
    )
    return Difference(**{**known, "category": Category(known["category"]), "edits": edits})


def _reading(known: dict[str, Any]) -> Reading:
    return Reading(**{**known, "start": _offsets(known["start"]), "end": _offsets(known["end"])})


def _offsets(known: dict[str, int]) -> Offsets:
    # JSON has no other keys than text.
    if not all(isinstance(offset, int) and not isinstance(offset, bool) for offset in known.values()):
        raise TypeError("an offset is not a number")
    return {int(partition): offset for partition, offset in known.items()}


def _sample(known: dict[str, Any]) -> Sample:
    return Sample(**{**known, "fields": _fields(known)})


def _fields(known: dict[str, Any]) -> tuple[FieldChange, ...]:
    return tuple(FieldChange(**found) for found in known["fields"])


def _explanation(known: dict[str, Any] | None) -> Explanation | None:
    if known is None:
        return None
    made = tuple(Contribution(**{**found, "fields": _fields(found)}) for found in known["contributions"])
    return Explanation(**{**known, "fields": _fields(known), "contributions": made})


def _preview(known: dict[str, Any]) -> Preview:
    new, changed, stale = (tuple(map(_sample, known[name])) for name in ("new", "changed", "stale"))
    return Preview(
        output=known["output"],
        new=new,
        changed=changed,
        stale=stale,
        generation=known["generation"],
        kept=known.get("kept", True),
        counts=Counts(**known["counts"]),
        dead=tuple(DeadRecord(**record) for record in known["dead"]),
        upstream=tuple(known["upstream"]),
        explained=_explanation(known.get("explained")),
    )
