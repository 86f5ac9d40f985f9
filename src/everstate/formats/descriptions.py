"""What users write for a format: a word, or one of these."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

from everstate.errors import ConfigurationError, SchemaError
from everstate.errors.calls import explained_class
from everstate.location import caller

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Formats that need no more than a word.
WORDS: Final = ("json", "string", "bytes", "number")
#: What a source has of which nothing but keys is read; not for users.
KEYS: Final = "keys"


@explained_class
@dataclass(frozen=True, init=False)
class Avro:
    """Values in Avro, as Confluent's serialisers write them: a schema's number in the registry, then the value.

    Each value is read with the schema that it was written with, and its fields are taken by name: `schema=` says which.
    An output's schema is made from its columns, and is registered when the output is deployed.

    Example:
        >>> import everstate as es
        >>> app = es.Service("shop")
        >>> orders = app.table(
        ...     "orders", key="order_id", schema={"order_id": str, "amount": float}, format=es.Avro("http://registry:8081")
        ... )

    Args:
        registry: The registry's address; by default what `EVERSTATE_REGISTRY_URL` says. Users, passwords and
            certificates come from the environment alone (`EVERSTATE_REGISTRY_USERNAME` and the like).
        subject: The name under which an output's schema is registered; by default the topic's name with `-value`.
    """

    registry: str
    subject: str

    def __init__(self, registry: str = "", subject: str = "") -> None:
        _check_address(registry)
        object.__setattr__(self, "registry", registry)
        object.__setattr__(self, "subject", subject)

    def on(self, subject: str) -> Avro:
        """The same, with a subject if it has none."""
        return self if self.subject else replace(self, subject=subject)

    def __str__(self) -> str:
        return "Avro"


@explained_class
@dataclass(frozen=True, init=False)
class Protobuf:
    """Values in Protobuf, as Confluent's serialisers write them: with a schema's number and the message's place.

    Fields are taken by name: `schema=` says which. If a record leaves out a field, it gets Protobuf's default if it has
    no presence, and null if it has, or is a message. Enumerations are texts, `Timestamp` is a datetime.

    Example:
        >>> from google.protobuf.wrappers_pb2 import Int64Value
        >>> import everstate as es
        >>> app = es.Service("shop")
        >>> counts = app.table("counts", schema={"value": int}, format=es.Protobuf(Int64Value, "http://registry:8081"))

    Args:
        message: The class that `protoc` generated for the message.
        registry: The registry's address; by default what `EVERSTATE_REGISTRY_URL` says.
        subject: The name under which an output's schema is registered; by default the topic's name with `-value`.
    """

    message: str
    files: tuple[bytes, ...] = field(repr=False)
    registry: str = ""
    subject: str = ""

    def __init__(self, message: Any, registry: str = "", subject: str = "") -> None:
        descriptor: Any = getattr(message, "DESCRIPTOR", None)
        if not isinstance(message, type) or not hasattr(descriptor, "full_name"):
            raise SchemaError(
                f"Protobuf: {message!r} is not a class of a message",
                location=caller(),
                hint="Pass the class that protoc has generated: es.Protobuf(orders_pb2.Order)",
            )
        _check_address(registry)
        # By value: a worker has neither the module nor its place in the pool of descriptors.
        found = {"message": descriptor.full_name, "files": tuple(_files(descriptor.file, set()))}
        for name, value in {**found, "registry": registry, "subject": subject}.items():
            object.__setattr__(self, name, value)

    def on(self, subject: str) -> Protobuf:
        """The same, with a subject if it has none."""
        if self.subject:
            return self
        other = object.__new__(Protobuf)
        for name, value in {**self.__dict__, "subject": subject}.items():
            object.__setattr__(other, name, value)
        return other

    def __str__(self) -> str:
        return f"Protobuf {self.message}"


#: How a key or a value is written.
Format: TypeAlias = str | Avro | Protobuf


def is_text(fmt: Format) -> bool:
    """Whether values are JSON, so that two that are written differently may still mean the same."""
    return fmt == "json"


def has_fields(fmt: Format) -> bool:
    """Whether a value has named fields, among which the key may stand."""
    return fmt == "json" or not isinstance(fmt, str)


def _files(file: Any, seen: set[str]) -> Iterator[bytes]:
    """A file of descriptors after all that it needs."""
    if file.name in seen:
        return
    seen.add(file.name)
    for other in file.dependencies:
        yield from _files(other, seen)
    yield bytes(file.serialized_pb)


def _check_address(address: object) -> None:
    if not isinstance(address, str):
        raise SchemaError(
            f"registry={address!r} is not an address",
            location=caller(),
            hint="Write registry='http://registry:8081', or set EVERSTATE_REGISTRY_URL.",
        )
    if address and (urlsplit(address).username or urlsplit(address).password):
        raise ConfigurationError(
            "the registry's address has a user or password in it, and it would be shown",
            location=caller(),
            hint="Set EVERSTATE_REGISTRY_USERNAME and EVERSTATE_REGISTRY_PASSWORD, and leave them out of the address.",
        )
