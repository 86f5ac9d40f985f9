"""Testing services in the test's own process, without Spark."""

from everstate.testing.driver import Driver, DriverRecord, Upgrade

__all__ = ["Driver", "DriverRecord", "Upgrade"]
