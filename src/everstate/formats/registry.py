"""The schema registry: schemas by their number, and numbers for the schemas of outputs.

A number means the same schema for ever, so each is asked for once in a process. `mock://NAME` is a registry in this
process, for tests without a network.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote

from everstate.errors import ConfigurationError, LogDeniedError, LogUnavailableError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX: Final = "EVERSTATE_REGISTRY_"
_MEDIA: Final = "application/vnd.schemaregistry.v1+json"
_ANSWER_S: Final = 10.0
#: How long to wait before asking once more, by turn; then the registry counts as unreachable.
_PAUSES_S: Final = (0.2, 1.0, 3.0)
_MISSING: Final = 404
_INCOMPATIBLE: Final = 409
_INVALID: Final = 422
_DENIED: Final = (401, 403)

#: Has an entry while nothing may be registered: a schema that is new gets the number 0, which no registry gives.
_trying: list[None] = []


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema as the registry has it.

    Attributes:
        kind: "AVRO", "PROTOBUF" or "JSON".
        text: The schema itself.
        references: It needs others, which it names.
    """

    kind: str
    text: str
    references: bool = False


class Registry(Protocol):
    """What numbers schemas."""

    def schema(self, number: int) -> RegisteredSchema | None:
        """The schema of a number; None if there is none."""

    def number(self, subject: str, schema: RegisteredSchema) -> int | None:
        """The number that a schema has; None if it is not registered."""

    def register(self, subject: str, schema: RegisteredSchema) -> int:
        """The number of a schema, which it gets if it has none."""


@dataclass
class InProcessRegistry:
    """A registry in this process."""

    known: list[RegisteredSchema] = field(default_factory=list)

    def schema(self, number: int) -> RegisteredSchema | None:
        """The schema of a number; None if there is none."""
        return self.known[number - 1] if 0 < number <= len(self.known) else None

    def number(self, subject: str, schema: RegisteredSchema) -> int | None:
        """The number that a schema has; None if it is not registered."""
        del subject
        return self.known.index(schema) + 1 if schema in self.known else None

    def register(self, subject: str, schema: RegisteredSchema) -> int:
        """The number of a schema, which it gets if it has none."""
        found = self.number(subject, schema)
        if found is None:
            self.known.append(schema)
        return found or len(self.known)


