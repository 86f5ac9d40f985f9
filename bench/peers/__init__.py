"""Other programs that do the same work, each in an environment of its own."""
