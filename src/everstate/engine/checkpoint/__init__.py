"""What Spark leaves on disk.

`checkpoint.py` reads it, and `changelog.py` what a changelog of state builds on; `inspection.py` checks both before a
start. `clone.py` makes one that begins where another was, for a migration, and `relocation.py` takes care of paths that
Spark has written into it.
"""
