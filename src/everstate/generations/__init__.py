"""The life of an output's versions: registry, difference, cutover."""
