"""The archive of a source: records that a service keeps after its topic has let them go."""

from everstate.log.history.archive import Archive, ArchiveFile, PartitionArchive
from everstate.log.history.reading import Past, load

__all__ = ["Archive", "ArchiveFile", "PartitionArchive", "Past", "load"]
