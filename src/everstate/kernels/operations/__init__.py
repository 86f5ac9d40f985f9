"""What each operation does to rows and its state, one module each; `kernel.py` says what each declares to be found.

Begin with `stateless.py` (rows alone), then `latest.py` (the smallest state), `join.py`, `stateful.py`; `fold/`,
`aggregate/`, `windows/` and `process/` are the large ones, `lookups/` a stream beside a table. `pairs.py` is what both
joins of tables have in common, `user_state.py` what functions may keep, `converting.py` how functions convert what they
kept.
"""
