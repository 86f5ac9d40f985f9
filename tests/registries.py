"""A schema registry at an address, for tests: the one in memory that Confluent's client has, asked over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError


class RegistryServer:
    """A registry, and what it was asked.

    Attributes:
        client: What Confluent's serialisers register their schemas with.
        url: Its address.
        authorization: What a client has to send; None lets everybody in.
        refuses: It takes no new schema.
    """

    def __init__(self) -> None:
        self.client = SchemaRegistryClient.new_client({"url": "mock://"})
        self.authorization: str | None = None
        self.refuses = False
        self.asked: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(None)

            def do_POST(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _answer(self, body: Any) -> None:
                status, found = server.answer(self.command, self.path, body, self.headers.get("Authorization"))
                content = json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: object) -> None:
                del args

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answer(self, method: str, path: str, body: Any, authorization: str | None) -> tuple[int, Any]:
        """Status and content, as the registry's interface has them."""
        self.asked.append(f"{method} {path}")
        if self.authorization is not None and authorization != self.authorization:
            return 401, {"error_code": 401, "message": "Unauthorized"}
        parts = [unquote(part) for part in path.strip("/").split("/")]
        try:
            if parts[:2] == ["schemas", "ids"]:
                found = self.client.get_schema(int(parts[2]))
                kind = {} if found.schema_type in (None, "AVRO") else {"schemaType": found.schema_type}
                return 200, {"schema": found.schema_str, **kind}
            schema = Schema(body["schema"], body.get("schemaType", "AVRO"))
            if parts[-1] == "versions":
                if self.refuses:
                    return 409, {"error_code": 409, "message": "Schema being registered is incompatible"}
                return 200, {"id": self.client.register_schema(parts[1], schema)}
            known = self.client.lookup_schema(parts[1], schema)
        except SchemaRegistryError as error:
            return error.http_status_code, {"error_code": error.error_code, "message": error.error_message}
        return 200, {"id": known.schema_id, "subject": parts[1]}


@contextmanager
def serving() -> Iterator[RegistryServer]:
    server = RegistryServer()
    try:
        yield server
    finally:
        server.close()
