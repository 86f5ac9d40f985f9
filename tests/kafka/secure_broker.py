"""A broker that lets nobody in without a password and a certificate, and a place that gives out tokens."""

from __future__ import annotations

import base64
import ipaddress
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from scripts import kafka_broker

USER = "ada"
PASSWORD = "analytical-engine-1843"  # what no text that anybody sees may hold
#: May do nothing until somebody lets her.
OTHER = "eve"
_SECURITY = "org.apache.kafka.common.security"
_UNSECURED = f"{_SECURITY}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"


@dataclass(frozen=True)
class SecureBroker:
    """Where it is, and what a client needs.

    Attributes:
        address: Of the listener with passwords and certificates.
        authority: The file of who has signed its certificate.
        stranger: The file of somebody else who signs certificates.
        admin: A client that may do everything.
    """

    address: str
    authority: Path
    stranger: Path
    admin: AdminClient

    def environment(self, **changes: str) -> dict[str, str]:
        """What a user would set."""
        return {
            "EVERSTATE_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "EVERSTATE_KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
            "EVERSTATE_KAFKA_SASL_USERNAME": USER,
            "EVERSTATE_KAFKA_SASL_PASSWORD": PASSWORD,
            "EVERSTATE_KAFKA_SSL_CA_LOCATION": str(self.authority),
            **changes,
        }

    def add(self, user: str) -> None:
        """Let somebody in with the password, without any right."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(user, info, PASSWORD.encode())
        self.admin.alter_user_scram_credentials([change])[user].result(30)

    def allow(
        self,
        user: str,
        kind: ResourceType,
        operation: AclOperation,
        name: str = "*",
        pattern: ResourcePatternType = ResourcePatternType.LITERAL,
    ) -> None:
        """Give a right."""
        right = AclBinding(kind, name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
        self.admin.create_acls([right])[right].result(30)


@contextmanager
def running(folder: Path, owner: int) -> Iterator[SecureBroker]:
    """A broker in a folder."""
    folder.mkdir(parents=True)
    keystore, authority, stranger = folder / "broker.pem", folder / "authority.pem", folder / "stranger.pem"
    keystore.write_bytes(_certificates(authority))
    _certificates(stranger)
    plain, secure, controller = _ports(3)
    with ExitStack() as closing:
        closing.callback(kafka_broker.stop, folder / "broker")
        broker = kafka_broker.start(
            folder / "broker", owner=owner, port=plain, settings=_settings(keystore, plain, secure, controller)
        )
        admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
        found = SecureBroker(f"localhost:{secure}", authority, stranger, admin)
        for user in (USER, OTHER):
            found.add(user)
        for kind in (ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID, ResourceType.GROUP):
            found.allow(USER, kind, AclOperation.ALL)
        found.allow(USER, ResourceType.BROKER, AclOperation.ALL, "kafka-cluster")
        yield found


def _settings(keystore: Path, plain: int, secure: int, controller: int) -> dict[str, object]:
    at = "127.0.0.1"
    listener = "listener.name.sasl_ssl"
    return {
        "listeners": f"PLAINTEXT://{at}:{plain},SASL_SSL://{at}:{secure},CONTROLLER://{at}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{at}:{plain},SASL_SSL://localhost:{secure}",
        "controller.quorum.voters": f"1@{at}:{controller}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN,OAUTHBEARER",
        f"{listener}.scram-sha-512.sasl.jaas.config": f"{_SECURITY}.scram.ScramLoginModule required;",
        f"{listener}.plain.sasl.jaas.config": f'{_SECURITY}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
        f"{listener}.oauthbearer.sasl.jaas.config": f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required;",
        f"{listener}.oauthbearer.sasl.server.callback.handler.class": _UNSECURED,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }


def _certificates(authority: Path) -> bytes:
    """The key and certificate of a broker, and in a file that of who has signed it."""
    root, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"authority {authority.stem}")])
    signed = _certificate(issuer, issuer, root.public_key(), root, x509.BasicConstraints(ca=True, path_length=None))
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    certificate = _certificate(subject, issuer, own.public_key(), root, names)
    authority.write_bytes(signed)
    form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return own.private_bytes(serialization.Encoding.PEM, *form) + certificate + signed


def _certificate(subject, issuer, key, signer, extension) -> bytes:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
    )
    return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _ports(count: int) -> list[int]:
    with ExitStack() as closing:
        probes = [closing.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((str(ipaddress.IPv4Address("127.0.0.1")), 0))
        return [int(probe.getsockname()[1]) for probe in probes]


@contextmanager
def tokens() -> Iterator[str]:
    """The address of a place that gives a token to whoever has the password."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            expected = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            known = self.headers.get("Authorization") == f"Basic {expected}"
            now = int(time.time())
            claims = {"sub": USER, "iat": now, "exp": now + 3600}
            content = json.dumps({"access_token": _unsigned(claims), "token_type": "Bearer"} if known else {}).encode()
            self.send_response(200 if known else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            del args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/token"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _unsigned(claims: dict[str, object]) -> str:
    head, body = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in ({"alg": "none"}, claims))
    return f"{head.rstrip('=')}.{body.rstrip('=')}."
