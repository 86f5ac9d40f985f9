"""From two descriptions to a list of actions. Printing a plan and carrying it out start from the same list."""
