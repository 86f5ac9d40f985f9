"""The micro-batches that a recalculation repeats, as kernels know them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.kernels.order import Order
from everstate.log.planning import given_by
from everstate.log.vectors import CLOCK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.log.stops import Stops


def order_of(stops: Stops | None, topics: Sequence[str]) -> Order | None:
    """The order of rows that arrived in these micro-batches, with the clock of each; None without any.

    Args:
        stops: Where they ended, as it matters to the output (`everstate.log.planning.suited`).
        topics: The unit's topics.
    """
    if not stops:
        return None
    columns = stops.columns()
    given = ((number, at.topic, at.partition, at.time) for number, _, at in given_by(stops) if at.topic in topics)
    return Order.of_columns(columns, len(stops), topics, clocks=columns.get((CLOCK, 0)), given=given)
