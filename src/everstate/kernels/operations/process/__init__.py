"""Processors: functions with named states and timers, row by row."""
