"""Objects as trees, by their content.

`values.py` begins; `instances.py`, `classes.py` and `members.py` are the long roads. `contents.py` and `arrays.py` take
what well-known types hold, `hints.py` type hints. `readings.py` says when names and docstrings are read as data, and
`twins.py` tells what a dataclass has written from what its user has.
"""
