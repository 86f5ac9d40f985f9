"""What code does besides its arguments and its result: whose code it is, what is known of it, and what is refused.

`effects.py` lists the effects, `lookup.py` what is known of names that are not the user's, `judging.py` puts together
what a part reaches; the others look for one kind each, `remembering.py` (with `chains.py`) for memory between calls.
"""
