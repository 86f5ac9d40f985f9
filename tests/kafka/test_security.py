"""Passwords, certificates, tokens and rights, against a broker that asks for them; and no secret in any text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType

from everstate.errors import LogDeniedError
from everstate.log import open_log
from everstate.log.kafka.settings import ClientSettings
from tests import brokers
from tests.kafka import secure_broker
from tests.kafka.conftest import batch, frame, values
from tests.kafka.secure_broker import OTHER, PASSWORD, SecureBroker

pytestmark = [pytest.mark.kafka, pytest.mark.xdist_group("secure-broker")]
SERVICE = Path(__file__).with_name("shop_service.py")


@pytest.fixture(scope="module")
def secure(tmp_path_factory) -> SecureBroker:
    brokers.require()
    with secure_broker.running(tmp_path_factory.mktemp("secure") / "broker", os.getpid()) as broker:
        yield broker


@pytest.fixture
def opened(secure, tmp_path):
    logs = []

    def another(environment):
        settings = ClientSettings.from_environment(environment)
        logs.append(open_log(f"kafka://{secure.address}", settings=settings, staging=tmp_path / "staging"))
        return logs[-1]

    yield another
    for log in logs:
        log.close()


def test_user_with_password_over_tls_publishes_a_batch(secure, opened):
    log = opened(secure.environment())
    log.create_topic("scram")
    lease = log.acquire("scram-service")
    log.commit(*batch(log, lease, {"scram": [("a", "1")]}, 0, service="scram-service"))
    assert values(log, "scram") == ["1"]


def test_wrong_password_is_named_and_not_shown(secure, opened):
    log = opened(secure.environment(EVERSTATE_KAFKA_SASL_PASSWORD="wrong-password"))
    with pytest.raises(LogDeniedError, match=r"refuse this client: .*Authentication failed") as refused:
        log.topics()
    assert "EVERSTATE_KAFKA_SASL_PASSWORD" in str(refused.value)
    assert "wrong-password" not in str(refused.value)


def test_certificate_of_a_stranger_is_named(secure, opened):
    log = opened(secure.environment(EVERSTATE_KAFKA_SSL_CA_LOCATION=str(secure.stranger)))
    with pytest.raises(LogDeniedError, match=r"refuse this client: .*certificate verify failed"):
        log.topics()


@pytest.mark.long
def test_certificate_for_another_host_is_named(secure, tmp_path):
    address = secure.address.replace("localhost", "127.0.0.1")
    settings = ClientSettings.from_environment(secure.environment())
    log = open_log(f"kafka://{address}", settings=settings, staging=tmp_path)
    with pytest.raises(LogDeniedError, match="certificate verify failed"):
        log.topics()
    log.close()


@pytest.mark.long
def test_wrong_password_of_a_producer_that_comes_later_is_named(secure, opened):
    log = opened(secure.environment())
    log.create_topic("later", exist_ok=True)
    log._clients._given = {**log._clients._given, "sasl.password": "wrong-password"}
    with pytest.raises(LogDeniedError):
        log.append("later", frame(("a", "1")))


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["PLAIN", "OAUTHBEARER"])
def test_other_mechanisms_let_a_user_in(secure, opened, mechanism):
    with secure_broker.tokens() as endpoint:
        more = {
            "EVERSTATE_KAFKA_SASL_OAUTHBEARER_METHOD": "oidc",
            "EVERSTATE_KAFKA_SASL_OAUTHBEARER_CLIENT_ID": secure_broker.USER,
            "EVERSTATE_KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET": PASSWORD,
            "EVERSTATE_KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL": endpoint,
        }
        environment = secure.environment(EVERSTATE_KAFKA_SASL_MECHANISM=mechanism)
        log = opened(environment if mechanism == "PLAIN" else {**environment, **more})
        name = f"by-{mechanism.lower()}"
        log.create_topic(name, exist_ok=True)
        log.append(name, frame(("a", "1")))
        assert values(log, name) == ["1"]


@pytest.mark.long
def test_refused_token_is_named_and_not_shown(secure, opened):
    with secure_broker.tokens() as endpoint:
        log = opened(
            secure.environment(
                EVERSTATE_KAFKA_SASL_MECHANISM="OAUTHBEARER",
                EVERSTATE_KAFKA_SASL_OAUTHBEARER_METHOD="oidc",
                EVERSTATE_KAFKA_SASL_OAUTHBEARER_CLIENT_ID=secure_broker.USER,
                EVERSTATE_KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET="wrong-password",
                EVERSTATE_KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL=endpoint,
            )
        )
        with pytest.raises(LogDeniedError) as refused:
            log.topics()
        assert "wrong-password" not in str(refused.value)


@pytest.mark.long
def test_missing_rights_are_named_with_the_commands(secure, opened):
    owner = opened(secure.environment())
    owner.create_topic("guarded", exist_ok=True)
    owner.append("guarded", frame(("a", "1")))
    log = opened(secure.environment(EVERSTATE_KAFKA_SASL_USERNAME=OTHER))
    with pytest.raises(LogDeniedError, match="topic 'fresh' cannot be created") as refused:
        log.create_topic("fresh")
    assert "kafka-topics.sh --bootstrap-server HOST:PORT --create --topic fresh" in str(refused.value)
    with pytest.raises(LogDeniedError, match="guarded"):
        log.end_offsets(["guarded"])
    secure.allow(OTHER, ResourceType.TOPIC, AclOperation.READ)
    assert values(log, "guarded") == ["1"]
    with pytest.raises(LogDeniedError, match="kafka-acls"):
        log.append("guarded", frame(("a", "2")))
    # The right to have transactions is none to write: that is told at once, too, not tried for minutes.
    secure.allow(OTHER, ResourceType.TRANSACTIONAL_ID, AclOperation.ALL, "es/", ResourcePatternType.PREFIXED)
    log, began = opened(secure.environment(EVERSTATE_KAFKA_SASL_USERNAME=OTHER)), time.monotonic()
    with pytest.raises(LogDeniedError, match=r"Topic authorization failed(?s:.*)kafka-acls"):
        log.append("guarded", frame(("a", "2")))
    assert time.monotonic() - began < 60
    assert values(owner, "guarded") == ["1"]
    # What the error names is enough.
    secure.allow(OTHER, ResourceType.TOPIC, AclOperation.ALL)
    log = opened(secure.environment(EVERSTATE_KAFKA_SASL_USERNAME=OTHER))
    log.create_topic("fresh")
    lease = log.acquire("other-service")
    log.commit(*batch(log, lease, {"fresh": [("a", "1")]}, 0, service="other-service"))
    assert values(log, "fresh") == ["1"]


@pytest.mark.long
@pytest.mark.spark
def test_secrets_of_a_service_are_in_nothing_that_it_writes_or_prints(secure, opened, tmp_path):
    log = opened(secure.environment())
    log.create_topic("orders", exist_ok=True)
    log.append("orders", frame(("o1", '{"order_id":"o1","customer":"keyA","amount":5.0}')))
    events, conf, state = tmp_path / "events", tmp_path / "conf", tmp_path / "state"
    events.mkdir()
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(f"spark.eventLog.enabled true\nspark.eventLog.dir file:{events}\n")
    (tmp_path / "client.properties").write_text(f"sasl.password={PASSWORD}\n")
    environment = {**os.environ, **secure.environment(), "SPARK_CONF_DIR": str(conf)}
    del environment["EVERSTATE_KAFKA_SASL_PASSWORD"]
    environment["EVERSTATE_KAFKA_CONFIG"] = str(tmp_path / "client.properties")
    said = []
    kept = ("--state-dir", str(state))
    options = ("--once", "--memory", "1g", "--log-level", "INFO")
    for command in (["plan", *kept], ["run", *kept, *options], ["plan", "--json", *kept], ["status", "--json"]):
        place = ["--log", f"kafka://{secure.address}"]
        line = [sys.executable, "-m", "everstate.cli.main", command[0], str(SERVICE), *place, *command[1:]]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=280, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        said.append(done.stdout + done.stderr)
    files = [path for folder in (events, state) for path in folder.rglob("*") if path.is_file()]
    assert any(path.is_relative_to(events) for path in files)
    holding = [path for path in files if PASSWORD.encode() in path.read_bytes()]
    assert holding == []
    assert not any(PASSWORD in text for text in said)
    for topic in ("__everstate.customers.registry", "__everstate.customers.commits"):
        records = log._reader.read(topic, 0, 0)
        assert records.height
        assert not any(PASSWORD.encode() in (value or b"") for value in records["value"])


def rights(service, sources, outputs):
    """What the guide says that the user of a service needs."""
    guide = Path(__file__).parents[2] / "docs" / "guides" / "operations.md"
    table = guide.read_text(encoding="utf-8").partition("## Rights on Kafka")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:2] == "| "]
    names = {
        "each source": sources,
        "each output, and its `.dlq`": [name for output in outputs for name in (output, f"{output}.dlq")],
        "`__everstate.SERVICE.`": [f"__everstate.{service}."],
        "`es/SERVICE/`": [f"es/{service}/"],
    }
    kinds = {"topic": ResourceType.TOPIC, "transactional id": ResourceType.TRANSACTIONAL_ID}
    words = {"DescribeConfigs": "DESCRIBE_CONFIGS"}
    return [
        (kinds[kind], AclOperation[words.get(word, word.upper())], name, ResourcePatternType[pattern.upper()])
        for kind, named, pattern, operations in rows[1:]
        for name in names[named]
        for word in operations.split(", ")
    ]


@pytest.mark.long
@pytest.mark.spark
def test_rights_of_the_guide_are_all_that_a_service_needs_to_run_and_to_be_changed(secure, opened, tmp_path):
    user = "grace"
    secure.add(user)
    owner = opened(secure.environment())
    owner.create_topic("deliveries", exist_ok=True)
    orders = [(f"o{n}", f'{{"order_id":"o{n}","customer":"key{n % 3}","amount":{n}.0}}') for n in range(30)]
    owner.append("deliveries", frame(*orders, ("bad", "{")))
    service = tmp_path / "logistics.py"
    text = SERVICE.read_text(encoding="utf-8").replace('"customers"', '"logistics"').replace('"orders"', '"deliveries"')
    service.write_text(text.replace('"customer-totals"', '"logistics-totals"'), encoding="utf-8")
    for kind, operation, name, pattern in rights("logistics", ["deliveries"], ["logistics-totals"]):
        secure.allow(user, kind, operation, name, pattern)
    environment = {**os.environ, **secure.environment(EVERSTATE_KAFKA_SASL_USERNAME=user)}
    for version in ("1", "2"):
        line = [
            sys.executable,
            "-m",
            "everstate.cli.main",
            "run",
            str(service),
            "--once",
            "--approve",
            "--memory",
            "1g",
        ]
        place = ["--log", f"kafka://{secure.address}", "--state-dir", str(tmp_path / "state")]
        done = subprocess.run(
            [*line, *place],
            env={**environment, "EVERSTATE_TEST_VERSION": version},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    totals = {
        key.decode(): json.loads(value) for key, value in owner.latest("logistics-totals")["key", "value"].iter_rows()
    }
    kept = {f"key{k}": [n for n in range(30) if n % 3 == k and n > 10] for k in range(3)}
    assert totals == {key: {"total": float(sum(found)), "orders": len(found)} for key, found in kept.items()}
    assert owner.latest("logistics-totals.dlq").height == 1
