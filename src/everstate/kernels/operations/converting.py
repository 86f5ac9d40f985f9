"""Calls of the user's `migrate` functions, and what is said where one fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everstate.errors import EverstateError, MigrationError
from everstate.kernels.functions import reason
from everstate.schema.record_values import check_row
from everstate.topology.names import noun

if TYPE_CHECKING:
    from everstate.schema.schema import Schema
    from everstate.topology.functions import Function
    from everstate.topology.nodes import Node


def function_of(node: Node) -> Function:
    """The function that converts what a step stores.

    Raises:
        MigrationError: If it has none.
    """
    if node.converter is None:
        raise MigrationError(f"the {noun(node.operation, node.traits)} has no migrate function", location=node.location)
    return node.converter


def converted(function: Function, value: Any, key: bytes) -> Any:
    """What the function makes of a key's value.

    Raises:
        MigrationError: If it raises.
    """
    try:
        return function.call(value)
    except Exception as error:  # noqa: BLE001 - whatever the user's code raises
        raise failure(function, key, reason(error, function)) from None


def fitting(function: Function, result: Any, schema: Schema, key: bytes) -> dict[str, Any]:
    """The function's result as columns.

    Raises:
        MigrationError: If it does not fit the schema.
    """
    try:
        return check_row(result, schema)
    except EverstateError as error:
        raise failure(function, key, f"wrong result: {error.message}") from None


def failure(function: Function, key: bytes, why: str) -> MigrationError:
    """The error for a key that cannot be converted."""
    return MigrationError(
        f"{function.name} cannot convert what is stored for key {key.decode(errors='replace')!r}: {why}",
        location=function.location,
    )
