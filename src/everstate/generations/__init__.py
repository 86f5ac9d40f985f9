"""Versions of an output, from the plan that begins one to the tombstones of its last key. Never reaches PySpark.

`generation.py` is one version and its life, `registry.py` where they are written down. `compare/` finds what differs
between a version and its topic, `state/` is what a version keeps on disk and of its sources, `deploy/` carries
plans out.
"""
