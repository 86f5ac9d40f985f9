"""Commands in a project: from any folder below it they need no options, and with one service no argument."""

from __future__ import annotations

import os
import sys

import pytest

from everstate.cli.main import main
from tests.unit.cli.deployments import SERVICE, deploy, prepare

RULES = "LEAST = 0\n"
TOML = """log = "data"

[services]
orders = "shop.orders:app"
"""


@pytest.fixture
def project(tmp_path, monkeypatch, capsys):
    """Runs commands in a folder of a project; gives the exit code, what was printed and what was said."""
    for name in [name for name in os.environ if name.startswith("EVERSTATE_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "project"
    shop = folder / "src" / "shop"
    (shop / "deep").mkdir(parents=True)
    (shop / "__init__.py").touch()
    (shop / "rules.py").write_text(RULES)
    (shop / "orders.py").write_text(f"from .rules import LEAST\n{SERVICE}")
    (folder / "everstate.toml").write_text(TOML)
    monkeypatch.chdir(shop / "deep")
    before = set(sys.modules)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["everstate", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        written = capsys.readouterr()
        return int(ended.value.code or 0), written.out, written.err

    run.folder = folder
    yield run
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "shop":
            del sys.modules[name]


def listing(folder):
    return sorted(str(path) for path in folder.rglob("*") if "__pycache__" not in path.parts)


@pytest.mark.parametrize("arguments", [(), ("orders",), ("shop.orders",), ("shop.orders:app",), ("../orders.py",)])
def test_service_may_be_left_out_or_named_in_any_way(project, arguments):
    code, printed, _ = project("describe", *arguments)
    assert code == 0
    assert printed.startswith("service shop ")


@pytest.mark.parametrize("verb", ["plan", "generations", "rollback", "clear"])
def test_missing_log_is_named_with_the_reason_and_nothing_is_left_behind(project, verb):
    before = listing(project.folder)
    code, _, said = project(verb)
    assert code == 1
    expected = f"there is no log at {project.folder}/data, where ../../../everstate.toml line 1 says to look"
    assert expected in said
    assert listing(project.folder) == before


@pytest.mark.parametrize("arguments", [("topic", "list"), ("consume", "orders"), ("topic", "describe", "orders")])
def test_missing_log_of_topics_is_named_with_the_reason(project, monkeypatch, arguments):
    monkeypatch.setenv("EVERSTATE_LOG", "elsewhere")
    before = listing(project.folder)
    code, _, said = project(*arguments)
    assert code == 1
    assert f"{project.folder}/src/shop/deep/elsewhere, where EVERSTATE_LOG says to look" in said
    assert listing(project.folder) == before


def test_commands_on_topics_use_the_log_of_the_project(project):
    assert project("topic", "create", "orders", "--compact")[0] == 0
    assert (project.folder / "data" / "manifest.db").is_file()
    assert "orders" in project("topic", "list")[1]
    code, printed, _ = project("plan")
    assert code == 0
    assert "totals" in printed


def test_words_after_the_service_are_told_from_it(project):
    file, log = project.folder / "src" / "shop" / "orders.py", str(project.folder / "data")
    project("topic", "create", "orders", "--compact")
    deploy(file, log)
    deploy(file, log, least=5)
    for words in [("totals",), ("orders", "totals"), ("shop.orders", "totals"), ()]:
        code, printed, said = project("rollback", *words, "--dry-run")
        assert code == 0, said
        assert "totals" in printed
    prepare(file, log, least=7)
    for words in [("totals",), ("totals", "3"), ("orders", "totals"), ("orders", "totals", "3")]:
        code, printed, said = project("discard", *words, "--dry-run")
        assert (code, printed) == (0, "Generation 3 of totals, which was ready, would be discarded.\n"), said
    assert project("discard")[0] == 2
    assert project("discard", "totals", "third")[0] == 2


def test_several_services_need_a_choice(project):
    (project.folder / "everstate.toml").write_text(TOML + 'copies = "src/shop/orders.py"\n')
    code, _, said = project("describe")
    assert code == 1
    assert "names several services" in said
    assert "Say which one: orders, copies." in said
    assert project("describe", "copies")[0] == 0


def test_no_service_and_no_project_say_what_to_do(project, monkeypatch, tmp_path):
    (project.folder / "everstate.toml").write_text("trigger = 1\n")
    assert "names no service" in project("describe")[2]
    monkeypatch.chdir(tmp_path)
    code, _, said = project("plan")
    assert code == 1
    assert "no service is named, and there is no project here" in said


def test_service_that_the_file_names_wrongly_is_named_at_its_line(project):
    (project.folder / "everstate.toml").write_text('[services]\norders = "not a module"\n')
    code, _, said = project("describe", "orders")
    assert code == 1
    assert "at ../../../everstate.toml:2" in said


@pytest.mark.parametrize("arguments", [("topic", "list"), ("plan",), ("consume", "x")])
def test_unknown_key_stops_every_command_at_its_line(project, arguments):
    (project.folder / "everstate.toml").write_text(f"{TOML}\n[sevices]\nx = 1\n")
    code, _, said = project(*arguments)
    assert code == 1
    assert "unknown setting sevices" in said
    assert "at ../../../everstate.toml:6" in said
    assert "Did you mean services?" in said


def test_hints_name_the_service_that_was_left_out(project):
    file, log = project.folder / "src" / "shop" / "orders.py", str(project.folder / "data")
    project("topic", "create", "orders", "--compact")
    deploy(file, log)
    code, printed, _ = project("plan", "--set", "least=5", "--json")
    assert code == 0
    assert '"file": "orders --set least=5"' in printed
