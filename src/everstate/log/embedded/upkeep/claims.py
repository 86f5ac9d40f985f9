"""Who tends a topic at the moment: two that rewrite the same segments would work for nothing, since one of them loses.

A claim is a lease that is given back by deleting it, so that of a process that died it is free at once.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from everstate.errors import LeaseHeldError
from everstate.log import leasing
from everstate.log.embedded import leases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.log.embedded.manifest.catalogue import Topic
    from everstate.log.embedded.store import Store


@contextmanager
def claimed(store: Store, topic: Topic) -> Iterator[bool]:
    """Whether nobody else tends the topic, in this process or another; nobody does until the block ends."""
    name = f"@tending/{topic.identity}"
    try:
        with store.manifest.writing(durable=False) as database:
            leases.acquire(database, name, leasing.this_process(), take_over=False, now_ms=store.clock())
    except LeaseHeldError:
        yield False
        return
    try:
        yield True
    finally:
        with store.manifest.writing(durable=False) as database:
            database.execute("DELETE FROM leases WHERE name = ?", (name,))
