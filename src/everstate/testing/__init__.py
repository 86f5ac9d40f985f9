"""Testing services in the test's own process, without Spark.

`driver.py` is what tests call; `deployment.py` deploys a version as `everstate run` does, on the topics in memory of
`topics.py`; `schemas.py` and `plain.py` turn a test's values into records and back.
"""

from everstate.testing.driver import Driver, DriverRecord, Upgrade

__all__ = ["Driver", "DriverRecord", "Upgrade"]
