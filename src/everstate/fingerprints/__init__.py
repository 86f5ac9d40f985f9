"""Fingerprints by meaning: what can change an output's results, whatever its text looks like.

`outputs.py` begins: an output's print (`prints.py`) is made of the parts of its steps (`parts.py`), and each part of
all that it reaches (`reach.py`), as a tree (`tree.py`) that is hashed. `code/` makes trees of functions, `values/` of
objects, `expressions.py` of Polars expressions; `outside/` judges what code does besides its result. `noted/` keeps the
user's own text for plans, and `earlier.py` reads the prints that earlier versions have stored.
"""

from everstate.fingerprints.outputs import libraries, outline, print_unit

__all__ = ["libraries", "outline", "print_unit"]
