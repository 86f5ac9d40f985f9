"""What a process does with a service, one module each: run it, preview a change, go back, tidy up, look.

Begin with `runner.py`. `preview.py` and `rollback.py` are a deployment with another end; `explanation.py` says how a
key came about, `inventory.py` lists generations, `discarding.py`, `clearing.py` and `removing.py` delete.
"""
