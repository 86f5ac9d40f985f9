"""The description of a service: frozen nodes, each pointing at its inputs.

`node.py` says what every node has; the other modules have one class for each operation. Code of deployed generations is
kept with the names that are found here, so none of them goes; an operation that is added need not be among them.
"""

from __future__ import annotations

from everstate.topology.nodes.grouping import Aggregate, Fold, Grouping, RekeyTable
from everstate.topology.nodes.joins import ForeignJoin, Join
from everstate.topology.nodes.lookups import (
    HistoryJoin,
    StreamGlobalJoin,
    StreamTableForeignJoin,
    StreamTableJoin,
    TableGlobalJoin,
)
from everstate.topology.nodes.node import Keying, Kind, Node, OnChange, Side
from everstate.topology.nodes.output import Output
from everstate.topology.nodes.processor import Exit, KeptState, Process, Routed
from everstate.topology.nodes.removal import Removal
from everstate.topology.nodes.sources import Latest, LatestByTime, Source
from everstate.topology.nodes.stateful import Stateful
from everstate.topology.nodes.stateless import Filter, FlatMap, Map, Merge, Peek, Project, RekeyStream
from everstate.topology.nodes.stream_joins import StreamJoin
from everstate.topology.nodes.table_windows import (
    TableRowWindowAggregate,
    TableRowWindowFold,
    TableWindowAggregate,
    TableWindowed,
    TableWindowFold,
)
from everstate.topology.nodes.timed import Dedup, Expire, Suppress
from everstate.topology.nodes.windows import (
    RowWindowAggregate,
    RowWindowed,
    RowWindowFold,
    SessionFold,
    Spanned,
    WindowAggregate,
    Windowed,
    WindowFold,
)

__all__ = [
    "Aggregate",
    "Dedup",
    "Exit",
    "Expire",
    "Filter",
    "FlatMap",
    "Fold",
    "ForeignJoin",
    "Grouping",
    "HistoryJoin",
    "Join",
    "KeptState",
    "Keying",
    "Kind",
    "Latest",
    "LatestByTime",
    "Map",
    "Merge",
    "Node",
    "OnChange",
    "Output",
    "Peek",
    "Process",
    "Project",
    "RekeyStream",
    "RekeyTable",
    "Removal",
    "Routed",
    "RowWindowAggregate",
    "RowWindowFold",
    "RowWindowed",
    "SessionFold",
    "Side",
    "Source",
    "Spanned",
    "Stateful",
    "StreamGlobalJoin",
    "StreamJoin",
    "StreamTableForeignJoin",
    "StreamTableJoin",
    "Suppress",
    "TableGlobalJoin",
    "TableRowWindowAggregate",
    "TableRowWindowFold",
    "TableWindowAggregate",
    "TableWindowFold",
    "TableWindowed",
    "WindowAggregate",
    "WindowFold",
    "Windowed",
]
