"""The executor on Spark, and what a process does with a service; the only importer of PySpark.

`spark_run.py` is a process at work on Spark, for a command of `commands/`; `executor.py` is Spark as a deployment sees
it, `execution.py` one output while it runs. `jvm/` is Java, `query/` one query, `checkpoint/` what Spark leaves
on disk.
"""
