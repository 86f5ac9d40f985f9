from __future__ import annotations

import pytest

import everstate as es
from everstate import col
from everstate.engine.commands.clearing import clear_state
from everstate.errors import HistoryTruncatedError
from everstate.fingerprints import print_unit
from everstate.generations.deploy import transitions
from everstate.generations.deploy.outputs import PreparedOutput, create_topics
from everstate.generations.deploy.planning import make_plan, require_possible
from everstate.generations.generation import Generation, Status
from everstate.generations.registry import Registry
from everstate.generations.state.folder import OutputFolder
from everstate.generations.state.past import beginning, past_of, unread
from everstate.log.archive.files import FOLDER
from everstate.plan.actions import Keep, Recalculate, Refuse
from everstate.plan.facts import Options
from tests.sites import site_of
from tests.unit.log.archive.conftest import Shelf


@pytest.fixture
def shelf(tmp_path):
    shelf = Shelf(tmp_path)
    yield shelf
    shelf.log.close()


def service(version=0, *, stateful=False, table=False, keep=True):
    app = es.Service("svc", on_error="skip")
    read = app.table if table and not stateful else app.stream
    rows = read("t", schema=int, keep_history=keep)
    if stateful:
        rows.apply(lambda row, state: version, stateful=True, schema=int).to("out")
    else:
        rows.filter(col("value") >= version).group_by("value").agg(n=es.count()).to("out")
    return app


def begun(shelf, app):
    """The service with its first generations active."""
    create_topics(app.units(), shelf.log, app.on_error)
    shelf.log.release(shelf.lease)
    with site_of(app, shelf.log, shelf.home, shards=1) as site:
        site.leases.take_publishing()
        site.leases.take_building()
        planned = make_plan(app, site, Options())
        for name in planned.units:
            transitions.begin(planned, name, site)
    shelf.lease = shelf.log.acquire("svc")


def plan(shelf, app, **options):
    with site_of(app, shelf.log, shelf.home) as site:
        return make_plan(app, site, Options(**options))


def lost(shelf, *, archive):
    """Five records expire, three are left."""
    shelf.topic("t")
    shelf.send("t", 5)
    begun(shelf, service())
    if archive:
        shelf.archive("t")
    shelf.expire("t")
    shelf.send("t", 3)


def test_kept_topics_are_named_and_no_part_of_the_fingerprint():
    assert service().kept_topics == ("t",)
    assert service(keep=False).kept_topics == ()
    prints = [print_unit(app.units()[0], policy="skip", settings={}) for app in (service(), service(keep=False))]
    assert prints[0] == prints[1]


def test_plan_with_an_archive_reads_all_of_it(shelf):
    lost(shelf, archive=True)
    action = plan(shelf, service(1)).plan.actions[0]
    assert isinstance(action, Recalculate)
    (reading,) = action.sources
    assert (reading.records, reading.archived, reading.start, reading.truncated) == (8, 5, {0: 0}, "")


def test_plan_without_an_archive_is_refused_unless_the_loss_is_accepted_by_name(shelf):
    lost(shelf, archive=False)
    refused = plan(shelf, service(1))
    assert isinstance(refused.plan.actions[0], Refuse)
    with pytest.raises(HistoryTruncatedError, match="topic t has lost 5 records to retention"):
        require_possible(refused)
    accepted = plan(shelf, service(1), accept_truncated=("t",)).plan.actions[0]
    assert isinstance(accepted, Recalculate)
    assert accepted.sources[0].truncated


def test_plan_of_an_unchanged_service_does_not_care(shelf):
    lost(shelf, archive=False)
    assert isinstance(plan(shelf, service()).plan.actions[0], Keep)


def test_plan_with_a_gap_between_archive_and_topic_is_refused(shelf):
    lost(shelf, archive=True)
    shelf.expire("t")
    shelf.send("t", 1)
    assert plan(shelf, service(1)).plan.actions[0].problem.startswith("topic t has lost 3 records to retention")


