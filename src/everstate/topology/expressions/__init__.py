"""What a row expression may be: walked node by node, against lists of what is known to work row by row.

`rows.py` walks, `allowed.py` is the list, `refusals.py` says what to write instead, `trial.py` tries expressions on
made-up rows while a service is built, `trees.py` reads what Polars writes, `python_text.py` shows it to people.
"""
