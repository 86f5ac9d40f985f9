"""Makes the pictures of the README from a real run: a plan, its cutover, and the drawing of the service.

    python scripts/readme_pictures.py [FOLDER]

The service and its edit are those that the README shows. Everything runs in a temporary folder. The text of the run is
also the description of the picture, for those who have it read to them, and for the test that makes it again.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
EVERSTATE = [sys.executable, "-m", "everstate"]
WIDTH = 92
SERVICE = "customers.py"
ORDERS = [
    ("o1", "ada", 10.1),
    ("o2", "ada", 60.2),
    ("o3", "bob", 5.0),
    ("o4", "cleo", 70.0),
    ("o5", "dan", 55.0),
    ("o6", "eve", 81.5),
]
#: Background, text, then black, red, green, yellow, blue, magenta, cyan and white.
COLOURS = {
    "light": "ffffff 1f2937 1f2937 b91c1c 15803d 925e00 1d4ed8 7e22ce 0e7490 4b5563",
    "dark": "0d1117 dee4ec dee4ec ff7b72 56d364 e3b341 79c0ff d2a8ff 56d4dd 8b949e",
}
#: A window around the lines of the terminal; no font is fetched from anywhere.
FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<desc>@DESCRIPTION@</desc>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace;
 font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""


def versions() -> tuple[str, str]:
    """The service as the README has it, before and after its edit."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    before, after = re.findall(rf'```python title="{SERVICE}"\n(.*?)```', readme, re.DOTALL)
    return before, after


def run(folder: Path, *words: str) -> str:
    """A command of Everstate's; what it prints, with colours."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith("EVERSTATE_")}
    environment = {**settings, "COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "TZ": "UTC"}
    done = subprocess.run(  # noqa: S603 - our own command
        [*EVERSTATE, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"everstate {' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def story(folder: Path) -> Text:
    """The service runs, is edited, planned and run again: what the terminal shows of the last two."""
    before, after = versions()
    records = [{"order_id": key, "customer": who, "amount": much, "status": "paid"} for key, who, much in ORDERS]
    (folder / "orders.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    (folder / SERVICE).write_text(before, encoding="utf-8")
    run(folder, "topic", "create", "orders", "--partitions", "3", "--compact")
    run(folder, "produce", "orders", "orders.jsonl", "--key-field", "order_id")
    run(folder, "run", SERVICE, "--once", "--quiet")
    (folder / SERVICE).write_text(after, encoding="utf-8")
    shown = Text()
    for words in (
        ("plan", SERVICE, "--preview", "--quiet"),
        ("run", SERVICE, "--once", "--quiet"),
        ("consume", "customer-totals", "--key", "ada"),
        ("consume", "customer-totals", "--key", "bob"),
    ):
        shown.append(f"$ everstate {' '.join(words)}\n", style="bold cyan")
        shown.append_text(Text.from_ansi(run(folder, *words).rstrip()))
        shown.append("\n" if shown.plain.endswith("\n") else "\n\n")
    shown.rstrip()
    return shown


def picture(shown: Text, theme: str) -> str:
    """What a terminal shows, as SVG."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(shown, soft_wrap=True)
    background, foreground, *normal = [tuple(bytes.fromhex(colour)) for colour in COLOURS[theme].split()]
    svg = console.export_svg(
        title="", theme=TerminalTheme(background, foreground, normal), code_format=FRAME, unique_id="plan"
    )
    return svg.replace("@DESCRIPTION@", escape(shown.plain))


def drawing() -> str:
    """The service of the README, drawn."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / SERVICE).write_text(versions()[0], encoding="utf-8")
        run(Path(folder), "topic", "create", "orders", "--partitions", "3", "--compact")
        return run(Path(folder), "graph", SERVICE, "--format", "svg")


def main() -> int:
    """Make all of them."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    target.mkdir(parents=True, exist_ok=True)
    (target / "customers.svg").write_text(drawing(), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        shown = story(Path(folder))
    for theme in COLOURS:
        (target / f"plan-{theme}.svg").write_text(picture(shown, theme), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
