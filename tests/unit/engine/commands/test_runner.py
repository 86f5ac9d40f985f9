"""How a run ends: by Ctrl-C, by SIGTERM, by another process in its place; with outputs that run in this process."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager

import polars as pl
import pytest

import everstate as es
from everstate.engine import spark_run
from everstate.engine.commands.runner import Runner
from everstate.errors import FencedError, TakenOverError
from everstate.generations.deploy.heartbeat import as_lost
from everstate.generations.generation import build_lease
from everstate.generations.in_process.executor import InProcessExecutor
from everstate.log.crash import intercepted
from everstate.log.descriptions import Holder, Lease, TopicConfig
from everstate.log.opening import open_log


class Here(InProcessExecutor):
    """Runs outputs in this process, where a run would start Spark; what it keeps outlives the run."""

    everything = {}  # noqa: RUF012 - emptied before each test

    def __init__(self, log, home, settings, *, name, session):
        super().__init__(log, home, settings, self.everything)

    def begin(self):
        """There is nothing to start."""

    def stop(self):
        """There is nothing to stop."""


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setattr(spark_run, "SparkExecutor", Here)
    monkeypatch.setattr(Here, "everything", {})
    opened = open_log(tmp_path / "log")
    opened.create_topic("clicks", TopicConfig(partitions=2))
    send(opened, 6)
    yield opened
    opened.close()


def send(log, count):
    rows = {"key": [f"k{n}".encode() for n in range(count)], "value": [b'{"n": 1}'] * count}
    log.append("clicks", pl.DataFrame(rows))


def service(least=0):
    app = es.Service("shop", shards=1)
    clicks = app.stream("clicks", key="id", key_type=str, schema={"n": int}).filter(es.col("n") > least)
    clicks.group_by("id").agg(hits=es.count()).to("hits")
    return app


def has_run(log, keys=6):
    return log.has_topic("hits") and len(log.latest("hits")) == keys


@contextmanager
def beside(condition, then):
    """While something runs: as soon as the condition holds, do the other thing."""

    def wait():
        deadline = time.monotonic() + 60
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.02)
        then()

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def kill(number):
    return lambda: os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_that_is_asked_to_stop_says_what_is_committed_and_how_to_go_on(log, capsys, number):
    with beside(lambda: has_run(log), kill(number)):
        Runner(service(), log=log.url, file="shop.py").run()
    told = capsys.readouterr().err
    ends = log.describe("clicks").end
    assert "Stopping as soon as the micro-batches under way are committed.\n" in told
    assert "Stopped. Committed in this run:\n" in told
    where = f"up to offsets {ends[0]} and {ends[1]} of clicks"
    assert f"  hits (generation 1): 6 records read, 6 written; {where}\n" in told
    assert told.endswith("To continue from there: everstate run shop.py\n")


def test_run_from_python_that_is_asked_to_stop_returns(log, capsys):
    with beside(lambda: has_run(log), kill(signal.SIGINT)):
        service().run(log=log.url)
    assert capsys.readouterr().err.endswith("The next run continues from there.\n")


def test_run_that_is_stopped_while_it_builds_says_that_the_next_one_goes_on_with_it(log, capsys):
    service().run(log=log.url, once=True, show=False)

    def stop(met):
        if met == "batch.before_state":
            kill(signal.SIGINT)()

    with intercepted(stop):
        service(least=-1).run(log=log.url)
    assert "  hits: generation 2 was being built; the next run goes on with it\n" in capsys.readouterr().err


def test_run_that_waits_for_another_process_can_be_stopped(log, capsys):
    service().run(log=log.url, once=True, show=False)
    log.acquire("shop")
    with beside(lambda: log.holder(build_lease("shop")) is not None, kill(signal.SIGINT)):
        Runner(service(), log=log.url, standby=True, file="shop.py").run()
    assert capsys.readouterr().err == (
        "Stopped before any output had been started: nothing was committed in this run.\n"
        "To continue from there: everstate run shop.py\n"
    )


def test_run_in_silence_that_is_asked_to_stop_says_nothing(log, capsys):
    with beside(lambda: has_run(log), kill(signal.SIGINT)):
        service().run(log=log.url, show=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("number", "ended"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)], ids=["ctrl-c", "sigterm"]
)
def test_run_once_that_is_stopped_before_it_is_done_does_not_pass_for_done(log, capsys, number, ended):
    with pytest.raises(ended) as how:
        Runner(service(), log=log.url, file="shop.py", announce=lambda _: kill(number)()).run(once=True)
    assert ended is KeyboardInterrupt or how.value.code == 128 + signal.SIGTERM
    assert "To continue from there: everstate run shop.py --once\n" in capsys.readouterr().err
    service().run(log=log.url, once=True, show=False)
    assert has_run(log)


def test_run_whose_lease_is_taken_over_says_so_in_a_sentence_and_returns(log, capsys):
    with beside(lambda: has_run(log), lambda: log.acquire("shop", take_over=True)):
        Runner(service(), log=log.url, heartbeat=0.05).run()
    assert capsys.readouterr().err.endswith(
        f"Process {os.getpid()} now runs service shop in place of this one, which has stopped. "
        "Nothing is lost: it goes on from the last commit.\n"
    )


def test_run_in_the_background_whose_lease_is_taken_over_ends_without_an_error(log, capsys):
    app = service()
    app.start(log=log.url, heartbeat=0.05)
    with beside(lambda: has_run(log), lambda: log.acquire("shop", take_over=True)):
        app._runner._thread.join(60)
    app.stop()
    assert "now runs service shop in place of this one" in capsys.readouterr().err


def test_run_once_that_is_taken_over_before_it_is_done_does_not_pass_for_done(log):
    def take(met):
        if met == "batch.before_state":
            log.acquire("shop", take_over=True)

    with intercepted(take), pytest.raises(TakenOverError, match="has been taken over by process"):
        Runner(service(), log=log.url, show=False).run(once=True)


def test_run_whose_lease_nobody_knows_any_longer_keeps_its_error(log):
    def lose():
        log.release(Lease("shop", 1, Holder("", 0, 0.0)))

    with beside(lambda: has_run(log), lose), pytest.raises(FencedError, match="was released"):
        Runner(service(), log=log.url, heartbeat=0.05, show=False).run()


def taken(host):
    return TakenOverError("shop", host, 7, token=2, own=1)


@pytest.mark.parametrize(
    ("host", "silence", "expected"), [("here", 100.0, True), ("there", 5.0, True), ("there", 31.0, False)]
)
def test_lease_taken_by_a_machine_that_had_not_heard_of_this_process_was_not_to_be_expected(host, silence, expected):
    lost = as_lost(taken(host), Lease("shop", 1, Holder("here", 1, 0.0)), silence)
    assert isinstance(lost, TakenOverError) is expected
    assert expected or "took it for dead" in lost.message
