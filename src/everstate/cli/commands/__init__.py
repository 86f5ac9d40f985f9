"""The commands, one module each: options and texts, while what they do is below.

Begin with `run.py` and `plan.py`, which have the options of a deployment; `consume.py` and `produce.py` are the largest
of those that look at topics. `main.py`, one folder up, says which commands there are.
"""
