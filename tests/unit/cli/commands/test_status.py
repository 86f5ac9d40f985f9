from __future__ import annotations

import json

import pytest

from everstate.cli.commands.status import text
from everstate.errors import ConfigurationError
from everstate.generations.status import BuildStatus, OutputStatus, ProcessStatus, ServiceStatus
from everstate.log.waiting import Waiting
from tests.unit.cli.deployments import deploy, prepare, write

NOW = 1_000_000_000


@pytest.fixture
def shop(everstate):
    """A service that was deployed, with two records that it has not read."""
    everstate("topic", "create", "orders", "--compact")
    file = write(everstate.path / "shop.py")
    deploy(file, str(everstate.path / "log"))
    everstate("produce", "orders", "--key", "o1", stdin='{"customer": "ada", "amount": 1}\n' * 2)
    return everstate


def test_status_of_a_stopped_service_says_what_waits(shop):
    lines = shop("status").stdout.splitlines()
    assert lines[0].startswith("shop: stopped ")
    assert lines[1].split() == ["OUTPUT", "GENERATION", "LAG", "LAST", "BATCH", "RATE", "DEAD"]
    assert lines[2].split()[:3] == ["totals", "1", "2"]
    assert "none yet" in lines[2]


def test_status_takes_a_name_or_the_file(shop):
    by_name = json.loads(shop("status", "shop", "--json").stdout)
    by_file = json.loads(shop("status", str(shop.path / "shop.py"), "--json").stdout)
    assert by_name["version"] == 1
    (service,) = by_name["services"]
    assert service["process"]["state"] == "stopped"
    (output,) = service["outputs"]
    assert (output["output"], output["generation"], output["lag_records"], output["rate"]) == ("totals", 1, 2, None)
    assert output["lag_seconds"] >= 0
    assert by_file["services"][0]["service"] == "shop"


def test_status_of_a_generation_that_is_ready_says_so(shop):
    prepare(shop.path / "shop.py", str(shop.path / "log"), least=5)
    assert "  totals: generation 2 is ready; 2 records to go" in shop("status").stdout.splitlines()
    build = json.loads(shop("status", "--json").stdout)["services"][0]["outputs"][0]["build"]
    assert (build["generation"], build["status"], build["share"], build["seconds_left"]) == (2, "ready", 0.0, None)


def test_status_of_a_service_that_is_not_there_names_those_that_are(shop):
    with pytest.raises(ConfigurationError, match="service 'shpo' has not been deployed") as refused:
        shop("status", "shpo")
    assert refused.value.hint == "Did you mean 'shop'? The deployed services are: shop."


def test_status_without_services_says_so(everstate):
    everstate("topic", "create", "orders")
    assert everstate("status").stdout == "No service has been deployed on this log.\n"
    assert json.loads(everstate("status", "--json").stdout) == {"version": 1, "services": []}


def test_status_without_a_log_names_it_and_makes_none(everstate):
    with pytest.raises(ConfigurationError, match="there is no log at"):
        everstate("status")
    assert list(everstate.path.iterdir()) == []


def process(state: str, **changes: object) -> ProcessStatus:
    return ProcessStatus(**{"state": state, "host": "mars", "pid": 7, "heartbeat_ms": NOW - 2000, **changes})


def service(found: ProcessStatus | None, *outputs: OutputStatus, builder: ProcessStatus | None = None) -> ServiceStatus:
    return ServiceStatus(service="shop", at_ms=NOW, process=found, builder=builder, outputs=outputs)


def output(**changes: object) -> OutputStatus:
    given = {
        "output": "totals",
        "generation": 2,
        "lag_records": 1200,
        "lag_seconds": 3.44,
        "batch_ms": NOW - 65_000,
        "batch_records": 1,
        "rate": 5000.0,
        "dead_letters": 3,
        "build": None,
    }
    return OutputStatus(**{**given, **changes})


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (None, "shop: not running"),
        (process("running", started_ms=NOW - 7_500_000), "shop: running for 2 h 5 min (process 7 on mars)"),
        (process("stopped"), "shop: stopped 2.0 s ago (process 7 on mars)"),
        (
            process("gone", heartbeat_ms=NOW - 240_000),
            "shop: not running: process 7 on mars ended without stopping; last heard of 4 min ago",
        ),
        (
            process("silent", heartbeat_ms=NOW - 60_000),
            "shop: running (process 7 on mars), but no sign of life since 1 min ago",
        ),
    ],
)
def test_status_says_what_became_of_the_process(found, line):
    assert list(text(service(found))) == [line]


def test_status_of_a_running_service_fits_into_80_columns():
    build = BuildStatus(generation=3, status="recalculating", done=450_000, left=550_000, rate=50_000.0)
    lines = list(text(service(process("running"), output(build=build), builder=process("running", pid=8))))
    assert lines == [
        "shop: running (process 7 on mars)",
        "  OUTPUT  GENERATION  LAG            LAST BATCH            RATE     DEAD",
        "  totals  2           1,200 (3.4 s)  1 min ago (1 record)  5,000/s     3",
        "  totals: generation 3 is recalculating: 45% of 1,000,000, 50,000/s, 11 s left",
        "  built by process 8 on mars",
    ]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(("rate", "shown"), [(None, "-"), (0.0, "0/s"), (0.33, "0.3/s"), (12_345.0, "12,345/s")])
def test_status_rate_has_as_many_digits_as_say_something(rate, shown):
    line = list(text(service(process("running"), output(rate=rate))))[2]
    assert line.split()[-2] == shown


def test_status_of_a_build_that_nobody_works_on_says_so():
    build = BuildStatus(generation=3, status="recalculating", done=1, left=3, rate=None)
    lines = list(text(service(process("stopped"), output(generation=None, rate=None, build=build))))
    assert lines[-1] == "  totals: generation 3 is recalculating: 25% of 4; nobody is building it now"


def test_status_names_the_partition_that_time_waits_for():
    held = output(waits_for=Waiting("orders", 3, None, None))
    assert list(text(service(process("running"), held)))[-1] == (
        "  totals: time waits for partition 3 of orders, which has no time yet"
    )