def test_plan_of_a_table_that_needs_every_record_reads_superseded_ones_from_the_archive(shelf):
    shelf.topic("t", compact=True, retention_ms=None)
    shelf.send("t", 6, keys=[b"a", b"b"])
    begun(shelf, service(stateful=True))
    shelf.archive("t")
    shelf.log.compact("t")
    action = plan(shelf, service(1, stateful=True)).plan.actions[0]
    assert isinstance(action, Recalculate)
    assert (action.sources[0].records, action.sources[0].archived) == (6, 4)


def test_topic_that_was_made_anew_cannot_be_read(shelf):
    lost(shelf, archive=True)
    shelf.log.delete_topic("t")
    shelf.topic("t")
    shelf.send("t", 100)
    assert "created again" in plan(shelf, service(1)).plan.actions[0].problem


def test_new_generation_begins_at_the_archives_first_offset_and_knows_the_gaps(shelf):
    lost(shelf, archive=True)
    described = plan(shelf, service(1)).prints["out"]
    assert beginning(shelf.log, "svc", shelf.home, described, ["t"]) == ({"t": {0: 0}}, {})
    shelf.expire("t")
    assert beginning(shelf.log, "svc", shelf.home, described, ["t"]) == ({"t": {0: 0}}, {"t": {0: ((5, 8),)}})


def known(missing=None):
    made = {"fingerprint": "f", "description": "", "shards": 1, "initial": {}, "code": "", "policy": "skip"}
    return Generation(number=1, status=Status.RECALCULATING, missing=missing or {}, **made)


def test_generation_that_has_not_read_all_can_go_on_only_with_an_archive(shelf):
    lost(shelf, archive=True)
    stands = {"t": {0: 3}}
    assert not list(unread(shelf.log, "svc", shelf.home, ["t"], stands, known()))
    assert list(unread(shelf.log, "other", shelf.home, ["t"], stands, known())) == ["t"]
    shelf.expire("t")
    assert list(unread(shelf.log, "svc", shelf.home, ["t"], stands, known())) == ["t"]
    assert not list(unread(shelf.log, "svc", shelf.home, ["t"], stands, known({"t": {0: ((5, 8),)}})))


def test_clear_keeps_the_archive(shelf):
    lost(shelf, archive=True)
    files = shelf.files()
    shelf.log.release(shelf.lease)
    cleared = clear_state(service(), log=shelf.log.url, state_dir=shelf.home.parent)
    assert cleared == ["out"]
    assert shelf.files() == [name for name in files if name.startswith(FOLDER)]
    assert plan(shelf, service(1)).plan.actions[0].sources[0].archived == 5


def test_gaps_that_a_generation_does_without_are_in_the_registry(shelf):
    shelf.topic("t")
    shelf.send("t", 5)
    shelf.archive("t")
    shelf.send("t", 2)
    shelf.expire("t")
    shelf.send("t", 1)
    begun(shelf, service())
    generation = Registry(shelf.log, "svc").read("out").active
    assert (generation.initial, generation.missing) == ({"t": {0: 0}}, {"t": {0: ((5, 7),)}})


@pytest.mark.parametrize(
    ("stateful", "expires", "whole"), [(True, False, ("t",)), (False, True, ("t",)), (False, False, ())]
)
def test_compacted_topic_is_read_from_its_archive_where_only_that_knows_all(shelf, stateful, expires, whole):
    shelf.topic("t", compact=True)
    shelf.send("t", 4, keys=[b"a"])
    app = service(stateful=stateful, table=True)
    begun(shelf, app)
    shelf.archive("t")
    if expires:
        shelf.expire("t")
    generation = Registry(shelf.log, "svc").read("out").active
    output = PreparedOutput(app.units()[0], OutputFolder(shelf.home / "out" / generation.name), generation)
    assert past_of(output, shelf.log, generation.initial).whole == whole
    assert past_of(output, shelf.log, {"t": {0: 4}}, closed=False) == shelf.past()
    assert past_of(output, shelf.log, {"t": {0: 4}}).every == (("t",) if stateful else ())
