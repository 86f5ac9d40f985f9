"""The order log as entries of a journal: what is folded says the same in fewer of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstate.log import Commit
from everstate.log.kafka import markers
from everstate.log.kafka.journal import Entry

STEPS = st.lists(
    st.tuples(st.sampled_from(["g1", "g2"]), st.sampled_from(["open", "open", "open", "closed", "closed", "cutover"])),
    max_size=120,
)


def committed(number, generation, kind):
    return Commit(
        service="svc",
        output="out",
        generation=generation,
        query_id="q",
        batch_id=number,
        start={"t": {0: number}},
        end={"t": {0: number + 1}, "u": {1: number // 2}},
        digest=b"",
        token=1,
        kind=kind,
        ordered=True,
    )


def written(entries, changes):
    for key, value in changes.items():
        entries.pop(key, None)
        if value is not None:
            entries[key] = Entry(value, 0, 0)


def journals(steps):
    """The entries after these batches, as they are and folded."""
    plain, folded = {}, {}
    for number, (generation, kind) in enumerate(steps):
        commit = committed(number, generation, kind)
        written(folded, markers.folded(folded, commit))
        for entries in (plain, folded):
            written(entries, dict([markers.stop_entry(commit, 1000 + number)]))
    return plain, folded


@pytest.mark.hypothesis
@given(STEPS)
def test_folded_stops_of_several_generations_are_the_same(steps):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(markers, "FOLD", 3)
        plain, folded = journals(steps)
        known, found = markers.stops(plain, "out"), markers.stops(folded, "out")
        assert list(found) == list(known)
        assert found.times.tolist() == known.times.tolist()
        assert not len(markers.stops(folded, "ou"))


def test_stops_of_a_long_time_are_few_entries(monkeypatch):
    monkeypatch.setattr(markers, "FOLD", 16)
    plain, folded = journals([("g1", "open")] * 2000)
    assert len(plain) == 2000
    assert len(folded) < 16 * 3
    assert list(markers.stops(folded, "out")) == list(markers.stops(plain, "out"))


def test_stops_that_would_not_fit_into_a_record_are_left_as_they_are(monkeypatch):
    monkeypatch.setattr(markers, "FOLD", 4)
    one = markers.stop_entry(committed(1000, "g1", "open"), 1000)
    monkeypatch.setattr(markers, "_LARGEST", 4 * len(one[1]))
    plain, folded = journals([("g1", "open")] * 200)
    assert not any(key.startswith("many-stops/") for key in folded)
    assert list(markers.stops(folded, "out")) == list(markers.stops(plain, "out"))
