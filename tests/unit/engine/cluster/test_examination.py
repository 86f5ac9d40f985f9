from __future__ import annotations

import pytest

from everstate.engine.cluster import probe
from everstate.engine.cluster.cluster import Cluster
from everstate.engine.cluster.examination import Examination
from everstate.errors import ConfigurationError, EngineError
from everstate.generations.deploy.settings import Settings


@pytest.fixture
def examination(tmp_path):
    folder = tmp_path / "probe"
    folder.mkdir()
    (folder / "driver").write_text("token")
    return Examination(folder, "token", ("numpy",), "/opt/python")


def test_examination_of_a_machine_that_has_everything_passes(examination):
    examination.judge([probe.answer(examination.question)])


def test_examination_of_a_machine_without_the_folder_names_both(examination, tmp_path):
    question = {**examination.question, "folder": str(tmp_path / "elsewhere")}
    with pytest.raises(ConfigurationError, match="does not share") as caught:
        examination.judge([probe.answer(question)])
    assert str(tmp_path) in caught.value.message
    assert "--state-dir" in caught.value.hint


def test_examination_of_a_machine_with_other_files_under_the_path_is_refused(examination):
    with pytest.raises(ConfigurationError, match="different files"):
        examination.judge([probe.answer({**examination.question, "token": "another"})])


def test_examination_of_a_machine_whose_files_are_not_seen_here_is_refused(examination):
    told = {**probe.answer(examination.question), "wrote": "not-here"}
    with pytest.raises(ConfigurationError, match=r"cannot be read here: No such file"):
        examination.judge([told])


def test_examination_of_a_machine_without_a_package_gives_the_command(examination):
    told = probe.answer(examination.question)
    told["packages"].update({"numpy": None, "polars": "0.1"})
    with pytest.raises(EngineError, match=r"polars==\S+ 0.1, numpy missing") as caught:
        examination.judge([told])
    ours = probe.versions(["polars"])["polars"]
    assert f"/opt/python -m pip install 'polars=={ours}' 'numpy'" in caught.value.hint


def test_examination_of_another_python_is_refused(examination):
    with pytest.raises(EngineError, match=r"has Python 2.7.18"):
        examination.judge([{**probe.answer(examination.question), "python": "2.7.18"}])


def test_examination_embedded_log_on_another_machine_is_refused(examination, tmp_path):
    with_log = Examination(examination.folder, "token", (), "/opt/python", tmp_path)
    with_log.judge([probe.answer(with_log.question)])
    with pytest.raises(ConfigurationError, match="embedded log") as caught:
        with_log.judge([{**probe.answer(with_log.question), "machine": "another"}])
    assert "kafka://" in caught.value.hint


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        (
            'Cannot run program "/mnt/worker_python.sh": Exec failed, error=2, No such file or directory',
            ConfigurationError,
            "cannot run /mnt/worker_python.sh: No such file",
        ),
        (
            "Error from python worker:\n  everstate: there is no Python at /opt/py on one\n",
            EngineError,
            "there is no Python",
        ),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9",
            EngineError,
            "has a different Python",
        ),
        ("ModuleNotFoundError: No module named 'pyspark'", EngineError, "lacks the package pyspark"),
        ("Job aborted", EngineError, "no task can be run on spark://host:7077: Job aborted"),
    ],
)
def test_cluster_where_no_task_begins_says_why(tmp_path, said, kind, message):
    cluster = Cluster(Settings(master="spark://host:7077"), tmp_path, "kafka://broker:9092")
    named = cluster._named(said)
    assert isinstance(named, kind)
    assert message in named.message
    assert named.hint
