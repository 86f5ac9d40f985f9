"""What cannot be seen is refused, unless it is declared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import everstate as es
from everstate import col
from everstate.errors import DefinitionError, FingerprintError, UnsupportedError
from everstate.fingerprints import print_unit
from everstate.fingerprints.declarations import Declared
from tests.unit.fingerprints.program import loaded

SERVICE = """
import everstate as es
{before}

{decorator}
def fn(row):
    {body}
    return True

app = es.Service("s")
app.table("in", schema={{"a": str}}).filter(fn).to("out")
"""


def printed(folder: Path, before: str, body: str, decorator: str = "", **more: str):
    text = SERVICE.format(before=before, body=body, decorator=decorator)
    app = loaded(folder, {"__init__": "", "service": text, **more}).app
    return print_unit(app.units()[0], policy="dead-letter", settings={})


READING = {
    "time.time": ("import time", "time.time()", "clock"),
    "time under another name": ("from time import time as now", "now()", "clock"),
    "module under another name": ("import time as t", "t.monotonic()", "clock"),
    "datetime.now": ("import datetime", "datetime.datetime.now()", "clock"),
    "datetime class": ("from datetime import datetime", "datetime.utcnow()", "clock"),
    "date.today": ("from datetime import date", "date.today()", "clock"),
    "class under another name": ("import datetime", "d = datetime.datetime; d.now()", "clock"),
    "import in the function": ("", "import time; time.time()", "clock"),
    "import from in the function": ("", "from datetime import datetime as d; d.now()", "clock"),
    "clock passed on": ("import time", "call(time.time)\n\ndef call(f):\n    f()", "clock"),
    "clock as a default": ("import time\ndef other(clock=time.time):\n    return clock()", "other()", "clock"),
    "clock in a closure": (
        "import time\ndef make(c):\n    return lambda: c()\nmade = make(time.time)",
        "made()",
        "clock",
    ),
    "clock in a helper": ("import time\ndef helper():\n    return time.time()", "helper()", "clock"),
    "module as a value": ("import time", "getattr(time, 'time')()", "clock"),
    "random.random": ("import random", "random.random()", "random"),
    "random.choice": ("from random import choice", "choice([1])", "random"),
    "generator of random numbers": ("import random\nrng = random.Random(3)", "rng.random()", "random"),
    "uuid4": ("import uuid", "uuid.uuid4()", "random"),
    "urandom": ("import os", "os.urandom(3)", "random"),
    "secrets": ("import secrets", "secrets.token_hex()", "random"),
    "numpy.random": ("import numpy as np", "np.random.rand()", "random"),
    "generator of NumPy": ("import numpy as np", "np.random.default_rng()", "random"),
    "hash of a text": ("", "hash('a')", "random"),
    "open": ("", "open('x')", "files"),
    "open of io": ("import io", "io.open('x')", "files"),
    "Path.read_text": ("from pathlib import Path", "Path('x').read_text()", "files"),
    "path at hand": ("from pathlib import Path\nplace = Path('x')", "place.read_bytes()", "files"),
    "path under another name": ("from pathlib import Path", "p = Path('x'); q = p; q.exists()", "files"),
    "listdir": ("import os", "os.listdir('.')", "files"),
    "exists": ("import os.path", "os.path.exists('x')", "files"),
    "sqlite": ("import sqlite3", "sqlite3.connect('x')", "files"),
    "read_csv": ("import polars as pl", "pl.read_csv('x')", "files"),
    "socket": ("import socket", "socket.create_connection(('a', 1))", "network"),
    "urlopen": ("from urllib.request import urlopen", "urlopen('http://a')", "network"),
    "http.client": ("import http.client", "http.client.HTTPConnection('a')", "network"),
    "environ": ("import os", "os.environ['A']", "environment"),
    "environ by name": ("from os import environ", "environ.get('A')", "environment"),
    "getenv": ("import os", "os.getenv('A')", "environment"),
    "working folder": ("import os", "os.getcwd()", "environment"),
    "argv": ("import sys", "sys.argv[1]", "environment"),
    "platform": ("import platform", "platform.node()", "environment"),
    "subprocess": ("import subprocess", "subprocess.run(['ls'])", "version"),
    "os.system": ("import os", "os.system('ls')", "version"),
    "eval": ("", "eval('1')", "version"),
    "import_module": ("import importlib", "importlib.import_module('a')", "version"),
}
DECLARED = {
    "clock": "clock=True",
    "random": "random=True",
    "files": "files=[]",
    "network": 'network="asks a"',
    "environment": 'environment=["A"]',
    "version": 'version="1"',
}


@pytest.mark.parametrize(("before", "body", "kind"), READING.values(), ids=READING)
def test_function_that_reads_more_than_its_row_is_refused(before, body, kind, tmp_path: Path) -> None:
    with pytest.raises(FingerprintError, match=r"fn") as caught:
        printed(tmp_path, before, body)
    assert f"@es.declare({kind}=" in caught.value.hint
    assert caught.value.location is not None
    assert caught.value.location.file == str(tmp_path / "shop" / "service.py")
    line = (tmp_path / "shop" / "service.py").read_text().splitlines()[caught.value.location.line - 1]
    assert re.search(r"\w", line)


@pytest.mark.parametrize(("before", "body", "kind"), READING.values(), ids=READING)
def test_function_that_declares_what_it_reads_is_accepted(before, body, kind, tmp_path: Path) -> None:
    said = DECLARED[kind].replace("[]", f"[{str(tmp_path)!r}]")
    declared = printed(tmp_path, before, body, f"@es.declare({said})")
    assert declared.fingerprint


HARMLESS = {
    "dates": ("import datetime", "datetime.timedelta(days=1) + datetime.datetime.fromisoformat(row['a'])"),
    "parts of a path": ("from pathlib import PurePath, Path", "Path(row['a']).suffix + PurePath('b').name"),
    "joining paths": ("import os", "os.path.join('a', os.path.basename(row['a'])) + os.sep"),
    "parsing a URL": ("from urllib.parse import urlsplit", "urlsplit(row['a']).netloc"),
    "uuid from a name": ("import uuid", "uuid.uuid5(uuid.NAMESPACE_DNS, row['a'])"),
    "hashing": ("import hashlib", "hashlib.sha256(row['a'].encode()).hexdigest()"),
    "regular expression": ("import re\nword = re.compile('a+', re.I)", "word.match(row['a'])"),
    "logging": ("import logging\nlog = logging.getLogger('a')", "log.info('x')"),
    "JSON": ("import json", "json.loads(row['a'])"),
    "printing": ("", "print(row)"),
    "status of HTTP": ("from http import HTTPStatus", "HTTPStatus.OK == row['a']"),
    "type hints": ("from typing import Any, Optional", "x: Optional[Any] = row"),
    "time as a type": ("import datetime", "isinstance(row['a'], datetime.datetime)"),
    "method of the same name": ("", "row['a'].open() if 0 else row['a'].now()"),
    "sentinel": ("NONE = object()", "row.get('a', NONE) is NONE"),
}


@pytest.mark.parametrize(("before", "body"), HARMLESS.values(), ids=HARMLESS)
def test_function_that_only_calculates_is_accepted(before, body, tmp_path: Path) -> None:
    assert printed(tmp_path, before, body).fingerprint


UNSEEN = {
    "open file": ("log = open(__file__)", "log.name", "TextIOWrapper"),
    "lock": ("import threading\nlock = threading.Lock()", "lock.acquire()", "lock"),
    "counter": ("import itertools\nseen = itertools.count(5)", "next(seen)", "used up"),
    "generator": ("numbers = (n for n in [1])", "next(numbers)", "generator"),
    "code made at run time": ("space = {}\nexec('def f(): return 1', space)\nf = space['f']", "f()", "source"),
    "module as a whole": ("from shop import other", "getattr(other, row['a'])", "module"),
    "the service itself": ("other = es.Service('x')", "other.config('a', 1)", "Service"),
}


@pytest.mark.parametrize(("before", "body", "words"), UNSEEN.values(), ids=UNSEEN)
def test_function_with_something_that_cannot_be_seen_is_refused(before, body, words, tmp_path: Path) -> None:
    with pytest.raises(FingerprintError, match=words) as caught:
        printed(tmp_path, before, body, other="")
    assert caught.value.hint
    assert caught.value.location is not None


def test_declaration_of_a_helper_covers_only_the_helper(tmp_path: Path) -> None:
    before = "import time\n@es.declare(clock=True)\ndef helper():\n    return time.time()"
    assert printed(tmp_path / "a", before, "helper()").fingerprint
    with pytest.raises(FingerprintError, match=r"time\.monotonic reads the clock"):
        printed(tmp_path / "b", before, "helper() + time.monotonic()")


def test_declaration_covers_what_is_called(tmp_path: Path) -> None:
    before = "import time\ndef helper():\n    return time.time()"
    assert printed(tmp_path / "a", before, "helper()", "@es.declare(clock=True)").fingerprint
    with pytest.raises(FingerprintError):
        printed(tmp_path / "b", before, "helper()", "@es.declare(random=True)")


def test_declaration_of_one_caller_does_not_cover_another(tmp_path: Path) -> None:
    before = (
        "import time\ndef helper():\n    return time.time()\n@es.declare(clock=True)\ndef sure():\n    return helper()"
    )
    with pytest.raises(FingerprintError, match=r"time\.time"):
        printed(tmp_path, before, "sure() + helper()")


def test_declared_file_is_hashed_by_content(tmp_path: Path) -> None:
    rates = tmp_path / "rates.csv"
    said = f"@es.declare(files=[{str(rates)!r}])"
    seen = []
    for number, content in enumerate(["1", "2", "1"]):
        rates.write_text(content)
        seen.append(printed(tmp_path / str(number), "", f"open({str(rates)!r})", said).fingerprint)
    assert seen[0] == seen[2] != seen[1]


def test_declared_folder_is_hashed_by_content(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    seen = []
    for number, name in enumerate(["a", "b"]):
        (folder / name).write_text("1")
        said = f"@es.declare(files=[{str(folder)!r}])"
        seen.append(printed(tmp_path / str(number), "", "open('x')", said).fingerprint)
    assert seen[0] != seen[1]


def test_declared_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"missing\.csv"):
        printed(tmp_path, "", "open('missing.csv')", "@es.declare(files=['missing.csv'])")


def test_declared_environment_is_hashed_by_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    for number, value in enumerate(["1", "2", "1"]):
        monkeypatch.setenv("RATE", value)
        said = '@es.declare(environment=["RATE"])'
        seen.append(printed(tmp_path / str(number), "import os", 'os.environ["RATE"]', said).fingerprint)
    assert seen[0] == seen[2] != seen[1]


@pytest.mark.parametrize(("one", "other"), [('version="1"', 'version="2"'), ('network="a"', 'network="b"')])
def test_declared_words_are_part_of_the_fingerprint(one, other, tmp_path: Path) -> None:
    seen = {printed(tmp_path / said[:3], "", "pass", f"@es.declare({said})").fingerprint for said in (one, other)}
    assert len(seen) == 1 + (one != other)


def test_declared_function_without_source_is_known_by_its_version() -> None:
    def print_of(version: str) -> str:
        made: dict = {}
        exec("def fn(value): return value > 1", made)
        app = es.Service("s")
        app.table("in", schema=int).filter(es.declare(version=version)(made["fn"])).to("out")
        return print_unit(app.units()[0], policy="fail", settings={}).fingerprint

    assert print_of("1") == print_of("1") != print_of("2")


def test_declared_function_written_in_c_stays_callable() -> None:
    declared = es.declare(version="1")(len)
    assert isinstance(declared, Declared)
    assert declared([1, 2]) == 2


def test_declaration_with_a_text_instead_of_a_list_is_refused() -> None:
    with pytest.raises(DefinitionError, match="files= takes a list"):
        es.declare(files="rates.csv")


def test_expression_that_renames_columns_with_a_function_is_refused() -> None:
    table = es.Service("s").table("in", schema={"a": int})
    with pytest.raises(UnsupportedError, match="Python function") as caught:
        table.select(col("a").name.map(lambda name: name + "x"))
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_function_of_an_edited_file_is_refused_if_the_code_is_another(tmp_path: Path) -> None:
    text = SERVICE.format(before="", body="row['a']", decorator="")
    module = loaded(tmp_path, {"__init__": "", "service": text})
    file = tmp_path / "shop" / "service.py"
    file.write_text(text.replace("return True", "return False"))
    with pytest.raises(FingerprintError, match="no source that compiles to fn"):
        print_unit(module.app.units()[0], policy="fail", settings={})


def test_function_of_an_edited_file_is_found_if_it_only_moved(tmp_path: Path) -> None:
    text = SERVICE.format(before="", body="row['a']", decorator="")
    before = printed(tmp_path / "a", "", "row['a']").fingerprint
    module = loaded(tmp_path / "b", {"__init__": "", "service": text})
    (tmp_path / "b" / "shop" / "service.py").write_text("# a line\n# another\n" + text)
    assert print_unit(module.app.units()[0], policy="dead-letter", settings={}).fingerprint == before
