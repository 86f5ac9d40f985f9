"""Records to rows and back, whole frames at a time; knows no state and no operation.

`decode.py` and `encode.py` are the two ways in and out; `json_lines.py` and `wire.py` are JSON for them, `keys.py` the
keys, `python_rows.py` the rows that a user's function sees. `schema/` has the strict codec for one record that judges
all of them.
"""
