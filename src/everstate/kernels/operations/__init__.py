"""What each operation does to rows and its state, one module each; `kernels.py` is the table of them all.

Begin with `stateless.py` (rows alone), then `latest.py` (the smallest state), `join.py`, `stateful.py`; `fold/` and
`aggregate/` are the large ones. `pairs.py` is what both joins have in common, `user_state.py` what functions may keep,
`converting.py` how functions convert what they kept.
"""
