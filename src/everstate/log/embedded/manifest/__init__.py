"""The database that says what the files of an embedded log mean: its tables, identity, formats and damage.

`manifest.py` opens it and gives out transactions; `catalogue.py` is topics and segments; `schema.py` the tables.
"""
