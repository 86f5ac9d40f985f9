"""What users type. Each call checks its arguments, notes the user's line and adds a frozen node; nothing runs.

`service.py` begins, `stream.py`, `table.py` and `grouped.py` are the fluent classes (`flow.py` has what the first two
share), whose methods delegate to `operations.py`, `stateful.py`, `windowing.py`, `joins/` and `processor.py`.
`arguments.py`, `functions.py` and `expressions.py` check, `sources.py` and `written.py` are the two ends; `absent.py`
says what to use instead of methods that are not there.
"""
