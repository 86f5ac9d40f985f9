"""`reduce()` and `aggregate()`: the user's own add and remove.

`fold.py` keeps the groups, `folding.py` calls the user's functions, `refolding.py` folds a table's groups again.
"""
