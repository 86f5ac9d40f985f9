"""Everything that README.md and docs/ show is executed; conftest.py says how."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.docs


def test_page_examples_run_in_order(page, page_run, read_blocks):
    for block in read_blocks(page):
        page_run.run(block)


def written(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def run(page_run, blocks):
    for block in blocks:
        page_run.run(block)


SHARING = """
```python
n = 2
```

```python title="printing.py"
print("three\\nfour")
```

```python
import printing
assert n == 2
```

1. In a list:

   ```console
   $ python printing.py
   th...
   four
   ```
"""


def test_blocks_of_one_page_share_names_files_and_folder(tmp_path, page_run, read_blocks):
    run(page_run, read_blocks(written(tmp_path, SHARING)))


def test_session_block_with_other_output_is_an_error(tmp_path, page_run, read_blocks):
    page = written(tmp_path, "```python\n>>> 1 + 1\n3\n```\n")
    with pytest.raises(pytest.fail.Exception, match=r"Got:\n    2"):
        run(page_run, read_blocks(page))


def test_python_block_that_raises_names_the_line_of_the_page(tmp_path, page_run, read_blocks):
    page = written(tmp_path, "# Title\n\n```python\nx = 1\nraise KeyError(x)\n```\n")
    with pytest.raises(KeyError) as failure:
        run(page_run, read_blocks(page))
    assert failure.traceback[-1].lineno + 1 == 5


@pytest.mark.parametrize(
    ("console", "message"),
    [
        ("$ echo two\nthree\n", "--- printed\ntwo"),
        ("$ printf 'a\\nb\\nc\\n'\na\nc\n", "--- printed"),
        ("$ false\n", "exit code 1, expected 0"),
        ("two\n", "begins with a command"),
    ],
)
def test_console_block_with_another_outcome_is_an_error(tmp_path, page_run, read_blocks, console, message):
    page = written(tmp_path, f"```console\n{console}```\n")
    with pytest.raises(pytest.fail.Exception, match=message):
        run(page_run, read_blocks(page))


@pytest.mark.parametrize(
    "console",
    [
        "$ printf 'a\\nb\\nc\\n'\na\n...\nc\n",
        "$ printf 'a\\nb\\n'\n...\nb\n",
        "$ echo seven \\\n  eight\nseven eight\n",
        "$ echo quiet >&2; echo loud\nloud\n",
        "$ echo nothing is compared\n",
    ],
)
def test_console_block_with_the_shown_output_passes(tmp_path, page_run, read_blocks, console):
    run(page_run, read_blocks(written(tmp_path, f"```console\n{console}```\n")))


def test_console_block_with_an_expected_exit_code_passes(tmp_path, page_run, read_blocks):
    run(page_run, read_blocks(written(tmp_path, "<!-- exit code 3 -->\n\n```console\n$ exit 3\n```\n")))


def test_block_not_executed_needs_a_reason(tmp_path, page_run, read_blocks):
    run(page_run, read_blocks(written(tmp_path, "<!-- not executed: it would never end -->\n```python\n1 / 0\n```\n")))
    with pytest.raises(pytest.fail.Exception, match="say why"):
        run(page_run, read_blocks(written(tmp_path, "<!-- not executed: -->\n```python\n1 / 0\n```\n")))


def test_block_in_a_language_that_escapes_execution_is_refused(tmp_path, page_run, read_blocks):
    with pytest.raises(pytest.fail.Exception, match="console"):
        run(page_run, read_blocks(written(tmp_path, "```bash\nls\n```\n")))
