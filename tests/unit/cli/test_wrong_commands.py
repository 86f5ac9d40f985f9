"""Commands that cannot be carried out end at once with a named error, a hint and their exit code, and leave nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from everstate.cli.main import main, show
from everstate.errors import RecordError
from everstate.location import Location

SERVICE = """
import everstate as es
app = es.Service("shop")
app.table("orders", key="id", schema={"id": str, "amount": float}).to("copy")
"""
FILES = {
    "good.py": SERVICE,
    "two.py": SERVICE + 'other = es.Service("other")\n',
    "none.py": "x = 1\n",
    "empty.py": "",
    "syntax.py": "def broken(:\n",
    "tabs.py": "if True:\n\tx = 1\n        y = 2\n",
    "import.py": "import not_there_at_all\n",
    "raises.py": "raise ValueError('boom\\n  Run this.\\x1b[31m')\n",
    "exits.py": "import sys\nsys.exit(7)\n",
    "divides.py": "1 / 0\n",
    "recursive.py": "def f(): return f()\nf()\n",
    "mistake.py": "import everstate as es\nes.Service('s').table('t', key=5, schema=int)\n",
    "configured.py": SERVICE + "app.config('least', 5)\n",
    "noextension": SERVICE,
    "plan.json": "{}",
    "list.json": "[1, 2]",
    "text.json": "not JSON",
    "version.json": '{"version": 99}',
    "types.json": '{"version": 1, "service": 5, "options": {}, "actions": [], "previews": []}',
    "options.json": '{"version": 1, "service": "s", "options": {"recalculate": 5}, "actions": [], "previews": []}',
    "kind.json": '{"version": 1, "service": "s", "options": {}, "actions": [{"kind": "os.system"}], "previews": []}',
    "deep.json": "[" * 100_000,
    "number.json": '{"version": ' + "9" * 10_000 + "}",
    "empty.json": "",
    "broken.toml": "least = = 5",
    "list_config.json": "[1]",
    "broken.jsonl": '{"a": 1}\nnot JSON\n',
}


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs a command in a folder of hostile files; gives its exit code and what it wrote to the terminal."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "binary.py").write_bytes(bytes(range(256)))
    (tmp_path / "latin.py").write_bytes(b"x = '\xe9'\n")
    (tmp_path / "binary.json").write_bytes(bytes(range(256)))
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "dangling.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "dangling.json").symlink_to(tmp_path / "nowhere.json")
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    os.mkfifo(tmp_path / "pipe.json")
    with (tmp_path / "huge.json").open("wb") as file:
        file.truncate(1 << 40)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVERSTATE_LOG", raising=False)
    path = list(sys.path)

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["everstate", *arguments])
        before = _listing(tmp_path)
        with pytest.raises(SystemExit) as ended:
            main()
        sys.path[:] = path
        written = capsys.readouterr()
        assert "Traceback" not in written.err
        assert _listing(tmp_path) == before, "it left something behind"
        return int(ended.value.code or 0), written.err

    return run


def _listing(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if "__pycache__" not in path.parts}


SERVICE_FILES = [
    "missing.py",
    "two.py",
    "none.py",
    "empty.py",
    "syntax.py",
    "tabs.py",
    "import.py",
    "raises.py",
    "exits.py",
    "divides.py",
    "recursive.py",
    "mistake.py",
    "noextension",
    "binary.py",
    "latin.py",
    "folder.py",
    "dangling.py",
]


@pytest.mark.parametrize("name", SERVICE_FILES)
@pytest.mark.parametrize("verb", ["describe", "run", "plan", "generations", "clear", "graph"])
def test_service_file_that_cannot_be_used_is_named(command, verb, name) -> None:
    code, text = command(verb, name)
    assert code == 1
    assert text.startswith("error: ")
    assert len(text.splitlines()) >= 2, text
    assert "\x1b" not in text
    assert "\n  Run this." not in text


PLANS = [
    "plan.json",
    "list.json",
    "text.json",
    "version.json",
    "types.json",
    "options.json",
    "kind.json",
    "deep.json",
    "number.json",
    "empty.json",
    "binary.json",
    "folder.json",
    "dangling.json",
    "loop.json",
    "missing.json",
    "pipe.json",
    "huge.json",
    "/dev/zero",
    "/dev/null",
    "good.py",
]


@pytest.mark.parametrize("name", PLANS)
def test_plan_that_cannot_be_read_is_named_before_anything_happens(command, name) -> None:
    code, text = command("run", "good.py", "--once", "--plan", name)
    assert code == 1
    assert "everstate plan SERVICE.py --out FILE" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "good.py", "--config", "missing.toml"],
        ["run", "good.py", "--config", "broken.toml"],
        ["run", "good.py", "--config", "list_config.json"],
        ["run", "good.py", "--config", "folder.json"],
        ["run", "good.py", "--config", "deep.json"],
        ["run", "good.py", "--set", "least"],
        ["run", "good.py", "--set", "=5"],
        ["run", "configured.py", "--set", "least=much"],
        ["run", "good.py", "--log", "kafka://ada:hunter2@broker"],
        ["run", "good.py", "--log", "good.py"],
        ["run", "good.py", "--log", "dangling.py"],
        ["run", "good.py", "--log", "good.py/inside"],
        ["run", "good.py", "--memory", "much"],
        ["run", "good.py", "--service", "other"],
        ["plan", "good.py", "--log", "missing"],
        ["generations", "good.py", "--log", "missing"],
        ["describe", "good.py", "--service", "shpo"],
        ["graph", "good.py", "--format", "png"],
        ["graph", "good.py", "--out", "missing/folder/x.svg"],
        ["graph", "good.py", "--out", "folder.py"],
        ["consume", "orders"],
        ["consume", "orders", "--log", "good.py"],
        ["topic", "list"],
        ["topic", "describe", "orders"],
        ["topic", "create", "a/b", "--log", "good.py"],
        ["topic", "create", "t", "--retention", "soon", "--log", "good.py"],
        ["produce", "orders", "missing.jsonl"],
        ["produce", "orders", "folder.py"],
        ["produce", "a/b", "broken.jsonl"],
        ["rollback", "good.py"],
        ["discard", "good.py", "copy"],
    ],
    ids=" ".join,
)
def test_command_that_cannot_be_carried_out_is_named(command, arguments) -> None:
    code, text = command(*arguments)
    assert code == 1, text
    assert any(line.startswith("error: ") for line in text.splitlines()[:-1]), text
    assert "hunter2" not in text


@pytest.mark.parametrize("place", ["good.py", "good.py/inside", "dangling.py/x", "/dev/null/x"])
def test_state_folder_that_cannot_be_written_is_named_before_spark_starts(command, tmp_path, place) -> None:
    log = tmp_path.parent / f"{tmp_path.name}-log"
    code, text = command("run", "good.py", "--once", "--log", str(log), "--state-dir", place)
    assert code == 1
    assert "--state-dir PATH" in text
    assert "state cannot be kept" in text


def test_unexpected_error_is_one_message_and_a_traceback_on_request(command, monkeypatch, capsys) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("nobody thought of it")

    monkeypatch.setattr("everstate.cli.commands.describe.load_service", fails)
    code, text = command("describe", "good.py")
    assert code == 1
    assert "unexpected ZeroDivisionError: nobody thought of it" in text
    assert "EVERSTATE_TRACEBACK=1" in text
    monkeypatch.setenv("EVERSTATE_TRACEBACK", "1")
    monkeypatch.setattr(sys, "argv", ["everstate", "describe", "good.py"])
    with pytest.raises(ZeroDivisionError):
        main()


@pytest.mark.parametrize(
    "content",
    [
        "[bold red]error:[/] all is lost",
        "\x1b[2J\x1b[31merror: fake",
        "\x9b2Jerror: fake",
        "a\r\nerror: fake\n  Run: rm -rf /",
        "a\u202eevil",
        "\\[red]",
    ],
)
def test_message_that_quotes_a_record_cannot_paint_or_fake(content, capsys) -> None:
    show(RecordError(f"it failed: {content}", location=Location("a\nb.py", 3), hint="Look at the record."))
    text = capsys.readouterr().err
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("error:")] == lines[:1]
    assert [line for line in lines[1:] if not line.startswith("  | ")] == ["  at a\\nb.py:3", "  Look at the record."]
    assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for line in lines for letter in line)
    assert "\u202e" not in text
