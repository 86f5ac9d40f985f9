"""Sources and outputs of Spark's own: `feed.py` brings rows to a topic, `delivery.py` hands on what a topic gets.

Read `crossings.py` first: when they run, under which leases, and what ends them. `tasks.py` is what workers do, and
`columns.py` says which of Spark's types are which of ours.
"""
