"""The archive of a source: records that a service keeps after its topic has let them go.

`archive.py` is the document that says what is kept, `files.py` the files that it names, `coverage.py` which offsets
archive and topic have together, and `reading.py` reads both as one.
"""

from everstate.log.archive.archive import Archive, ArchiveFile, PartitionArchive
from everstate.log.archive.reading import Past, load

__all__ = ["Archive", "ArchiveFile", "PartitionArchive", "Past", "load"]
