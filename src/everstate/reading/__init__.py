"""Looking at topics from outside a service: frames for people and notebooks, files, and what `consume` shows.

Read in this order: `spans` (which records), `forms` (how they are decoded: as a service or a caller declares) and
`inference` (as they look), `bad_records` (what cannot be decoded is told, never dropped in silence), `frames`
(`read_table` and `read_stream`), `files` (`everstate export`). Nothing here writes to a log, and nothing needs Spark.
"""
