"""Functions as trees that all ways to write them have in common.

`functions.py` begins: `sources.py` finds the syntax, `syntax.py` and `templates.py` make a tree with open slots of it,
`slots.py` and `holes.py` say what stands in them, and `canonical.py` with `blocks.py`, `inlining.py` and
`evaluation.py` brings it into one form.
"""
