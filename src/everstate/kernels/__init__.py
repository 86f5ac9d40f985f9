"""What each operation does to rows and their state: pure functions on frames. Knows no Spark.

Read `rows.py` (what travels), `pipeline.py` and `stage.py` (the stage loop), then `operations/kernels.py`, which leads
to each operation. `pages/` is state, `records/` is bytes; `shard.py`, `parcel.py`, `ledger.py` and `output.py` are the
ways between them.
"""
