"""A standalone cluster: how its machines get what a task needs, and whether they have it.

Read `cluster.py` first. `package.py` brings Everstate to the machines, `probe.py` asks each of them, and
`examination.py` judges the answers; `executors.py` and `network.py` are who is there, and how they reach each other.
"""
