"""Objects as trees, by their content: `values.py` begins, `instances.py` and `classes.py` are the long roads."""
