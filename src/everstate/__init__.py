"""Stateful streaming services in Python, on Spark, that never need a reset."""
