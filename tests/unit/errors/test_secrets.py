"""Credentials are told by the name of a setting, or by their form inside a text."""

from __future__ import annotations

import pytest

import everstate as es
from everstate.dsl.config import OVERRIDES
from everstate.errors import ConfigurationError
from everstate.errors.secrets import hidden, is_secret, masked
from everstate.fingerprints.outputs import print_unit

SECRET = "hunter2"


@pytest.mark.parametrize(
    "text",
    [
        "kafka://ada:hunter2@broker:9092",
        "postgresql://ada:hunter2@db/x",
        "https://:hunter2@host/",
        "https://hunter2@github.com/x.git",
        "redis://ada:p@hunter2@host",
        "amqp://ada:a/hunter2@host/vhost",
        "HTTP://ada:hunter2@host",
        "jdbc:postgresql://host/db?user=ada&password=hunter2",
        "https://host/?token=hunter2&x=1",
        "https://host/?x=1&api_key=hunter2",
        "https://host/?x=1&sig=hunter2",
        "https://host/?next=https%3A%2F%2Fa%3Fpassword%3Dhunter2",
        "Server=x;Uid=ada;Pwd=hunter2;",
        "password='hunter2'",
        'sasl.jaas.config=PlainLoginModule required username="ada" password="hunter2";',
        "Authorization: Bearer hunter2",
        "{'Authorization': 'Basic hunter2'}",
        '{"authorization": "hunter2"}',
        "authorization=Token hunter2",
        "403 for Bearer hunter2hunter2",
        "two: a://u:hunter2@h and b://v:hunter2@h",
        "client_secret=hunter2",
        "{'password': 'hunter2'}",
        '{"db_password": "hunter2", "host": "h"}',
        "password = 'hunter2'",
        "x-api-key=hunter2",
        "AccountKey=hunter2;EndpointSuffix=x",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_credentials_in_a_text_are_masked(text):
    assert SECRET not in masked(text)
    assert "***" in masked(text)


@pytest.mark.parametrize(
    "text",
    [
        "http://host:8080/path?mail=a@b.c",
        "there is no log at /tmp/a@b",
        "mail ada@example.com",
        "col(amount) == 5",
        "a=b&c=d",
        "topic 'orders' ends at 5",
        "file:///tmp/x",
        "a token is needed",
        "col('password') == 'a'",
        "{'password': str, 'token': int}",
        "password == 'a'",
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
        "key 'id': expected text",
        "https://host/path:with@sign".replace("@", "-"),
    ],
)
def test_text_without_credentials_stays_as_it_is(text):
    assert masked(text) == text


@pytest.mark.parametrize("form", ["p@ss/w:rd", "p%40ss%2Fw%3Ard", "p@ss%2Fw:rd"])
def test_named_secret_is_hidden_in_every_form(form):
    assert hidden(f"x {form} y", ["p@ss/w:rd"]) in {"x *** y", f"x {form} y"}
    assert "ss" not in hidden("see p%40ss%2Fw%3Ard and p@ss/w:rd", ["p@ss/w:rd"])


@pytest.mark.parametrize("name", ["db_password", "API_KEY", "apiKey", "auth", "client-secret", "pin", "sasl.password"])
def test_names_of_secrets_are_known(name):
    assert is_secret(name)


@pytest.mark.parametrize("name", ["least", "keyword", "author", "pinned", "compass", "monkey"])
def test_other_names_are_no_secrets(name):
    assert not is_secret(name)


def test_errors_hold_no_credentials_in_message_and_hint():
    error = ConfigurationError("no log at kafka://u:hunter2@h", hint="Try kafka://u:hunter2@h")
    assert SECRET not in str(error)
    assert SECRET not in repr(error)
    assert SECRET not in str(error.args)


def test_configuration_of_a_wrong_type_does_not_repeat_a_secret():
    token = OVERRIDES.set({"db_password": SECRET, "url": f"https://a:{SECRET}@h"})
    try:
        for name in ("db_password", "url"):
            with pytest.raises(ConfigurationError) as caught:
                es.Service("s").config(name, 5)
            assert SECRET not in str(caught.value)
    finally:
        OVERRIDES.reset(token)


def test_print_of_an_output_shows_no_credentials():
    token = OVERRIDES.set({"db_password": SECRET, "url": f"https://ada:{SECRET}@host/x"})
    try:
        app = es.Service("s")
        password, url = app.config("db_password", ""), app.config("url", "")
    finally:
        OVERRIDES.reset(token)
    rows = app.table("t", schema={"a": str, "b": str})
    kept = rows.filter((es.col("a") != password) & (es.col("b") != url))
    (output,) = kept.map(lambda row: f"{row['a']}{url}", schema=str).to("out") and app.outputs
    (unit,) = app.units()
    shown = repr(print_unit(unit, policy="fail", settings=app.settings))
    assert output.topic == "out"
    assert SECRET not in shown
    assert "***" in shown


def test_dead_letter_holds_no_credentials_of_an_exception():
    def failing(row):
        raise ValueError(f"cannot reach https://ada:{SECRET}@host/?token={SECRET}")

    app = es.Service("s")
    app.table("t", schema={"a": int}).map(failing, schema=int).to("out")
    driver = es.testing.Driver(app)
    driver.send("t", "k", {"a": 1})
    (letter,) = driver.records("out.dlq")
    assert SECRET not in str(letter)
    assert "https://ada:***@host" in letter.value["reason"]
