"""The proxy passes on what it is given, and spoils what it is told to."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, NamedTuple

import pytest

from tests.crash.s3_faults import WAYS, Request, S3Fault
from tests.crash.s3_proxy import S3Proxy

pytestmark = pytest.mark.impure  # the proxy serves on a socket


class _Store(BaseHTTPRequestHandler):
    """Keeps bodies by target, and tells what it was asked."""

    protocol_version = "HTTP/1.1"
    kept: ClassVar[dict[str, bytes]] = {}
    seen: ClassVar[list[tuple[str, str, list[tuple[str, str]]]]] = []

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.seen.append((self.command, self.path, self.headers.items()))
        if self.command == "PUT":
            self.kept[self.path] = body
        answer = self.kept.get(self.path, b"")
        self.send_response(200)
        self.send_header("ETag", '"tag"')
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_HEAD = do_PUT = do_POST = _serve

    def log_message(self, *_: object) -> None:
        pass


class Answer(NamedTuple):
    """What a client gets: ``None`` where the connection broke before the answer was whole."""

    status: int | None
    body: bytes = b""


@pytest.fixture
def proxy() -> Iterator[S3Proxy]:
    _Store.kept, _Store.seen = {}, []
    store = ThreadingHTTPServer(("127.0.0.1", 0), _Store)
    found = S3Proxy(f"127.0.0.1:{store.server_port}")
    servers: tuple[ThreadingHTTPServer, ...] = (store, found)
    threads = [
        threading.Thread(target=one.serve_forever, args=(0.01,), daemon=True) for one in servers
    ]
    for thread in threads:
        thread.start()
    yield found
    for server in servers:
        server.shutdown()
        server.server_close()
    for thread in threads:
        thread.join()


def ask(proxy: S3Proxy, method: str, target: str, body: bytes = b"", **headers: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.server_port, timeout=10)
    try:
        connection.request(method, target, body or None, headers)
        answer = connection.getresponse()
        return Answer(answer.status, answer.read())
    except (http.client.HTTPException, ConnectionError):
        return Answer(None)
    finally:
        connection.close()


def test_what_is_not_spoiled_passes_as_it_is(proxy: S3Proxy) -> None:
    signed = {"Authorization": "AWS4-HMAC-SHA256 of it", "X-Amz-Meta-Hudiput": "Ab1", "Host": "me"}
    target = "/bucket/a%20b%2Fc?partNumber=1&uploadId=x%2By"
    assert ask(proxy, "PUT", target, b"\0body", **signed) == Answer(200, b"\0body")
    [(method, seen, headers)] = _Store.seen
    assert (method, seen) == ("PUT", target)
    assert {name: value for name, value in headers if name != "accept-encoding"} == {
        "authorization": "AWS4-HMAC-SHA256 of it",
        "x-amz-meta-hudiput": "Ab1",
        "host": "me",
        "content-length": "5",
    }
    assert ask(proxy, "GET", target) == Answer(200, b"\0body")
    assert ask(proxy, "HEAD", target) == Answer(200, b"")


def test_a_body_in_chunks_arrives_whole(proxy: S3Proxy) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.server_port, timeout=10)
    connection.request("PUT", "/bucket/a", iter((b"one", b"two")), encode_chunked=True)
    assert connection.getresponse().read() == b"onetwo"
    connection.close()


EXPECTED = {
    # answer, whether the store has it, answer to the repetition, and whether the store has it then
    "refused": (503, False, 200, True),
    "refused again": (503, False, 503, False),
    "lost": (500, True, 200, True),
    "lost again": (500, True, 500, True),
    "conflict": (409, True, 200, True),
    "conflict again": (409, True, 409, True),
    "first": (412, True, 200, True),
    "cut": (None, False, 200, True),
    "cut again": (None, False, None, False),
    "half": (None, False, 200, True),
    "unanswered": (None, True, 200, True),
    "unanswered again": (None, True, None, True),
    "torn": (None, True, 200, True),
    "late": (None, False, 200, True),
    "late again": (None, False, 503, False),
    "gone": (503, False, 503, False),
    "unreachable": (None, False, None, False),
    "read only": (503, False, 503, False),
    "mute": (500, True, 500, True),
    "shaky": (None, True, 200, True),
    "busy": (503, False, 200, True),
}


@pytest.mark.parametrize("how", WAYS)
def test_each_way_to_go_wrong(proxy: S3Proxy, how: str) -> None:
    proxy.faults.arm(S3Fault(2, how))
    assert ask(proxy, "PUT", "/bucket/first", b"1").status == 200
    once = ask(proxy, "PUT", "/bucket/a", b"body").status
    had = "/bucket/a" in _Store.kept
    again = ask(proxy, "PUT", "/bucket/a", b"body").status
    assert (once, had, again, "/bucket/a" in _Store.kept) == EXPECTED[how]
    # the repetition has no number of its own; what comes after it passes, unless the fault lasts
    later, read = ask(proxy, "PUT", "/bucket/b", b"1"), ask(proxy, "GET", "/bucket/first")
    assert proxy.faults.names == ["PUT data"] * 3
    way = WAYS[how]
    assert (later.status == 200) is (way.changes is None)
    assert (read == Answer(200, b"1")) is (way.reads is None)
    if way.once:
        assert ask(proxy, "GET", "/bucket/first") == Answer(200, b"1")
        assert ask(proxy, "PUT", "/bucket/b", b"1").status == 200
    proxy.faults.arm(None)
    assert ask(proxy, "PUT", "/bucket/b", b"1").status == 200


def test_a_late_request_arrives_when_it_is_to(proxy: S3Proxy) -> None:
    proxy.faults.arm(S3Fault(1, "late again", 2))
    ask(proxy, "PUT", "/bucket/a", b"late")
    ask(proxy, "PUT", "/bucket/b", b"1")
    assert "/bucket/a" not in _Store.kept
    proxy.faults.arm(None)  # it travels on
    ask(proxy, "PUT", "/bucket/a", b"new")
    assert [body for method, body in _asked()] == ["/bucket/b", "/bucket/a", "/bucket/a"]
    assert _Store.kept["/bucket/a"] == b"new"
    assert proxy.command("/~/land") == 0


def test_a_late_request_arrives_when_it_is_told_to(proxy: S3Proxy) -> None:
    assert json.loads(ask(proxy, "GET", "/~/arm?at=1&how=late").body) is None
    ask(proxy, "PUT", "/bucket/a", b"late")
    for _ in range(3):
        ask(proxy, "PUT", "/bucket/b", b"1")
    assert "/bucket/a" not in _Store.kept
    assert ask(proxy, "GET", "/~/land") == Answer(200, b"1")
    assert _Store.kept["/bucket/a"] == b"late"
    assert json.loads(ask(proxy, "GET", "/~/names").body) == ["PUT data"] * 4


def _asked() -> list[tuple[str, str]]:
    return [(method, target) for method, target, _ in _Store.seen]


@pytest.mark.parametrize(
    ("method", "target", "headers", "name"),
    [
        ("PUT", "/b/t/.hoodie/timeline/20260101000000000.inflight", {}, "PUT timeline/N.inflight"),
        (
            "PUT",
            "/b/t/_delta_log/01.json",
            {"if-none-match": "*"},
            "PUT _delta_log/N.json if absent",
        ),
        ("PUT", "/b/t/metadata/v3.metadata.json", {"if-match": "x"}, None),
        ("POST", "/b/t/x%3D1/a.parquet?uploads=", {}, "POST data uploads"),
        ("PUT", "/b/t/a.parquet?partNumber=1&uploadId=z", {}, "PUT data partNumber"),
        ("POST", "/b?delete", {}, "POST delete"),
    ],
)
def test_a_name_tells_what_is_done_to_which_kind(
    method: str, target: str, headers: dict[str, str], name: str | None
) -> None:
    found = Request(method, target, headers).name
    assert found == (name or "PUT metadata/vN.metadata.json if same")
