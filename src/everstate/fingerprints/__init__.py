"""Fingerprints by meaning: what can change an output's results, whatever its text looks like."""

from everstate.fingerprints.outputs import libraries, outline, print_unit

__all__ = ["libraries", "outline", "print_unit"]
