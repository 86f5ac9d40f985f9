#!/bin/sh
# What Spark starts as Python. Spark puts its own copies of PySpark and Py4J, which are zip files, ahead of all other
# folders; and what lies in a zip file is compiled again by every process that imports it. The installed ones are the same.
# On a cluster this script lies beside a copy of Everstate, on a disk that all machines see.
here=${0%/*}
kept=
[ -d "$here/everstate" ] && kept=$here
IFS=:
for entry in $PYTHONPATH; do
    case $entry in
    */pyspark.zip | */py4j-*-src.zip | */spark-core_*.jar) ;;
    *) kept=${kept:+$kept:}$entry ;;
    esac
done
python=${EVERSTATE_DRIVER_PYTHON:-$EVERSTATE_WORKER_PYTHON}
if ! command -v "$python" >/dev/null 2>&1; then
    echo "everstate: there is no Python at $python on $(hostname 2>/dev/null)" >&2
    exit 127
fi
PYTHONPATH=$kept exec "$python" "$@"
