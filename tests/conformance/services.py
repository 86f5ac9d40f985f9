"""From a conformance case to a service, through the public API alone."""

from __future__ import annotations

from typing import Any

import everstate as es
from tests.conformance.functions import (
    FOREIGN_KEYS,
    GROUPS,
    KEY_MAPPERS,
    MAPPERS,
    PREDICATES,
    InexpressibleError,
    Known,
    aggregate_type,
    binary,
    kind_of,
    returns,
)

OUTPUT = "out"
#: How long a table is remembered that stream rows are joined with, where the case does not say.
_A_DAY = 86_400_000


def service_of(case: dict[str, Any]) -> es.Service:
    """A service with the case's operator, writing to `OUTPUT`."""
    app = es.Service("conformance")
    operation(app, case).to(OUTPUT)
    return app


def operation(app: Any, case: dict[str, Any]) -> Any:
    """The case's operator on topics of a service, or of what stands in for one."""
    return _OPERATORS[case["operator"]](app, case)


def sent(case: dict[str, Any], record: dict[str, Any]) -> tuple[Any, Any]:
    """Key and value of an input as they are sent; the key of a changelog of windows has start and end."""
    if not _of_windows(case):
        return record["key"], record["value"]
    value = None if record["value"] is None else {"value": record["value"]}
    return (record["key"], *record["window"]), value


def _of_windows(case: dict[str, Any]) -> bool:
    """Whether the inputs are results of windows."""
    return any("window" in record for record in case["inputs"])


def value_type(case: dict[str, Any], topic: str, part: str = "value") -> Any:
    """The type of the keys or values on a topic; text where there is none."""
    return kind_of(record[part] for record in case["inputs"] if record["topic"] == topic)


def _key_type(case: dict[str, Any], topic: str) -> Any:
    """The type of the keys on a topic; where it has none, that of the others."""
    found = [record["key"] for record in case["inputs"] if record["topic"] == topic]
    return kind_of(found if set(found) - {None} else [record["key"] for record in case["inputs"]])


def _table(app: es.Service, case: dict[str, Any], topic: str) -> es.Table:
    params = case["params"]
    versioned = params.get("table_versioned" if topic == "in" else f"{topic}_versioned", False)
    history = f"{params.get('history_retention_ms', _A_DAY)}ms" if versioned and topic == "table" else None
    return app.table(
        topic,
        schema=value_type(case, topic),
        key_type=_key_type(case, topic),
        versioned=versioned,
        history=history,
    )


def _filter(app: es.Service, case: dict[str, Any]) -> es.Table:
    return _table(app, case, "in").filter(PREDICATES[case["params"]["predicate"]])


def _filter_not(app: es.Service, case: dict[str, Any]) -> es.Table:
    holds = PREDICATES[case["params"]["predicate"]]
    return _table(app, case, "in").filter(lambda value: not holds(value))


def _map_values(app: es.Service, case: dict[str, Any]) -> es.Table:
    fn, schema = MAPPERS[case["params"]["mapper"]]
    return _table(app, case, "in").map(fn, schema=schema)


