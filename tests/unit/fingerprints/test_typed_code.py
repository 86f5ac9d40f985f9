"""Functions that were typed at a prompt, whose text Python has not kept."""

from __future__ import annotations

import pytest

import everstate as es
from everstate.errors import FingerprintError
from everstate.fingerprints.outputs import print_unit

SOURCE = "def large(row) -> bool:\n    return row['n'] > 100\n"


@pytest.mark.parametrize(("file", "typed"), [("<stdin>", True), ("<python-input-3>", True), ("/gone/shop.py", False)])
def test_function_without_source_says_why_and_what_to_do(file, typed):
    names = {"__name__": "__main__"}
    exec(compile(SOURCE, file, "exec"), names)
    app = es.Service("shop")
    app.stream("orders", schema={"n": int}).filter(names["large"]).to("large")
    with pytest.raises(FingerprintError, match="no source that compiles to large") as caught:
        print_unit(app.units()[0], policy="fail", settings={})
    assert ("typed at Python's prompt" in caught.value.hint) == typed
    assert "file" in caught.value.hint
