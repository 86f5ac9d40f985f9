"""Small documents that a service keeps beside its topics. Every function runs inside a transaction of the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping


def read(database: sqlite3.Connection, service: str, prefix: str = "") -> dict[str, str]:
    """All documents of a service whose names begin like this, by name."""
    rows = database.execute(
        "SELECT * FROM documents WHERE service = ?1 AND name >= ?2 AND substr(name, 1, length(?2)) = ?2 ORDER BY name",
        (service, prefix),
    )
    return {row["name"]: row["value"] for row in rows}


def read_one(database: sqlite3.Connection, service: str, name: str) -> str | None:
    """One document of a service."""
    row = database.execute("SELECT * FROM documents WHERE service = ? AND name = ?", (service, name)).fetchone()
    return None if row is None else str(row["value"])


def services(database: sqlite3.Connection) -> list[str]:
    """The services that have documents, sorted."""
    rows = database.execute("SELECT DISTINCT service AS name FROM documents ORDER BY service")
    return [str(row["name"]) for row in rows]


def write(database: sqlite3.Connection, service: str, documents: Mapping[str, str | None]) -> None:
    """Store documents; None deletes one."""
    for name, value in documents.items():
        if value is None:
            database.execute("DELETE FROM documents WHERE service = ? AND name = ?", (service, name))
        else:
            database.execute(
                "INSERT OR REPLACE INTO documents (service, name, value) VALUES (?, ?, ?)", (service, name, value)
            )


def forget(database: sqlite3.Connection, service: str) -> None:
    """Delete all of a service's."""
    database.execute("DELETE FROM documents WHERE service = ?", (service,))