def _grouped(flow: Any, case: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The flow regrouped, its grouped value in column `v`; and all the values that it can have."""
    group = GROUPS[case["params"].get("group_by", "identity")]
    samples = [group(r["key"], r["value"]) for r in case["inputs"] if None not in (r["key"], r["value"])]
    pairs = [pair for pair in samples if pair is not None]
    keys, values = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    rows = flow.select(k="key", v="value")
    mapped = rows.filter(lambda row: group(row["k"], row["v"]) is not None).map(
        lambda row: dict(zip(("g", "v"), group(row["k"], row["v"]), strict=True)),
        schema={"g": kind_of(keys) | None, "v": kind_of(values)},
    )
    return mapped.group_by("g"), values


def _aggregated(flow: Any, case: dict[str, Any]) -> es.Table:
    params = case["params"]
    grouped, values = _grouped(flow, case)
    if params["agg"] == "count":
        return grouped.agg(value=es.count())
    add = binary(params["adder"])
    remove = binary(params["subtractor"]) if "subtractor" in params else None
    if params["agg"] == "reduce":
        combined = grouped.reduce(
            lambda a, b: {**a, "v": add(a["v"], b["v"])},
            None if remove is None else lambda a, b: {**a, "v": remove(a["v"], b["v"])},
        )
        return combined.map(lambda row: row["v"], schema=kind_of(values))
    start = params["initializer"]
    return grouped.aggregate(
        lambda: start,
        lambda a, row: add(a, row["v"]),
        None if remove is None else lambda a, row: remove(a, row["v"]),
        schema=aggregate_type(params["adder"], start, values),
    )


def _stream_aggregate(app: es.Service, case: dict[str, Any]) -> es.Table:
    stream = app.stream("in", schema=value_type(case, "in"), key_type=value_type(case, "in", "key"))
    return _aggregated(stream, case)


def _window_aggregate(app: es.Service, case: dict[str, Any], topic: str = "in") -> es.Table:
    params = case["params"]
    stream = app.stream(topic, schema=value_type(case, topic), key_type=value_type(case, topic, "key"))
    window, emit = _WINDOWS[params["window"]](params), params.get("emit", "update")
    grouped = stream.select(v="value").group_by("key").window(window, emit=emit)
    values = [record["value"] for record in case["inputs"] if record["topic"] == topic]
    if params["agg"] == "count":
        return grouped.agg(value=es.count())
    add = binary(params["adder"])
    if params["agg"] == "reduce":
        combined = grouped.reduce(lambda a, b: {**a, "v": add(a["v"], b["v"])})
        return combined.map(lambda row: row["v"], schema=kind_of(values))
    start = params["initializer"]
    kind = aggregate_type(params["adder"], start, values)
    merges = params["window"] == "session" and "merger" in params
    merge = binary(params["merger"]) if merges else None
    return grouped.aggregate(lambda: start, lambda a, row: add(a, row["v"]), schema=kind, merge=merge)


def _windowed_join(app: es.Service, case: dict[str, Any]) -> es.Table:
    params = case["params"]
    left, right = (_window_aggregate(app, {**case, **params[side]}, side) for side in ("left", "right"))
    return _joined(left, right, params["join"], params["joiner"], str)


def _stream(app: es.Service, case: dict[str, Any], topic: str) -> es.Stream:
    return app.stream(topic, schema=value_type(case, topic), key_type=_key_type(case, topic))


def _streams_joined(left: es.Stream, right: es.Stream, how: str, case: dict[str, Any]) -> es.Stream:
    params = case["params"]
    return left.join(
        right,
        within=(f"{params['before_ms']}ms", f"{params['after_ms']}ms"),
        grace=f"{params['grace_ms']}ms",
        how=how,
        joiner=binary(params["joiner"]),
        schema=returns(params["joiner"], value_type(case, "left")),
    )


def _stream_join(app: es.Service, case: dict[str, Any]) -> es.Stream:
    params = case["params"]
    left = _stream(app, case, "left")
    right = left if case["operator"] == "stream_self_join" else _stream(app, case, "right")
    for how in params.get("joins") or [params["join"]]:
        left = _streams_joined(left, right, how, case)
    return left


def _table_looked_up(app: es.Service, case: dict[str, Any]) -> es.Stream:
    params = case["params"]
    return _stream(app, case, "stream").join(
        _table(app, case, "table"),
        how=params["join"],
        grace=f"{params['grace_ms']}ms" if "grace_ms" in params else None,
        joiner=binary(params["joiner"]),
        schema=returns(params["joiner"], value_type(case, "stream")),
    )


def _global_looked_up(app: es.Service, case: dict[str, Any]) -> es.Stream:
    params = case["params"]
    everywhere = app.global_table(
        "global", schema=value_type(case, "global"), key_type=value_type(case, "global", "key")
    )
    return _stream(app, case, "stream").join(
        everywhere,
        on=KEY_MAPPERS[params["key_mapper"]],
        how=params["join"],
        joiner=binary(params["joiner"]),
        schema=returns(params["joiner"], value_type(case, "stream")),
    )


def _held_back(table: es.Table, case: dict[str, Any]) -> es.Table:
    how = case["params"]["suppress"]
    more = sorted(how.keys() - {"type", "wait_ms", "wait_is", "max_records", "when_full"})
    if more:
        raise InexpressibleError(f"suppress by {', '.join(more)}")
    if how["type"] not in ("until_window_closes", "until_time_limit"):
        raise InexpressibleError(f"suppress {how['type']!r}")
    if how["type"] == "until_window_closes":
        return table.suppress(until="close")
    until = None if how["wait_ms"] == _FOREVER else f"{how['wait_ms']}ms"
    full = {"emit_early": "emit", "shut_down": "fail"}[how.get("when_full", "emit_early")]
    return table.suppress(until=until, max_keys=how.get("max_records"), when_full=full)


def _suppressed(app: es.Service, case: dict[str, Any]) -> es.Table:
    upstream = case["params"]["upstream"]
    return _held_back(_OPERATORS[upstream["operator"]](app, {**case, **upstream}), case)


def _suppressed_then_counted(app: es.Service, case: dict[str, Any]) -> es.Table:
    params = {"agg": "count", "group_by": case["params"]["group_by"]}
    return _aggregated(_held_back(_table(app, case, "in"), case), {**case, "params": params})


def _suppressed_join(app: es.Service, case: dict[str, Any]) -> es.Table:
    params, sides = case["params"], {side: _table(app, case, side) for side in ("left", "right")}
    sides[params["suppressed_side"]] = _held_back(sides[params["suppressed_side"]], case)
    return _joined(sides["left"], sides["right"], params["join"], params["joiner"], value_type(case, "left"))


def _suppressed_changelog(app: es.Service, case: dict[str, Any]) -> es.Table:
    """The changelog as it reaches suppress: a table, or for windows that close a stream of their results."""
    if case["params"]["suppress"]["type"] == "until_window_closes":
        return _held_back(_results_of_windows(app, case), case)
    if case.get("expect_error") and all(record["value"] is None for record in case["inputs"]):
        raise InexpressibleError("deletions of keys that have no row: they change nothing, so nothing is held back")
    if not _of_windows(case):
        return _held_back(_table(app, case, "changelog"), case)
    schema = {**_windowed_key(case), "value": value_type(case, "changelog")}
    return _held_back(app.table("changelog", key=list(_windowed_key(case)), schema=schema), case)


def _windowed_key(case: dict[str, Any]) -> dict[str, Any]:
    return {"key": _key_type(case, "changelog"), "window_start": int, "window_end": int}


def _results_of_windows(app: es.Service, case: dict[str, Any]) -> es.Table:
    """Windows whose last record is their result; the time of a record is its own where it lies in its window."""
    inputs, key = case["inputs"], _windowed_key(case)
    if not all("window" in record for record in inputs):
        raise InexpressibleError("until_window_closes holds back results of windows, and an input has no window")
    named = [(record["key"], *record["window"]) for record in inputs]
    alive = {name for name, record in zip(named, inputs, strict=True) if record["value"] is not None}
    if any(record["value"] is None and name in alive for name, record in zip(named, inputs, strict=True)):
        raise InexpressibleError("a window of a stream that has a result cannot lose it again")
    spans = {end - start for name, start, end in alive} or {1}
    size = spans.pop()
    if spans or not size or any(start % size for _, start, _ in alive):
        raise InexpressibleError("results of sessions, or of windows that differ in size, as an input")
    own = all(start <= record["ts"] < end for record in inputs for start, end in [record["window"]])
    stream = app.stream(
        "changelog",
        key=list(key),
        schema={**key, "value": value_type(case, "changelog")},
        time=None if own else es.col("window_start"),
    )
    window = es.tumbling(f"{size}ms", grace=f"{case['params']['suppress']['wait_ms']}ms")
    grouped = stream.select(k="key", v="value").group_by("k").window(window)
    return grouped.reduce(lambda _, row: row).select(value="v")


#: How long something is held back that nothing but a lack of room lets out.
_FOREVER = 2**63 - 1


_WINDOWS: dict[str, Any] = Known(
    "the window",
    {
        "tumbling": lambda params: es.tumbling(f"{params['size_ms']}ms", grace=f"{params['grace_ms']}ms"),
        "hopping": lambda params: es.hopping(
            f"{params['size_ms']}ms", f"{params['advance_ms']}ms", grace=f"{params['grace_ms']}ms"
        ),
        "sliding": lambda params: es.sliding(f"{params['time_difference_ms']}ms", grace=f"{params['grace_ms']}ms"),
        "session": lambda params: es.session(f"{params['gap_ms']}ms", grace=f"{params['grace_ms']}ms"),
    },
)


def _table_aggregate(app: es.Service, case: dict[str, Any]) -> es.Table:
    return _aggregated(_table(app, case, "in"), case)


def _filter_then_reduce(app: es.Service, case: dict[str, Any]) -> es.Table:
    return _aggregated(_filter(app, case), {**case, "params": {"agg": "reduce", **case["params"]}})


def _joined(left: es.Table, right: es.Table, how: str, joiner: dict[str, Any], value: Any) -> es.Table:
    return left.join(right, how=how, joiner=binary(joiner), schema=returns(joiner, value))


def _join(app: es.Service, case: dict[str, Any]) -> es.Table:
    params = case["params"]
    left, right = _table(app, case, "left"), _table(app, case, "right")
    return _joined(left, right, params["join"], params["joiner"], value_type(case, "left"))


def _join_chain(app: es.Service, case: dict[str, Any]) -> es.Table:
    params = case["params"]
    left, right = _table(app, case, "left"), _table(app, case, "right")
    for how in params["joins"]:
        left = _joined(left, right, how, params["joiner"], value_type(case, "left"))
    return left


def _foreign_join(app: es.Service, case: dict[str, Any]) -> es.Table:
    params = case["params"]
    left, right = _table(app, case, "left"), _table(app, case, "right")
    joiner = params["joiner"]
    return left.join(
        right,
        how=params["join"],
        on=FOREIGN_KEYS[params["fk_extractor"]],
        joiner=binary(joiner),
        schema=returns(joiner, value_type(case, "left")),
    )


def _foreign_join_then_join(app: es.Service, case: dict[str, Any]) -> es.Table:
    params = case["params"]
    first, joiner = _foreign_join(app, case), params.get("then_joiner", params["joiner"])
    left = _table(app, case, "left")
    return _joined(left, first, params.get("then_join", params["join"]), joiner, value_type(case, "left"))


_OPERATORS: dict[str, Any] = Known(
    "the operator",
    {
        "table_source": lambda app, case: _table(app, case, "in"),
        "table_filter": _filter,
        "table_filter_not": _filter_not,
        "table_map_values": _map_values,
        "table_filter_then_reduce": _filter_then_reduce,
        "stream_aggregate": _stream_aggregate,
        "table_aggregate": _table_aggregate,
        "window_aggregate": _window_aggregate,
        "suppress": _suppressed,
        "suppress_then_count": _suppressed_then_counted,
        "suppressed_table_join": _suppressed_join,
        "suppress_changelog": _suppressed_changelog,
        "windowed_table_join": _windowed_join,
        **dict.fromkeys(("stream_stream_join", "stream_stream_join_chain", "stream_self_join"), _stream_join),
        "stream_table_join": _table_looked_up,
        "stream_global_join": _global_looked_up,
        "table_table_join": _join,
        "table_table_join_chain": _join_chain,
        "fk_join": _foreign_join,
        "fk_join_then_table_join": _foreign_join_then_join,
    },
)
