"""The pictures of the README and the guides show what Everstate prints, draws and calculates today."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "readme_pictures.py"
PICTURES = ROOT / "docs" / "pictures"
THEMES = ("light", "dark")
AGAIN = "It is out of date; make it again: python scripts/readme_pictures.py"

pytestmark = pytest.mark.docs
#: What is different each time: moments, and how long Spark takes to start here.
TIMES = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?|, plus about [^.]+ for\s+Spark to\s+start")


def told(picture: Path) -> str:
    """The text of a picture of a terminal."""
    description = ET.parse(picture).getroot().find("{http://www.w3.org/2000/svg}desc")
    assert description is not None
    return " ".join(TIMES.sub("", description.text or "").split())


def shown(picture: Path) -> str:
    """The words that it draws."""
    texts = ET.parse(picture).getroot().iter("{http://www.w3.org/2000/svg}text")
    return " ".join("".join("".join(text.itertext()) + " " for text in texts).split())


def test_pages_name_every_picture_and_no_other():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    named = {name for text in texts for name in re.findall(r"(?:docs|\.\.)/pictures/([\w-]+\.svg)", text)}
    assert named == {path.name for path in PICTURES.iterdir()}


@pytest.mark.parametrize("theme", THEMES)
def test_picture_of_the_plan_draws_what_it_describes(theme):
    picture = PICTURES / f"plan-{theme}.svg"
    drawn = re.sub(r"\s", "", TIMES.sub("", shown(picture)))
    for word in told(picture).split():
        assert word in drawn, word


def test_drawing_made_again_is_the_same():
    code = "import readme_pictures; print(readme_pictures.drawing(), end='')"
    made = subprocess.run([sys.executable, "-c", code], cwd=SCRIPT.parent, capture_output=True, text=True, check=True)
    assert made.stdout == (PICTURES / "customers.svg").read_text(encoding="utf-8"), AGAIN


def test_pictures_of_windows_made_again_are_the_same(tmp_path):
    script = SCRIPT.with_name("window_pictures.py")
    subprocess.run([sys.executable, str(script), str(tmp_path)], capture_output=True, check=True)
    assert len(list(tmp_path.iterdir())) == 8
    for made in tmp_path.iterdir():
        assert made.read_bytes() == (PICTURES / made.name).read_bytes(), f"make it again: python {script}"


@pytest.mark.spark
@pytest.mark.long
def test_pictures_of_the_plan_made_again_say_the_same_apart_from_times(tmp_path):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path)], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for theme in THEMES:
        assert told(tmp_path / f"plan-{theme}.svg") == told(PICTURES / f"plan-{theme}.svg"), AGAIN
