from __future__ import annotations

import pytest

from everstate.errors import ConfigurationError
from everstate.log.kafka import KafkaLog
from everstate.log.kafka.settings import ALLOWED, ClientSettings


def test_settings_of_the_environment_win_over_the_file(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("# for the shop\nsecurity.protocol = SASL_SSL\nsasl.password=from the file=with signs\n\n")
    found = ClientSettings.from_environment(
        {"EVERSTATE_KAFKA_CONFIG": str(file), "EVERSTATE_KAFKA_SASL_USERNAME": "ada", "EVERSTATE_KAFKA_OTHER": "x"}
    )
    assert found.values == {
        "security.protocol": "SASL_SSL",
        "sasl.password": "from the file=with signs",
        "sasl.username": "ada",
    }
    again = ClientSettings.from_environment(
        {"EVERSTATE_KAFKA_CONFIG": str(file), "EVERSTATE_KAFKA_SASL_PASSWORD": "secret"}
    )
    assert again.values["sasl.password"] == "secret"


def test_settings_are_shown_without_their_values():
    settings = ClientSettings({"sasl.password": "hunter2", "sasl.username": "ada"})
    assert repr(settings) == str(settings) == "ClientSettings(sasl.password, sasl.username)"


@pytest.mark.parametrize("name", ["transactional.id", "enable.idempotence", "isolation.level", "bootstrap.servers"])
def test_settings_that_decide_about_correctness_are_refused(name):
    assert name not in ALLOWED
    with pytest.raises(ConfigurationError, match=f"cannot be given {name}") as raised:
        ClientSettings({name: "hunter2"})
    assert "hunter2" not in str(raised.value)


def test_settings_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"cannot be read from .*nowhere"):
        ClientSettings.from_environment({"EVERSTATE_KAFKA_CONFIG": str(tmp_path / "nowhere")})


def test_settings_file_with_a_line_of_another_form_is_refused_without_showing_it(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("sasl.username=ada\nhunter2\n")
    with pytest.raises(ConfigurationError, match="line 2 of") as raised:
        ClientSettings.from_environment({"EVERSTATE_KAFKA_CONFIG": str(file)})
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("bootstrap.servers", "--log kafka://"),
        ("sasl.jaas.config", "sasl.username and sasl.password say it"),
        ("ssl.truststore.location", "ssl.ca.location"),
    ],
)
def test_settings_of_other_clients_are_refused_with_what_says_the_same_here(name, cure):
    with pytest.raises(ConfigurationError) as raised:
        ClientSettings({name: "hunter2"})
    assert cure in raised.value.hint


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"sasl.password": "hunter2"}, "sasl.password is set, but not security.protocol"),
        ({"ssl.ca.location": "/ca.pem"}, "ssl.ca.location is set, but not security.protocol"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "has to be oidc"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanisms": "OAUTHBEARER"}, "has to be oidc"),
    ],
)
def test_settings_that_no_connection_would_use_are_refused_before_one_is_made(values, reason):
    with pytest.raises(ConfigurationError, match=reason) as raised:
        KafkaLog("host:9092", settings=ClientSettings(values))
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"sasl.password": ""},
        {"client.id": "me"},
        {"security.protocol": "PLAINTEXT", "sasl.password": "hunter2"},
        {"security.protocol": "SASL_SSL", "sasl.mechanisms": "OAUTHBEARER", "sasl.oauthbearer.method": "OIDC"},
    ],
)
def test_settings_that_say_how_to_connect_are_taken(values):
    KafkaLog("host:9092", settings=ClientSettings(values)).close()
