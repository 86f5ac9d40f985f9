"""What a case expects, with Everstate's deliberate differences applied.

A group of a table aggregation that has lost its last contribution is deleted, and starts from the initializer when it
returns; a row that does not change is neither taken out nor added again. For table aggregations the expected tables are
therefore played again by a small model; with Kafka's rule the model must give what the case says, so it cannot be wrong
in silence.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.functions import GROUPS, binary

Table = dict[Any, Any]


def settled(case: dict[str, Any]) -> dict[str, Any]:
    """The case as its notes recommend, where what it expects is disputed."""
    disputed = case.get("disputed") or {}
    better = disputed.get(disputed.get("recommended"))
    if not isinstance(better, list):
        return case
    final = [output for outputs in better for output in outputs] if case["result_kind"] == "stream" else None
    return {**case, "expected_per_record": better, "expected_final": final, "expected_groups": None}


def tables_after(case: dict[str, Any]) -> list[Table] | None:
    """The table after every input; None where the case does not say."""
    if case["operator"] == "table_aggregate":
        kafka, ours = (_aggregation(case, deletes=deletes) for deletes in (False, True))
        if case["expected_final"] is not None:
            stated = {output["key"]: output["value"] for output in case["expected_final"]}
            assert kafka[-1] == stated, "the model disagrees with the case"
        return ours
    if not case.get("expected_per_record") or waits(case):
        return None
    table: Table = {}
    tables = []
    for outputs in case["expected_per_record"]:
        for output in outputs:
            table.pop(key_of(output), None)
            if output["value"] is not None and not _empty_group(case, output["value"]):
                table[key_of(output)] = output["value"]
        tables.append(dict(table))
    return tables


def _empty_group(case: dict[str, Any], value: Any) -> bool:
    """Whether a result is that of a group of a table which has lost its last row."""
    upstream = case["params"].get("upstream", {"operator": "", "params": {}})
    return upstream["operator"] == "table_aggregate" and upstream["params"]["agg"] == "count" and value == 0


def rows_after(case: dict[str, Any]) -> dict[int, list[dict[str, Any]]]:
    """What comes out of a stream by the number of the inputs after which the case says so, since it last did."""
    if case.get("expected_per_record") is not None:
        return {number + 1: outputs for number, outputs in enumerate(case["expected_per_record"])}
    groups = case.get("expected_groups")
    if groups is not None:
        return {group["after_inputs"]: group["outputs"] for group in groups}
    return {} if case["expected_final"] is None else {len(case["inputs"]): case["expected_final"]}


def changes_after(case: dict[str, Any]) -> dict[int, Table]:
    """The last value of each key that the source names after some inputs; None where it is deleted."""
    if case["operator"] == "table_aggregate" or waits(case):
        return {}
    return {
        group["after_inputs"]: {
            key_of(output): None if _empty_group(case, output["value"]) else output["value"]
            for output in group["outputs"]
        }
        for group in case.get("expected_groups") or ()
    }


def final_table(case: dict[str, Any]) -> Table | None:
    """The table at the end; None where the case does not say."""
    if case["operator"] == "table_aggregate":
        tables = tables_after(case)
        return tables[-1] if tables else {}
    if case["expected_final"] is None:
        return None
    return {
        key_of(output): output["value"]
        for output in case["expected_final"]
        if output["value"] is not None and not _empty_group(case, output["value"])
    }


def waits(case: dict[str, Any]) -> int:
    """How much later than in Kafka Streams final sessions come: a row that is not late may still join them."""
    params = case["params"].get("upstream", case)["params"]
    suppressed = case["params"].get("suppress", {}).get("type") == "until_window_closes"
    final = params.get("window") == "session" and (suppressed or params.get("emit") == "final")
    return int(params["gap_ms"]) if final else 0


def key_of(output: dict[str, Any]) -> Any:
    """The key of an output; that of a windowed one has start and end."""
    return (output["key"], *output["window"]) if "window" in output else output["key"]


def states(case: dict[str, Any]) -> dict[int, Table]:
    """The tables that the source itself states after some inputs."""
    if case["operator"] == "table_aggregate":
        return {}
    return {state["after_inputs"]: _state(state) for state in case.get("expected_states") or ()}


def _state(state: dict[str, Any]) -> Table:
    if "sessions" in state:
        return {(key, first, last): value for key, first, last, value in state["sessions"]}
    return _plain(state["table"])


def _plain(table: Any) -> Table:
    entries = table.items() if isinstance(table, dict) else ((key_of(entry), entry["value"]) for entry in table)
    return {key: value["value"] if isinstance(value, dict) else value for key, value in entries}


def _aggregation(case: dict[str, Any], *, deletes: bool) -> list[Table]:
    params = case["params"]
    group = GROUPS[params.get("group_by", "identity")]
    add, remove, start = _functions(params)
    rows: dict[Any, Any] = {}
    members: dict[Any, int] = {}
    table: Table = {}
    tables = []
    for record in case["inputs"]:
        if record["key"] is not None:
            old = _pair(group, record["key"], rows.get(record["key"]))
            new = _pair(group, record["key"], record["value"])
            rows[record["key"]] = record["value"]
            unchanged = deletes and old == new
            if old is not None and not unchanged:
                table[old[0]] = remove(table[old[0]], old[1])
                members[old[0]] -= 1
                if deletes and not members[old[0]] and (new is None or new[0] != old[0]):
                    del table[old[0]]
            if new is not None and not unchanged:
                key, value = new
                empty = key not in table
                table[key] = add(start() if empty else table[key], value) if start or not empty else value
                members[key] = members.get(key, 0) + 1
        tables.append(dict(table))
    return tables


def _functions(params: dict[str, Any]) -> tuple[Any, Any, Any]:
    if params["agg"] == "count":
        return (lambda a, _: a + 1), (lambda a, _: a - 1), (lambda: 0)
    add, remove = binary(params["adder"]), binary(params["subtractor"])
    return add, remove, None if params["agg"] == "reduce" else (lambda: params["initializer"])


def _pair(group: Any, key: Any, value: Any) -> Any:
    pair = None if value is None else group(key, value)
    return None if pair is None or pair[0] is None else pair
