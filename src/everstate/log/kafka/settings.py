"""What clients are told: addresses and security, from an allow-list; a secret is never shown.

Settings have librdkafka's names. They come from a file (`EVERSTATE_KAFKA_CONFIG`, lines of `name=value`) and from the
environment (`EVERSTATE_KAFKA_SASL_PASSWORD` for `sasl.password`), which wins.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from everstate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEME: Final = "kafka://"
PREFIX: Final = "EVERSTATE_KAFKA_"
FILE_VARIABLE: Final = "EVERSTATE_KAFKA_CONFIG"
#: What a user may set; all else decides about correctness, and is Everstate's.
ALLOWED: Final = (
    "client.id",
    "client.rack",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.extensions",
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.password",
    "sasl.username",
    "security.protocol",
    "socket.keepalive.enable",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.cipher.suites",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.location",
    "ssl.keystore.password",
)
#: What other clients' files say, and what says it here.
_ELSEWHERE: Final = {
    "bootstrap.servers": "the address is given with --log kafka://host:9092",
    "sasl.jaas.config": "sasl.username and sasl.password say it",
    "ssl.truststore.location": "ssl.ca.location names the authority's certificates, as PEM",
}

#: A host, or an address of the sixth version in brackets, and perhaps a port.
_SERVER: Final = re.compile(r"([^\s:/\[\]]+|\[[0-9A-Fa-f:.%]+\])(:(?P<port>\d{1,5}))?")
_LAST_PORT: Final = 65_535


def check_servers(servers: str) -> None:
    """Refuse what cannot be the address of a cluster.

    Args:
        servers: Hosts and ports of brokers, with commas between them.

    Raises:
        ConfigurationError: If it is none, or holds credentials.

    Example:
        >>> check_servers("one:9092,two:9092")
    """
    if "@" in servers:
        raise ConfigurationError(
            "the address of a Kafka cluster holds no credentials: addresses are stored and shown",
            hint="Put them into a file, one line name=value for each setting, and name the file in "
            "EVERSTATE_KAFKA_CONFIG.",
        )
    for part in servers.split(","):
        found = _SERVER.fullmatch(part.strip())
        if found is None or not 0 < int(found["port"] or 1) <= _LAST_PORT:
            raise ConfigurationError(
                f"{SCHEME}{servers} is not the address of a Kafka cluster",
                hint="Write hosts and ports of brokers: kafka://host:9092, or kafka://one:9092,two:9092",
            )


@dataclass(frozen=True)
class ClientSettings:
    """Settings of every client.

    Attributes:
        values: By librdkafka's names; left out of what is printed.
    """

    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        unknown = sorted(set(self.values) - set(ALLOWED))
        if unknown:
            said = "".join(f"{name}: {_ELSEWHERE[name]}. " for name in unknown if name in _ELSEWHERE)
            raise ConfigurationError(
                f"Kafka's clients cannot be given {', '.join(unknown)}",
                hint=f"{said}They accept: {', '.join(ALLOWED)}.",
            )

    def require_use(self) -> None:
        """Refuse settings that would not be used: who has set a password does not want to be let in without.

        Raises:
            ConfigurationError: With the setting that is missing.
        """
        idle = sorted(name for name, value in self.values.items() if name.startswith(("sasl.", "ssl.")) and value)
        if idle and not self.values.get("security.protocol"):
            raise ConfigurationError(
                f"{idle[0]} is set, but not security.protocol: no connection would use passwords or certificates",
                hint="Set it, to SASL_SSL, SASL_PLAINTEXT or SSL: EVERSTATE_KAFKA_SECURITY_PROTOCOL, or in the file "
                f"that {FILE_VARIABLE} names.",
            )
        mechanism = self.values.get("sasl.mechanism", self.values.get("sasl.mechanisms", ""))
        if mechanism == "OAUTHBEARER" and self.values.get("sasl.oauthbearer.method", "default").lower() != "oidc":
            raise ConfigurationError(
                "with OAUTHBEARER, sasl.oauthbearer.method has to be oidc: tokens are fetched from an endpoint",
                hint="Set it, with sasl.oauthbearer.client.id, sasl.oauthbearer.client.secret and "
                "sasl.oauthbearer.token.endpoint.url.",
            )

    def __repr__(self) -> str:
        return f"ClientSettings({', '.join(sorted(self.values))})"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> ClientSettings:
        """What the file and the environment say.

        Raises:
            ConfigurationError: If the file cannot be read, or names something that cannot be set.

        Example:
            >>> ClientSettings.from_environment({"EVERSTATE_KAFKA_SASL_PASSWORD": "secret"})
            ClientSettings(sasl.password)
        """
        environment = os.environ if environment is None else environment
        named = {PREFIX + name.upper().replace(".", "_"): name for name in ALLOWED}
        values = _from_file(Path(environment[FILE_VARIABLE])) if environment.get(FILE_VARIABLE) else {}
        values |= {name: environment[variable] for variable, name in named.items() if variable in environment}
        return cls(values)


def _from_file(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"Kafka's settings cannot be read from {path}: {getattr(error, 'strerror', None) or 'it is not text'}",
            hint=f"Correct the variable {FILE_VARIABLE}, or the file.",
        ) from error
    values: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.partition("=")
        if not equals:
            # The line itself may be half a secret.
            raise ConfigurationError(f"line {number} of {path} is not of the form name=value", hint="Correct the file.")
        values[name.strip()] = value.strip()
    return values
