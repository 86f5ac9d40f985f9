"""The embedded log: a folder of immutable segment files and one SQLite manifest that says which of them count."""

from everstate.log.embedded.log import EmbeddedLog

__all__ = ["EmbeddedLog"]
