"""A proxy in front of a store of S3's protocol, which spoils requests and answers.

It stands where every client passes: the project's own, those of pyarrow, and those inside of
libraries that nothing else can see. What is not spoiled passes as it is, down to the names of the
headers, so that signatures stay right.

Targets that begin with :data:`CONTROL` are for the proxy itself.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from tests.crash.s3_faults import Deed, Request, S3Fault, S3Faults

CONTROL: Final = "/~/"
"""No name of a bucket begins like this."""
_CODES: Final = {
    409: "ConditionalRequestConflict",
    412: "PreconditionFailed",
    500: "InternalError",
    503: "SlowDown",
}
_OF_ONE_CONNECTION: Final = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "expect", "proxy-connection"}
)
_PATIENCE_S: Final = 60.0

Commands = Mapping[str, Callable[[Mapping[str, str]], Any]]
"""What a proxy can be told besides, by name; arguments and answers as JSON has them."""


class S3Proxy(ThreadingHTTPServer):
    """Serves on the loopback device, at a free port, until it is shut down.

    ``upstream``: host and port of the store. ``commands``: beside ``arm``, ``names`` and ``land``.
    """

    daemon_threads = True

    def __init__(self, upstream: str, commands: Commands | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = upstream
        self.faults = S3Faults()
        self._commands = {
            "arm": self._arm,
            "names": lambda _: self.faults.names,
            "land": self._land,
            **(commands or {}),
        }

    @property
    def endpoint(self) -> str:
        """URL of the proxy."""
        return f"http://127.0.0.1:{self.server_port}"

    def command(self, target: str) -> Any:
        """Do what a target asks of the proxy."""
        asked = urlsplit(target.removeprefix(CONTROL))
        return self._commands[asked.path](dict(parse_qsl(asked.query)))

    def forward(self, request: Request) -> tuple[int, list[tuple[str, str]], bytes]:
        """Send a request on, by a connection of its own; return status, headers and body."""
        with contextlib.closing(self.connection()) as connection:
            return exchanged(connection, request)

    def connection(self) -> http.client.HTTPConnection:
        """Return a new connection to the store."""
        return http.client.HTTPConnection(self.upstream, timeout=_PATIENCE_S)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that hung up."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def _arm(self, asked: Mapping[str, str]) -> None:
        fault = None
        if "how" in asked:
            fault = S3Fault(int(asked["at"]), asked["how"], int(asked.get("lands", "0")))
        self.faults.arm(fault)

    def _land(self, _: Mapping[str, str]) -> int:
        arriving = self.faults.landing()
        for request in arriving:
            self.forward(request)
        return len(arriving)


def exchanged(
    connection: http.client.HTTPConnection, request: Request
) -> tuple[int, list[tuple[str, str]], bytes]:
    """Send a request by a connection; return status, headers and body of the answer."""
    connection.putrequest(request.method, request.target, True, True)
    for name, value in request.headers.items():
        if name not in (*_OF_ONE_CONNECTION, "content-length"):
            connection.putheader(name, value)
    if request.body or request.method in ("PUT", "POST"):
        connection.putheader("content-length", str(len(request.body)))
    connection.endheaders(request.body or None)
    reply = connection.getresponse()
    return reply.status, reply.getheaders(), reply.read()


class _Handler(BaseHTTPRequestHandler):
    """Serves one connection of a client."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: S3Proxy
    _upstream: http.client.HTTPConnection | None = None

    def _serve(self) -> None:
        if self.path.startswith(CONTROL):
            answer = json.dumps(self.server.command(self.path)).encode()
            self._send(_raw(200, [("content-type", "application/json")], answer))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers)
        deed, arriving = self.server.faults.decide(request)
        if deed.cut == "before":
            self.rfile.read(self._length() // 2)
            self._cut()
            return
        request = request._replace(body=b"".join(self._body()))
        for one in arriving:
            self.server.forward(one)
        self._do(request, deed)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve

    def _do(self, request: Request, deed: Deed) -> None:
        if deed.travels:
            self.server.faults.travel(request)
        status, headers, body = self._forward(request) if deed.is_sent else (0, [], b"")
        if deed.status is not None:
            code = _CODES[deed.status]
            status, headers = deed.status, [("content-type", "application/xml")]
            body = f"<Error><Code>{code}</Code><Message>Spoiled.</Message></Error>".encode()
        raw = _raw(status, headers, body, request.method == "HEAD")
        if deed.cut == "middle":
            # in the midst of the body, if it has one
            end = len(raw) - (len(body) + 1) // 2 if body else len(raw) // 2
            self._send(raw[:end])
        elif deed.cut is None:
            self._send(raw)
        if deed.cut is not None:
            self._cut()

    def _forward(self, request: Request) -> tuple[int, list[tuple[str, str]], bytes]:
        if self._upstream is not None:
            # the store may have closed a connection that was idle, and has read nothing then
            with contextlib.suppress(http.client.BadStatusLine, ConnectionError):
                return exchanged(self._upstream, request)
            self._upstream.close()
        self._upstream = self.server.connection()
        return exchanged(self._upstream, request)

    def _length(self) -> int:
        return int(self.headers.get("content-length") or 0)

    def _body(self) -> Iterator[bytes]:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            yield self.rfile.read(self._length())
            return
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers

    def _send(self, raw: bytes) -> None:
        self.wfile.write(raw)

    def _cut(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        """Hang up on both sides."""
        super().finish()
        if self._upstream is not None:
            self._upstream.close()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _raw(status: int, headers: list[tuple[str, str]], body: bytes, is_head: bool = False) -> bytes:
    """Return the bytes of an answer."""
    lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, 'Unknown')}"]
    kept = [(name, value) for name, value in headers if name.lower() not in _OF_ONE_CONNECTION]
    if not is_head and status not in (204, 304):
        kept = [(name, value) for name, value in kept if name.lower() != "content-length"]
        kept.append(("content-length", str(len(body))))
    lines += [f"{name}: {value}" for name, value in kept]
    return "\r\n".join((*lines, "", "")).encode("latin-1") + (b"" if is_head else body)
