"""Metadata and data files on S3: what the service may do to a request, and what two clients see."""

from __future__ import annotations

import http.client
import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote

import obstore
import pyarrow.fs as pafs
import pytest
from obstore.exceptions import AlreadyExistsError as ObjectExists

from hudi_core.errors import AlreadyExistsError, PreconditionFailedError, StorageError
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant_time import InstantTime
from hudi_core.storage import object_store
from hudi_core.storage.data_files import data_filesystem
from hudi_core.storage.object_store import ObjectStorage
from hudi_core.storage.options import StorageOptions
from hudi_core.txn.heartbeat import Heartbeat, is_alive
from hudi_core.txn.markers import MarkerKind, Markers


@dataclass
class Proxy:
    """Stands before the service and spoils the answers to the next puts.

    ``plan`` holds a status per put to come: 200 passes it on; ``-status`` passes the put on and
    then answers ``status``; another status is answered without passing the put on.
    """

    endpoint: str
    plan: list[int] = field(default_factory=list)
    always: int = 200
    puts: int = 0
    headers: list[dict[str, str]] = field(default_factory=list)

    def answer(self) -> int:
        self.puts += 1
        return self.plan.pop(0) if self.plan else self.always


@pytest.fixture
def proxy(s3: Any) -> Iterator[Proxy]:
    state = Proxy("")
    host = s3.endpoint.removeprefix("http://")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            state.headers.append({name.lower(): text for name, text in self.headers.items()})
            order = state.answer() if self.command == "PUT" else 200
            status, headers, data = order, [], b""
            if order == 200 or order < 0:
                connection = http.client.HTTPConnection(host)
                sent = {k: v for k, v in self.headers.items() if k.lower() != "connection"}
                connection.request(self.command, self.path, body, sent)
                reply = connection.getresponse()
                status, headers, data = reply.status, reply.getheaders(), reply.read()
                connection.close()
                if order < 0:
                    status, headers, data = -order, [], b""
            self.send_response(status)
            dropped = ("transfer-encoding", "connection", "date", "server")
            for name, text in headers:
                if name.lower() not in dropped and name.lower() != "content-length":
                    self.send_header(name, text)
            if self.command == "HEAD":
                length = {k.lower(): v for k, v in headers}.get("content-length", "0")
                self.send_header("content-length", length)
                data = b""
            else:
                self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _serve

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.endpoint = f"http://127.0.0.1:{server.server_port}"
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def storage(s3: Any, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> ObjectStorage:
    monkeypatch.setattr(object_store, "_FIRST_PAUSE_S", 0.001)
    given = {
        "fs.s3a.access.key": "an-access-key",
        "fs.s3a.secret.key": "a-secret-key",
        "fs.s3a.endpoint": proxy.endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
    }
    return ObjectStorage(s3.new_root(), StorageOptions.from_options(given, {}))


def test_a_put_whose_answer_is_lost_has_happened(storage: ObjectStorage, proxy: Proxy) -> None:
    # the client repeats the put and is told that the object exists
    proxy.plan = [-500]
    storage.put_if_absent("timeline/one", b"")
    assert proxy.puts == 2
    assert storage.read("timeline/one") == b""


def test_a_change_whose_answer_is_lost_has_happened(storage: ObjectStorage, proxy: Proxy) -> None:
    tag = storage.compare_and_set("file", b"1", None)
    proxy.puts, proxy.plan = 0, [-503]
    new = storage.compare_and_set("file", b"2", tag)
    assert proxy.puts == 2
    assert storage.version("file") == (b"2", new)


def test_a_lost_answer_does_not_claim_the_object_of_another(
    storage: ObjectStorage, proxy: Proxy
) -> None:
    storage.put_if_absent("one", b"")
    proxy.plan = [500]
    with pytest.raises(AlreadyExistsError):
        storage.put_if_absent("one", b"")
    tag = storage.version("one")[1]
    storage.put("one", b"other")
    proxy.plan = [503]
    with pytest.raises(PreconditionFailedError):
        storage.compare_and_set("one", b"mine", tag)
    assert storage.read("one") == b"other"


def test_two_puts_that_meet_are_no_proof_that_one_won(storage: ObjectStorage, proxy: Proxy) -> None:
    # 409 ConditionalRequestConflict: try again
    proxy.plan = [409, 409]
    storage.put_if_absent("one", b"1")
    assert storage.read("one") == b"1"
    tag = storage.version("one")[1]
    proxy.plan = [409]
    storage.compare_and_set("one", b"2", tag)
    assert storage.read("one") == b"2"


def test_a_store_that_keeps_refusing_is_an_error_of_its_own(
    storage: ObjectStorage, proxy: Proxy
) -> None:
    proxy.always = 409
    with pytest.raises(StorageError, match="kept refusing") as caught:
        storage.put_if_absent("one", b"1")
    assert type(caught.value) is StorageError
    proxy.always = 200
    assert storage.head("one") is None


def test_a_forbidden_put_names_the_file_and_no_secret(storage: ObjectStorage, proxy: Proxy) -> None:
    proxy.always = 403
    with pytest.raises(StorageError, match=r"s3://.*/tables/one/file: ") as caught:
        storage.put_if_absent("file", b"1")
    assert caught.value.facts["path"] == f"{storage.root}/file"
    told = "".join(traceback.format_exception(caught.value)) + repr(storage.__dict__)
    assert "a-secret-key" not in told
    assert "an-access-key" not in told


def test_a_bucket_that_is_not_there_is_not_an_empty_table(s3: Any) -> None:
    storage = ObjectStorage("s3://no-such-bucket/table", s3.options)
    for call in (
        lambda: list(storage.list()),
        lambda: list(storage.list(recursive=True)),
        storage.list_folders,
        lambda: storage.put_if_absent("a", b""),
        lambda: storage.put("a", b""),
        lambda: storage.delete_tree("a"),
    ):
        with pytest.raises(StorageError) as caught:
            call()
        assert type(caught.value) is StorageError


def test_credentials_of_options_and_environment_are_not_mixed(
    s3: Any, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token-of-somebody-else")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-of-somebody-else")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_REGION", "nowhere-1")
    given = {
        "fs.s3a.access.key": "an-access-key",
        "fs.s3a.secret.key": "a-secret-key",
        "fs.s3a.endpoint": proxy.endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
    }
    root = s3.new_root()
    options = StorageOptions.from_options(given)
    ObjectStorage(root, options).put("metadata", b"1")
    filesystem, folder = data_filesystem(root, options)
    assert filesystem.get_file_info(f"{folder}/metadata").size == 1
    assert len(proxy.headers) >= 2
    for headers in proxy.headers:
        assert "x-amz-security-token" not in headers
        assert "Credential=an-access-key/" in headers["authorization"]
        assert "/us-east-1/s3/" in headers["authorization"]


def test_the_environment_serves_both_clients(
    s3: Any, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-from-outside")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-from-outside")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token-from-outside")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", proxy.endpoint)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    root = s3.new_root()
    options = StorageOptions.from_options({})
    ObjectStorage(root, options).put("metadata", b"1")
    filesystem, folder = data_filesystem(root, options)
    assert filesystem.get_file_info(f"{folder}/metadata").size == 1
    assert len(proxy.headers) >= 2
    for headers in proxy.headers:
        assert headers["x-amz-security-token"] == "token-from-outside"
        assert "Credential=key-from-outside/" in headers["authorization"]


