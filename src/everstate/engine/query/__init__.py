"""One output as a Spark streaming query, from its source to its commit.

`query.py` puts it together: `source.py` and `source_task.py` read, `processor.py` and `shard_task.py` run the stages on
`spark_pages.py`, `sink.py` commits. `job.py` is what tasks need to know, `failures.py` and `watchdog.py` what may go
wrong.
"""