@dataclass
class HttpRegistry:
    """A registry at an address, asked in the way of Confluent's, which others have taken over.

    Attributes:
        url: Its address.
    """

    url: str
    _schemas: dict[int, RegisteredSchema] = field(default_factory=dict, repr=False)
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict, repr=False)

    def schema(self, number: int) -> RegisteredSchema | None:
        """The schema of a number; None if there is none.

        Raises:
            LogUnavailableError: If the registry does not answer.
            LogDeniedError: If it refuses the credentials.
        """
        if number not in self._schemas:
            found = self._asked("GET", f"/schemas/ids/{number}")
            if found is None:
                return None
            kind = str(found.get("schemaType") or "AVRO")
            self._schemas[number] = RegisteredSchema(kind, str(found["schema"]), bool(found.get("references")))
        return self._schemas[number]

    def number(self, subject: str, schema: RegisteredSchema) -> int | None:
        """The number that a schema has; None if it is not registered."""
        return self._numbered(subject, schema, f"/subjects/{quote(subject, safe='')}")

    def register(self, subject: str, schema: RegisteredSchema) -> int:
        """The number of a schema, which it gets if it has none.

        Raises:
            SchemaError: If the registry refuses it.
        """
        found = self._numbered(subject, schema, f"/subjects/{quote(subject, safe='')}/versions")
        if found is None:
            raise ConfigurationError(
                f"the registry at {self.url} does not know how to register a schema",
                hint="Is it the address of a schema registry? Correct registry= or EVERSTATE_REGISTRY_URL.",
            )
        return found

    def _numbered(self, subject: str, schema: RegisteredSchema, path: str) -> int | None:
        place = (subject, schema.text)
        if place not in self._numbers:
            body = {"schema": schema.text}
            if schema.kind != "AVRO":
                body["schemaType"] = schema.kind
            found = self._asked("POST", path, body, subject)
            if found is None:
                return None
            self._numbers[place] = int(found["id"])
        return self._numbers[place]

    def _asked(self, method: str, path: str, body: Any = None, subject: str = "") -> Any:
        """The registry's answer; None where it says that there is no such thing."""
        for pause in (*_PAUSES_S, None):
            try:
                return self._once(method, path, body)
            except urllib.error.HTTPError as error:
                said = _said(error)
                if error.code == _MISSING:
                    return None
                if error.code in (_INCOMPATIBLE, _INVALID):
                    raise SchemaError(
                        f"the registry at {self.url} refuses the schema of subject {subject!r}: {said}",
                        hint="Keep to what its compatibility level allows, such as new columns that may be null, or "
                        "name a new subject.",
                    ) from None
                if error.code in _DENIED:
                    raise LogDeniedError(
                        f"the registry at {self.url} refuses this client: {error.code} {said}",
                        hint="Correct EVERSTATE_REGISTRY_USERNAME and EVERSTATE_REGISTRY_PASSWORD, or the rights.",
                    ) from None
                if error.code < 500 or pause is None:
                    raise self._away(f"{error.code} {said}") from None
            except (OSError, ValueError) as error:
                reason = getattr(error, "reason", error)
                if isinstance(reason, ssl.SSLError):
                    raise LogDeniedError(
                        f"the certificate of the registry at {self.url} is refused: {reason}",
                        hint="Name the file of the authority that has signed it: EVERSTATE_REGISTRY_CA.",
                    ) from None
                if pause is None:
                    raise self._away(str(reason)) from None
            time.sleep(pause)
        raise AssertionError

    def _away(self, why: str) -> LogUnavailableError:
        return LogUnavailableError(
            f"the registry at {self.url} cannot be queried: {why}",
            hint="Nothing is lost: make sure that it runs and can be reached from here, then run it again.",
        )

    def _once(self, method: str, path: str, body: Any) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Accept": _MEDIA, "Content-Type": _MEDIA, **_credentials()}
        request = urllib.request.Request(  # noqa: S310 - `opened` takes no other scheme than http and https
            self.url.rstrip("/") + path, data=content, headers=headers, method=method
        )
        authority = os.environ.get(PREFIX + "CA")
        context = ssl.create_default_context(cafile=authority) if self.url.startswith("https:") else None
        with urllib.request.urlopen(request, timeout=_ANSWER_S, context=context) as answer:  # noqa: S310 - likewise
            return json.loads(answer.read())


def _credentials() -> dict[str, str]:
    token, user = os.environ.get(PREFIX + "TOKEN"), os.environ.get(PREFIX + "USERNAME")
    if token:
        return {"Authorization": f"Bearer {token}"}
    if user:
        both = f"{user}:{os.environ.get(PREFIX + 'PASSWORD', '')}"
        return {"Authorization": f"Basic {base64.b64encode(both.encode()).decode()}"}
    return {}


def _said(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read())["message"])
    except (ValueError, KeyError, TypeError, OSError):
        return str(error.reason)


_opened: dict[str, Registry] = {}


def opened(address: str) -> Registry:
    """The registry at an address, or at the one that the environment names.

    Raises:
        ConfigurationError: If neither names one, or not one that can be asked.
    """
    url = address or os.environ.get(PREFIX + "URL", "")
    if url not in _opened:
        if url.startswith("mock://"):
            _opened[url] = InProcessRegistry()
        elif url.startswith(("http://", "https://")):
            _opened[url] = HttpRegistry(url)
        else:
            raise ConfigurationError(
                f"{url!r} is not the address of a schema registry" if url else "no schema registry is named",
                hint="Write es.Avro('http://registry:8081'), or set EVERSTATE_REGISTRY_URL.",
            )
    return _opened[url]


def number_of(address: str, subject: str, schema: RegisteredSchema) -> int:
    """The number of an output's schema.

    Raises:
        ConfigurationError: If it was never registered, which a deployment does.
    """
    registry = opened(address)
    found = registry.number(subject, schema)
    if found is None and _trying:
        return 0
    if found is None and isinstance(registry, InProcessRegistry):
        return registry.register(subject, schema)
    if found is None:
        raise ConfigurationError(
            f"the schema of subject {subject!r} is no longer in the registry",
            hint="Start the service again: what it writes is registered when it starts.",
        )
    return found


@contextmanager
def trying() -> Iterator[None]:
    """Nothing is registered meanwhile: what is written is looked at and thrown away."""
    _trying.append(None)  # for all threads: a preview has several, and is all that its process does
    try:
        yield
    finally:
        _trying.pop()
