"""What the executor on Spark does without Spark."""

from __future__ import annotations

from everstate.engine.executor import SparkExecutor
from everstate.generations.deploy.settings import Settings
from everstate.log.memory import MemoryLog


def test_sweep_deletes_folders_of_the_named_generations_alone(tmp_path):
    for name in ("totals/1/checkpoint", "totals/2", "totals/3/checkpoint", "totals/@notes", "others/1"):
        (tmp_path / name).mkdir(parents=True)
    executor = SparkExecutor(MemoryLog(), tmp_path, Settings(), name="shop")
    executor.sweep("totals", {1, 3, 4})
    executor.sweep("never-deployed", {1})
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*"))
    assert left == ["others/1", "totals/2", "totals/@notes"]
