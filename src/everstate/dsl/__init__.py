"""What users type. Each call checks its arguments, notes the user's line and adds a frozen node; nothing runs.

`service.py` begins, `stream.py`, `table.py` and `grouped.py` are the fluent classes, whose methods delegate to
`operations.py` and `stateful.py`. `arguments.py`, `functions.py` and `expressions.py` check; `absent.py` says what to
use instead of methods that are not there.
"""
