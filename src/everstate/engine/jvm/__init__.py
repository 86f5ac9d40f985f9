"""Spark's Java process: finding Java, starting it quickly, what it writes, and the one session in it.

`session.py` is the way in, `spark.py` says when it is started; `class_archive.py` and `archive_training.py` make that
quick, `relay.py` and `reports.py` decide who gets to see what Java says.
"""