@pytest.mark.parametrize("folder", ["tables/one", "a b/%20é", "{x}/[y]#~"])
@pytest.mark.parametrize("name", ["p=1", "a b", "é%2F+", "[x]{y}~", "back\\slash", "..x"])
def test_data_and_metadata_clients_agree_on_names(s3: Any, folder: str, name: str) -> None:
    root = s3.new_root(folder)
    storage = ObjectStorage(root, s3.options)
    filesystem, base = data_filesystem(root, s3.options)
    with filesystem.open_output_stream(f"{base}/{name}/data") as stream:
        stream.write(b"12345")
    storage.put_if_absent(f"{name}/metadata", b"1")

    found = [(status.path, status.size) for status in storage.list(name)]
    assert found == [(f"{name}/data", 5), (f"{name}/metadata", 1)]
    listed = filesystem.get_file_info(pafs.FileSelector(f"{base}/{name}"))
    assert sorted((info.base_name, info.size) for info in listed) == [("data", 5), ("metadata", 1)]


@pytest.mark.parametrize("key", ["tables/one/../evil", "tables/one/a//b"])
def test_a_hostile_key_is_not_listed_as_a_path(s3: Any, key: str) -> None:
    root = s3.new_root()
    bucket = root.removeprefix("s3://").partition("/")[0]
    connection = http.client.HTTPConnection(s3.endpoint.removeprefix("http://"))
    connection.request("PUT", f"/{bucket}/{quote(key)}", b"x")
    assert connection.getresponse().status == 200
    connection.close()
    with pytest.raises(StorageError):
        list(ObjectStorage(root, s3.options).list(recursive=True))


def test_markers_and_heartbeats_live_on_s3(s3: Any) -> None:
    storage = ObjectStorage(s3.new_root(), s3.options)
    instant = InstantTime("20260301120000000")
    name = "7f3c-0_1-2-3_20260301120000000.parquet"
    Markers(storage, instant).create(PartitionPath(""), name, MarkerKind.CREATE)
    assert [marker.file_name for marker in Markers(storage, instant).list()] == [name]

    heartbeat = Heartbeat(storage, instant, 60_000)
    heartbeat.start()
    assert is_alive(storage, instant, 60_000, 2)
    heartbeat.stop()
    assert not is_alive(storage, instant, 60_000, 2)


@pytest.mark.parametrize("create", [True, False])
def test_a_conflict_that_the_client_gives_up_on_is_looked_into(
    s3: Any, monkeypatch: pytest.MonkeyPatch, create: bool
) -> None:
    # a client may report a request that met another one as if the object existed
    storage = ObjectStorage(s3.new_root(), s3.options)
    tag = None if create else storage.compare_and_set("one", b"1", None)
    refusals = 2
    put = obstore.put

    def conflict(*arguments: Any, **named: Any) -> Any:
        nonlocal refusals
        if refusals:
            refusals -= 1
            raise ObjectExists("409 Conflict")
        return put(*arguments, **named)

    monkeypatch.setattr(obstore, "put", conflict)
    monkeypatch.setattr(object_store, "_FIRST_PAUSE_S", 0.001)
    new = storage.compare_and_set("one", b"2", tag)
    assert storage.version("one") == (b"2", new)
    assert refusals == 0
