from tests.spark_session import log, run, spark, topics

__all__ = ["log", "run", "spark", "topics"]
