"""What is not to be shown or stored: values of settings that are named like secrets, and credentials inside texts."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MASK: Final = "***"
#: A shorter value could be any word of the code.
SHORTEST: Final = 8
#: The secrets that this process was given, by name: what code that is loaded again refers to.
_given: dict[str, str] = {}
_WORDS: Final = r"passw(?:or)?d|passphrase|pwd|secret|token|credential|private|(?:api|access|account)[_-]?key|signature"
_NAME: Final = re.compile(rf"{_WORDS}|(^|[_.-])(key|auth|pin|pass|sig)($|[_.-])", re.IGNORECASE)

#: `https://user:password@host`. A port is no password, whatever follows it.
_USER: Final = re.compile(
    r"(?P<scheme>\b[a-zA-Z][a-zA-Z0-9+.-]*://)(?P<user>[^\s/?#'\"<>:@]*)"
    r"(?::(?!\d+(?:[/?#\s'\"]|$))[^\s'\"<>]*|:[^\s/?#'\"<>@]*)?@"
)
#: `?token=...`, `&password=...`, `;pwd=...`, and `password="..."` as drivers and brokers take it.
_PAIR: Final = re.compile(
    rf"(?P<name>\b[\w.-]*(?:{_WORDS})[\w.-]*|(?<=[?&;])(?:key|auth|sig|pass|pin))"
    r"(?P<sign>=|%3[dD])(?P<quote>\\?['\"]?)(?!=)[^\s&;'\"\\]+",
    re.IGNORECASE,
)
#: `"password": "..."` and `password = '...'`, as documents and code have it.
_ITEM: Final = re.compile(
    rf"(?P<name>\b[\w.-]*(?:{_WORDS})[\w.-]*\\?['\"]?\s*[:=]\s*)(?P<quote>\\?['\"])(?:(?!(?P=quote)).)+",
    re.IGNORECASE,
)
_PEM: Final = re.compile(r"(?P<name>-----BEGIN [A-Z ]*PRIVATE KEY-----)(?:(?!-----).)*", re.DOTALL)
#: `Authorization: Bearer ...`, also where it stands in a dict.
_HEADER: Final = re.compile(
    r"(?P<name>\b(?:proxy-)?authorization['\"]?\s*[:=]\s*['\"]?(?:basic|bearer|token|digest|apikey)?\s*)[^\s'\",}]+",
    re.IGNORECASE,
)
_BEARER: Final = re.compile(r"(?P<name>\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{8,}")


def is_secret(name: str) -> bool:
    """Whether a setting's name says that its value is not to be shown.

    Example:
        >>> is_secret("db_password"), is_secret("least")
        (True, False)
    """
    return _NAME.search(name) is not None


def masked(text: str) -> str:
    """A text without the credentials that can be told by their form.

    Example:
        >>> masked("there is no log at kafka://ada:hunter2@broker:9092/?token=x1")
        'there is no log at kafka://ada:***@broker:9092/?token=***'
    """
    if "://" in text:
        text = _USER.sub(lambda found: f"{found['scheme']}{_user(found)}@", text)
    if "=" in text or "%3" in text:
        text = _PAIR.sub(lambda found: f"{found['name']}{found['sign']}{found['quote']}{MASK}", text)
    text = _ITEM.sub(lambda found: f"{found['name']}{found['quote']}{MASK}", text)
    if "PRIVATE KEY" in text:
        text = _PEM.sub(lambda found: f"{found['name']}{MASK}", text)
    if "uthorization" in text.lower():
        text = _HEADER.sub(lambda found: f"{found['name']}{MASK}", text)
    return _BEARER.sub(lambda found: f"{found['name']}{MASK}", text) if "earer" in text or "asic" in text else text


def hidden(text: str, values: Iterable[str]) -> str:
    """A text without these values, however they are written: as they are, in a URL, in JSON or in Python."""
    forms = {form for value in values if value for form in _forms(value)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, MASK)
    return masked(text)


def named(settings: Mapping[str, object]) -> dict[str, str]:
    """The values of settings that are named like secrets, by name; only texts can be told from other values."""
    return {name: value for name, value in settings.items() if is_secret(name) and isinstance(value, str) and value}


def remember(settings: Mapping[str, object]) -> None:
    """Keep the secrets among these settings, for code that refers to them by name."""
    _given.update(named(settings))


def name_of(value: str) -> str | None:
    """The name of the secret that a text is, if it is one that can be told from other words."""
    if len(value) < SHORTEST:
        return None
    return next((name for name, secret in _given.items() if secret == value), None)


def value_of(name: str) -> str | None:
    """The secret of that name that this process was given, or has in its environment."""
    return _given.get(name, os.environ.get(variable(name)))


def variable(name: str) -> str:
    """The environment variable of a setting.

    Example:
        >>> variable("api-token")
        'EVERSTATE_CONFIG_API_TOKEN'
    """
    return f"EVERSTATE_CONFIG_{name.upper().replace('-', '_')}"


def shown(name: str, value: object) -> str:
    """The value of a setting for a message."""
    return MASK if is_secret(name) else masked(repr(value))


def _user(found: re.Match[str]) -> str:
    # Without a password the user is one: tokens are given like that.
    return f"{found['user']}:{MASK}" if found["user"] and ":" in found[0][len(found["scheme"]) :] else MASK


def _forms(value: str) -> set[str]:
    return {value, quote(value, safe=""), quote(value), quote_plus(value), json.dumps(value)[1:-1], repr(value)[1:-1]}
