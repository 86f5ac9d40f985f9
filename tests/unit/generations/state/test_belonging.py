from __future__ import annotations

import pytest

from everstate.errors import CheckpointDamagedError, StateError
from everstate.generations.state.belonging import check_log, forget_log, remember_log
from everstate.log import EmbeddedLog


@pytest.fixture
def log(tmp_path):
    made = EmbeddedLog(tmp_path / "log")
    made.create_topic("orders")
    return made


def test_state_of_this_log_is_accepted_wherever_the_folder_is(log, tmp_path):
    remember_log(tmp_path / "state", log)
    check_log(tmp_path / "state", log)
    log.close()
    log.path.rename(tmp_path / "moved")
    check_log(tmp_path / "state", EmbeddedLog(tmp_path / "moved"))


@pytest.mark.parametrize("there", [False, True])
def test_state_of_another_log_is_refused_with_the_cure(log, tmp_path, there):
    remember_log(tmp_path / "state", log)
    other = EmbeddedLog(tmp_path / "other")
    if there:
        other.create_topic("orders")
    with pytest.raises(StateError, match="belongs to the log that was in") as caught:
        check_log(tmp_path / "state", other)
    assert "everstate clear" in caught.value.hint
    remember_log(tmp_path / "state", other)
    check_log(tmp_path / "state", log)
    forget_log(tmp_path / "state")
    check_log(tmp_path / "state", other)


def test_state_from_before_logs_had_ids_is_taken_over(log, tmp_path):
    (tmp_path / "state").mkdir()
    check_log(tmp_path / "state", log)
    remember_log(tmp_path / "state", log)
    check_log(tmp_path / "state", log)


def test_state_whose_note_is_damaged_is_named(log, tmp_path):
    remember_log(tmp_path / "state", log)
    path = tmp_path / "state" / "log.json"
    path.write_bytes(path.read_bytes().replace(b'"id": "', b'"id": "0'))
    with pytest.raises(CheckpointDamagedError):
        check_log(tmp_path / "state", log)


def test_state_in_a_place_that_is_no_folder_belongs_to_no_log(log, tmp_path):
    (tmp_path / "file").write_text("")
    check_log(tmp_path / "file", log)
    check_log(tmp_path / "file" / "inside", log)
