"""Carrying plans out, whatever executes the outputs.

Read `run.py` first: one process at work, on a `Site` (`site.py`), with an `Executor` (`executor.py`). `planning.py`
gathers what a plan must know; `takeover.py` and `leases.py` say who may; `rollout.py` says what happens when,
`change.py` and `build.py` do it, and `transitions.py` writes each step of a generation's life to the registry before
it is acted on. Then `migration.py`, `approval.py` and `cutover.py`. `settings.py` and `options.py` are what
users ask for.
"""
