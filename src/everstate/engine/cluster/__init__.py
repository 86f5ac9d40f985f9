"""A standalone cluster: how its machines get what a task needs, and whether they have it."""
