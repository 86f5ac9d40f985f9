"""Fingerprints by meaning: what can change an output's results, whatever its text looks like."""

from everstate.topology.fingerprints.units import print_unit

__all__ = ["print_unit"]
