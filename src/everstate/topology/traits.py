"""What an operation is, for everyone who has to treat it in its own way: said once, with its node class.

Stages, plans, conversions and drawings go by these values, not by the names of operations, so a new operation is known
to all of them when its class says what it is. Traits are plain values: a print keeps them, since the code that made it
may no longer be importable.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Need(StrEnum):
    """What is needed of a source's past, from the least to the most."""

    NOTHING = "nothing"
    LATEST = "the latest record of each key"
    ALL = "every record"


@dataclass(frozen=True, kw_only=True)
class Traits:
    """What an operation is.

    Attributes:
        semantics: How it works. The number goes up when the same description gives other results.
        on_shard: It must see all rows of a key, so its rows are brought to the shard of their key.
        keeps_state: It has a store.
        scatters: The rows that it gives do not lie on the shard of their key.
        regroups: Rows meet under another key than they came with.
        rekeys_input: The ports on which rows get that key on their way in.
        looked_up: The ports whose rows drive nothing: rows of the others meet what has come before them.
        everywhere: The ports whose rows go to every shard.
        refers: Its rows refer to rows of another table by their key, so a result depends on several keys.
        orders_rows: It orders rows by time and position, so a row that moves in time is a change.
        order_sensitive: Its results depend on the order in which rows of several partitions arrive.
        timed: Stream time alone can change its results, so it also runs when no rows have come for it.
        clocked: So can the wall clock, which is recorded: it runs when time has passed, and on the same times again.
        clocked_by_tables: Where no stream feeds it, it goes by the stream time of the tables that do.
        holds_back: It keeps changes back for a time; while its generation is built, it lets all of them through.
        need: What it needs of the past of a table; of a stream every step needs every record.
        supersedes: It gives a stream of which only the last row of each key counts, so its topic is compacted.
        holds_source: It holds what a topic has and nothing else; people take it for a part of the source.
        holds_results: Its table can be read from its state.
        accumulates: It adds rows up, and takes back what a row has added when that row changes.
        own_state: What it stores is the user's own, in a form that no column tells.
        fills_defaults: The default of a new column can be put into its state, or no row is in there.
        declares_columns: The user declares the columns of its results, beside the function that makes them.
        converts: A function of the user's can convert its state.
        passes: Rows pass unchanged: it is there for a side effect, which is no part of what an output means.
    """

    semantics: int = 1
    on_shard: bool = False
    keeps_state: bool = False
    scatters: bool = False
    regroups: bool = False
    rekeys_input: tuple[int, ...] = ()
    looked_up: tuple[int, ...] = ()
    everywhere: tuple[int, ...] = ()
    refers: bool = False
    orders_rows: bool = False
    order_sensitive: bool = False
    timed: bool = False
    clocked: bool = False
    clocked_by_tables: bool = False
    holds_back: bool = False
    need: Need = Need.ALL
    supersedes: bool = False
    holds_source: bool = False
    holds_results: bool = False
    accumulates: bool = False
    own_state: bool = False
    fills_defaults: bool = False
    declares_columns: bool = False
    converts: bool = False
    passes: bool = False
