from __future__ import annotations

import json
import os
import subprocess
import sys

from everstate.engine.jvm.workers import worker_environment


def paths(**environment):
    """What a worker has on its path, with this environment."""
    given = {**os.environ, **worker_environment(), **environment}
    command = [given["PYSPARK_PYTHON"], "-c", "import json, sys; print(json.dumps([sys.executable, *sys.path]))"]
    return json.loads(subprocess.run(command, env=given, capture_output=True, text=True, check=True).stdout)


def test_worker_python_leaves_out_what_spark_puts_first_and_keeps_the_users_folders(tmp_path):
    mine = tmp_path / "my modules"
    spark = tmp_path / "python" / "lib"
    found = paths(
        PYTHONPATH=f"{spark}/pyspark.zip:{spark}/py4j-0.10.9.9-src.zip:{tmp_path}/spark-core_2.13-4.3.0.jar:{mine}:/other"
    )
    assert found[0] == sys.executable
    assert [path for path in found if path.startswith((str(tmp_path), "/other"))] == [str(mine), "/other"]


def test_worker_python_without_a_path_of_its_own_is_this_one():
    assert paths(PYTHONPATH="")[0] == sys.executable
