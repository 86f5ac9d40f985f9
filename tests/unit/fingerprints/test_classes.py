"""Edits of classes are seen: their members, bases and options, however they were made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.fingerprints.pairs import edits, outcome

HEAD = """
import abc, collections, dataclasses, enum, functools, json, math, operator, types, typing
from dataclasses import dataclass, field, make_dataclass
from functools import partial, partialmethod, singledispatch, total_ordering
"""
#: Code that has no source cannot be compared.
REFUSED = {
    "method made by exec",
    "method made by exec in the module",
    "special method made by exec",
    "equality made by exec in a dataclass",
    "dataclass made by exec",
    "method by eval",
    # It says nothing true of itself.
    "lookup of a metaclass",
    # Without a text of its own, an object is shown with its address.
    "repr",
}


def outcomes(folder: Path, group: str, head: str) -> dict[str, str]:
    """What becomes of the edits of a group that are not just seen."""
    found = {title: outcome(*edit.modules(folder, head)) for title, edit in edits(group).items()}
    return {title: what for title, what in found.items() if what != "seen"}


@pytest.mark.parametrize("group", ["classes", "enums", "dataclasses"])
def test_edits_of_classes_are_seen(group, tmp_path: Path) -> None:
    assert outcomes(tmp_path, group, HEAD) == {title: "refused" for title in edits(group) if title in REFUSED}


def test_edits_in_less_common_places_are_seen(tmp_path: Path) -> None:
    # What hides its values in C, or lets go of them, cannot be compared.
    refused = ("instance of a class of C with attributes", "weak keys", "async function")
    assert outcomes(tmp_path, "corners", "") == dict.fromkeys(refused, "refused")


def test_edits_of_pydantic_models_are_seen(tmp_path: Path) -> None:
    pytest.importorskip("pydantic")
    assert outcomes(tmp_path, "models", HEAD + "from pydantic import *\n") == {}
