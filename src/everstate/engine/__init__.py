"""Runs a topology as Spark streaming queries; the only importer of pyspark besides the log's Spark side."""
