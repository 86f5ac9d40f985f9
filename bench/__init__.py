"""Measurements of Everstate beside Spark's own ways of keeping state: `python -m bench`, or `make bench`."""
