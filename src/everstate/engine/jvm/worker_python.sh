#!/bin/sh
# What Spark starts as Python. Spark puts its own copies of PySpark and Py4J, which are zip files, ahead of all other
# folders; and what lies in a zip file is compiled again by every process that imports it. The installed ones are the same.
kept=
IFS=:
for entry in $PYTHONPATH; do
    case $entry in
    */pyspark.zip | */py4j-*-src.zip | */spark-core_*.jar) ;;
    *) kept=${kept:+$kept:}$entry ;;
    esac
done
PYTHONPATH=$kept exec "$EVERSTATE_WORKER_PYTHON" "$@"
