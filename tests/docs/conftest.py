"""Runs what a page shows.

Blocks of a page run in order, in one folder of their own:

- ```` ```python ````: executed; all blocks of a page share their names. With `>>>` prompts the output is compared.
- ```` ```python title="customers.py" ```` (or any other language): written to that file.
- ```` ```console ````: each line after `$ ` is run (a line that ends in a backslash goes on), and what is shown below
  it is compared with what it prints. `...` stands for any text in a line, a line `...` for any lines. Where nothing
  is shown, nothing is compared.
- `<!-- not executed: reason -->` above a block leaves it out; `<!-- exit code 1 -->` is how its last command ends.
"""

from __future__ import annotations

import doctest
import linecache
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
#: Pages of which each is a minute or two of Spark: README.md shows the same commands, and `make long` runs these, too.
LONG = {
    "docs/guides/changing-a-service.md",
    "docs/guides/keeping-history.md",
    "docs/guides/operations.md",
    "docs/guides/spark-sources.md",
}
TIMEOUT_S = 180

_FENCE = re.compile(r"^(?P<indent>[ ]*)(?P<ticks>```+)(?P<language>[\w+-]*)(?P<attributes>[^`]*)$")
_TITLE = re.compile(r'title="(?P<file>[^"]+)"')
_SKIPPED = re.compile(r"<!--\s*not executed:(?P<reason>.*?)-->")
_EXIT_CODE = re.compile(r"<!--\s*exit code (?P<code>\d+)\s*-->")
_NEVER_RUN = {"bash", "sh", "shell", "zsh", "pycon", "py"}


@dataclass(frozen=True)
class Block:
    """One fenced block; `line` is that of its first line of content, from 1."""

    page: Path
    line: int
    language: str
    content: str
    file: str | None = None
    skipped: str | None = None
    exit_code: int = 0

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def require(condition: object, message: str) -> None:
    """Fails the test with this message alone."""
    if not condition:
        pytest.fail(message, pytrace=False)


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    blocks: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    number, above = 0, ""
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        if opening is None:
            above = lines[number].strip() or above
            number += 1
            continue
        first = number = number + 1
        while number < len(lines) and lines[number].strip() != opening["ticks"]:
            number += 1
        require(number < len(lines), f"{page}:{first}: this block is not closed")
        indent = len(opening["indent"])
        content = "".join(line[indent:] + "\n" for line in lines[first:number])
        title, skipped, code = _TITLE.search(opening["attributes"]), _SKIPPED.match(above), _EXIT_CODE.match(above)
        blocks.append(
            Block(
                page,
                first + 1,
                opening["language"],
                content,
                file=title["file"] if title else None,
                skipped=skipped["reason"].strip() if skipped else None,
                exit_code=int(code["code"]) if code else 0,
            )
        )
        number, above = number + 1, ""
    return blocks


class PageRun:
    """Runs the blocks of one page in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, object] = {"__name__": "__page__"}
        # A page's own `make` is not to speak as the one that runs the tests ("Entering directory ...").
        outside = {name: text for name, text in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        self._environment = {
            **outside,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "COLUMNS": "120",
            "NO_COLOR": "1",
            "TERM": "dumb",
        }

    def run(self, block: Block) -> None:
        if block.skipped is not None:
            require(block.skipped, f"{block.place}: say why it is not executed: <!-- not executed: reason -->")
        elif block.file is not None:
            path = self._folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.content, encoding="utf-8")
        elif block.language == "python":
            self._run_python(block)
        elif block.language == "console":
            self._run_commands(block)
        else:
            hint = "write ```python or ```console, so that it is executed"
            require(block.language not in _NEVER_RUN, f"{block.place}: {hint}")

    def _run_python(self, block: Block) -> None:
        if block.content.lstrip().startswith(">>>"):
            self._run_session(block)
            return
        # Line numbers as in the page, and the source where `inspect` looks for it, as it is for a file.
        source = "\n" * (block.line - 1) + block.content
        name = f"{block.place} (example)"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        exec(compile(source, name, "exec", dont_inherit=True), self._names)

    def _run_session(self, block: Block) -> None:
        example = doctest.DocTestParser().get_doctest(
            block.content, self._names, block.place, str(block.page), block.line
        )
        said: list[str] = []
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        runner.run(example, out=said.append, clear_globs=False)
        self._names.update(example.globs)
        require(not runner.failures, "".join(said))

    def _run_commands(self, block: Block) -> None:
        steps = steps_of(block)
        for number, (line, command, shown) in enumerate(steps):
            place = f"{block.page}:{line}: $ {command}"
            code, output, errors = self._shell(command)
            expected_code = block.exit_code if number == len(steps) - 1 else 0
            require(code == expected_code, f"{place}\nexit code {code}, expected {expected_code}\n{output}{errors}")
            if shown.strip():
                # Progress and warnings go to the error stream; a page may show them or leave them out.
                matches = fits(shown, output) or fits(shown, output + errors) or fits(shown, errors)
                printed = f"--- shown\n{shown}--- printed\n{output}--- on the error stream\n{errors}"
                require(matches, f"{place}\n{printed}")

    def _shell(self, command: str) -> tuple[int, str, str]:
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            output, errors = process.communicate(timeout=TIMEOUT_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        return process.returncode, output, errors


def steps_of(block: Block) -> list[tuple[int, str, str]]:
    """The commands of a console block: line, command, and what is shown below it."""
    steps: list[tuple[int, str, str]] = []
    continued = False
    for number, line in enumerate(block.content.splitlines(), block.line):
        if line.startswith("$ "):
            steps.append((number, line[2:], ""))
            continued = line.endswith("\\")
            continue
        require(steps, f"{block.page}:{number}: a console block begins with a command: $ ...")
        first, command, shown = steps[-1]
        steps[-1] = (first, f"{command}\n{line}", shown) if continued else (first, command, f"{shown}{line}\n")
        continued = continued and line.endswith("\\")
    return steps


def fits(shown: str, printed: str) -> bool:
    """Whether the output is as shown, blanks at the ends of lines and around the whole aside."""
    pattern = ""
    for line in shown.strip("\n").splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += r"[^\n]*?".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ \t]*\n"
    return re.fullmatch(pattern, printed.strip("\n") + "\n") is not None


@pytest.fixture
def page_run(tmp_path, monkeypatch):
    """A run of a page's blocks in an empty folder, whose modules can be imported until the test is over."""
    folder = tmp_path / "page"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield PageRun(folder)
    for name in set(sys.modules) - before:
        origin = getattr(sys.modules[name], "__file__", None)
        if origin and Path(origin).is_relative_to(folder):
            del sys.modules[name]


@pytest.fixture
def read_blocks():
    """Reads the blocks of a page."""
    return blocks_of


def pytest_generate_tests(metafunc):
    """Gives one test to each page of the documentation."""
    if "page" in metafunc.fixturenames:
        names = [str(page.relative_to(ROOT)) for page in PAGES]
        long = [pytest.mark.long, pytest.mark.spark]
        marked = [
            pytest.param(page, marks=long if name in LONG else ()) for page, name in zip(PAGES, names, strict=True)
        ]
        metafunc.parametrize("page", marked, ids=names)
