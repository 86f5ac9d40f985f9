"""From two descriptions to a list of actions. Printing a plan and carrying it out start from the same list.

`service_decision.py` begins, `output_decision.py` decides for one output from its facts (`facts.py`) and differences
(`differences.py`, `parts.py`, `matching.py`); `actions.py` is what comes out, and `steps.py` what is done then.
`explaining.py` adds what the user edited (`edits.py`). `text.py`, with `shown/`, and `document.py` write it for people
and machines. Plain values only: no frames, no log, no effects.
"""
