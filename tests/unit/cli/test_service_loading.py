from __future__ import annotations

import sys

import pytest

from everstate.cli.service_loading import load_service, read_config
from everstate.cli.service_options import ServiceOptions
from everstate.dsl import config
from everstate.errors import ConfigurationError, DefinitionError

ONE = """
import everstate as es
app = es.Service("one")
again = app
limit = app.config("limit", 10)
"""


def write(folder, text, name="svc_under_test.py"):
    path = folder / name
    path.write_text(text)
    return path


def test_load_service_only_one_is_found_under_any_number_of_names(tmp_path):
    assert load_service(write(tmp_path, ONE)).name == "one"


def test_load_service_several_need_a_choice(tmp_path):
    path = write(tmp_path, ONE + 'other = es.Service("two")\n')
    with pytest.raises(DefinitionError, match="one, two"):
        load_service(path)
    assert load_service(path, service="two").name == "two"


def test_load_service_unknown_name_lists_those_there_are(tmp_path):
    with pytest.raises(DefinitionError, match="no service 'three'") as caught:
        load_service(write(tmp_path, ONE), service="three")
    assert "one" in str(caught.value)


def test_load_service_none_defined_says_how(tmp_path):
    with pytest.raises(DefinitionError, match="no service"):
        load_service(write(tmp_path, "x = 1\n"))


def test_load_service_missing_file_is_named(tmp_path):
    with pytest.raises(DefinitionError, match=r"nowhere\.py"):
        load_service(tmp_path / "nowhere.py")


def test_load_service_error_in_the_file_points_at_its_line(tmp_path):
    path = write(tmp_path, "x = 1\ny = x / 0\n")
    with pytest.raises(DefinitionError, match="ZeroDivisionError") as caught:
        load_service(path)
    assert (caught.value.location.file, caught.value.location.line) == (str(path), 2)


def test_load_service_syntax_error_points_at_its_line(tmp_path):
    with pytest.raises(DefinitionError, match="SyntaxError") as caught:
        load_service(write(tmp_path, "x = 1\ndef (:\n"))
    assert caught.value.location.line == 2


def test_load_service_imports_its_neighbours(tmp_path):
    write(tmp_path, 'NAME = "neighbour"\n', "neighbour_of_service.py")
    path = write(tmp_path, "import everstate as es\nimport neighbour_of_service as n\napp = es.Service(n.NAME)\n")
    assert load_service(path).name == "neighbour"


def test_load_service_in_a_file_named_like_a_module_does_not_replace_it(tmp_path):
    import json

    assert load_service(write(tmp_path, ONE, "json.py")).name == "one"
    assert sys.modules["json"] is json


def test_load_service_gets_configuration(tmp_path):
    assert load_service(write(tmp_path, ONE), config={"limit": "25"}).configuration == {"limit": 25}


def test_read_config_set_comes_before_the_file(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text('limit = 5\nname = "x"\n')
    assert read_config(file, ["limit=7", "note=a=b"]) == {"limit": "7", "name": "x", "note": "a=b"}


def test_read_config_json_file(tmp_path):
    file = tmp_path / "c.json"
    file.write_text('{"limit": 5}')
    assert read_config(file, []) == {"limit": 5}


@pytest.mark.parametrize("assignment", ["limit", "=5"])
def test_read_config_what_is_no_assignment_is_refused(assignment):
    with pytest.raises(ConfigurationError, match="name=value"):
        read_config(None, [assignment])


def test_read_config_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"gone\.toml"):
        read_config(tmp_path / "gone.toml", [])


def test_setting_that_the_service_does_not_ask_for_is_refused_with_the_nearest_name(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "ASKED", set())
    monkeypatch.setattr("everstate.cli.service_options.ASKED", config.ASKED)
    path = str(write(tmp_path, ONE))
    assert ServiceOptions(assignments=["limit=5"]).load(path).settings == {"limit": 5}
    with pytest.raises(ConfigurationError, match="service 'one' does not ask for the setting 'limt'") as caught:
        ServiceOptions(assignments=["limt=5"]).load(path)
    assert caught.value.hint == "Did you mean 'limit'? It asks for: limit."


def test_secret_that_only_an_earlier_version_asks_for_may_be_given(tmp_path):
    assert ServiceOptions(assignments=["api_token=12345678"]).load(str(write(tmp_path, ONE))).name == "one"
