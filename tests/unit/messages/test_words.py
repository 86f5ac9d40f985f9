"""The words that users read: plain English in messages and documentation, and a glossary of what there is."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.unit.messages.extraction import PACKAGE, ROOT, messages

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
GLOSSARY = ROOT / "docs" / "glossary.md"

_THINGS = (
    "records?|rows?|entry|entries|calls?|files?|objects?|folders?|modules?|groups?|values?|bytes|lines?|batch(?:es)?|"
    "tasks?"
)
_FOR_EACH = (
    "key|record|row|line|batch|micro-batch|module|package|page|command|file|shard|partition|group|output|service|"
    "generation|call|worker|task|test|commit|topic"
)
#: What nobody would say aloud, with what to say instead.
BANNED: Final = {
    r"\banew\b": "again, or from scratch",
    r"\b(?:is|are|was) (?:another(?: one)?|others)(?=[.,;:)]|$)": "changed, or is different",
    r"\bin another way\b": "differently",
    r"\bbehind\b": "downstream",
    rf"\b(?:{_THINGS}) a (?:{_FOR_EACH})\b": "per",
    r"\bany more\b": "no longer",
    r"\b(?:libraries|code|secret|input) of today\b": "today's, or installed",
    r"(?<!\bthere )\bis no (?:file\b|change\b|part\b|output\b)": "is not a",
    r"\bsub-topolog": "stage",
    r"\bfor ever\b": "forever",
    r"\brefused by name\b": "refused with an error that says so",
    r"\blengths? of time\b": "duration, or span of time",
    r"\bhas got\b": "has, or has gained",
    r"\bin the place of\b": "in place of, or replaces",
    r"\bif need be\b": "if necessary, or optionally",
}
#: Where one of these words is right, with the reason. An entry that is not needed any longer fails, too.
ALLOWED: Final = {
    "leave behind keys": "what is left there",
    "one batch behind": "a reader that is late",
    "whatever rows a micro-batch has": "not a rate",
    "fits behind the same protocol": "hidden by it",
    "{scale} behind the point": "a reason that is stored in dead letters: another text would be written again",
}


def prose(text: str) -> str:
    """A page without its code, in single spaces."""
    without_blocks = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\s+", " ", re.sub(r"`[^`\n]*`", "`code`", without_blocks))


def texts() -> list[tuple[str, str]]:
    """Everything that users read, each with its place."""
    pages = [(str(page.relative_to(ROOT)), prose(page.read_text(encoding="utf-8"))) for page in PAGES]
    return pages + [(f"src/everstate/{message.module}:{message.line}", message.text) for message in messages()]


def without_allowed(text: str) -> str:
    for phrase in ALLOWED:
        text = text.replace(phrase, "")
    return text


@pytest.mark.parametrize(("banned", "better"), BANNED.items())
def test_texts_for_users_do_without(banned, better) -> None:
    found = [
        f"{place}: {text[max(0, match.start() - 60) : match.end() + 30]}"
        for place, text in texts()
        for match in re.finditer(banned, without_allowed(text))
    ]
    assert found == [], f"say it with: {better}"


@pytest.mark.parametrize("phrase", ALLOWED)
def test_allowed_phrase_is_still_needed(phrase) -> None:
    assert any(phrase in text for _, text in texts())


def glossary(*, inside: bool) -> list[str]:
    part = GLOSSARY.read_text(encoding="utf-8").split("## Inside")[inside]
    cells = re.findall(r"^\| (?!word |-)([^|]+) \|", part, flags=re.MULTILINE)
    return [word.strip() for cell in cells for word in cell.split(",")]


@pytest.mark.parametrize("word", glossary(inside=False) + glossary(inside=True))
def test_glossary_word_is_one_of_the_code(word) -> None:
    """In a text, or as a name: `own topic` is `own_topic` or `OwnTopic`."""
    pattern = re.compile(r"[\s_-]*".join(map(re.escape, re.split(r"[\s-]+", word))), re.IGNORECASE)
    bounded = re.compile(rf"(?<![a-z]){pattern.pattern}(?:s|es)?(?![a-z])", re.IGNORECASE)
    assert any(bounded.search(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py"))


def test_glossary_says_each_word_once() -> None:
    words = glossary(inside=False) + glossary(inside=True)
    assert len(words) == len(set(words))
    assert "page" in glossary(inside=True)
