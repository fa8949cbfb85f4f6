"""What the service for Trino refuses: forged splits, and more than the options allow."""

from __future__ import annotations

import random
import shutil
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import thriftpy2.protocol
import thriftpy2.transport
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli.app import app
from hudi_core.config.trino import SIGNING_KEY_VARIABLE, TrinoConfig
from hudi_core.errors import InvalidOptionError, UnknownOptionWarning
from hudi_core.read.connector.handles import TableName
from hudi_core.trino.server import ThriftServer
from hudi_core.trino.service import TrinoService
from hudi_core.trino.signing import TokenSigner
from tests.formats.certificates import Authority
from tests.formats.trino_client import (
    PROTOCOL,
    all_splits,
    between,
    client_of,
    connected,
    domain,
    everything,
    no_token,
    rows_of_split,
    table_name,
    token_of,
)

KEY = b"0123456789abcdef" * 2
HOUR = 3600.0
TRIPS, OTHER, SECRET = TableName("lake", "trips"), TableName("lake", "other"), TableName("x", "x")
CANARY = "secret-canary"
_MEMORY: Any = thriftpy2.transport.TMemoryBuffer
_PROTOCOL: Any = thriftpy2.protocol.TBinaryProtocol
NAMES = table_name(*TRIPS), table_name(*OTHER)


class Clock:
    """The time as a test says."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[TableName, str]:
    """Two tables that are served, and one that is not; each of three files."""
    folder = tmp_path_factory.mktemp("served")
    found = {}
    for name in (TRIPS, OTHER, SECRET):
        text = CANARY if name == SECRET else "open"
        rows = pa.table({"id": pa.array(range(30), pa.int64()), "v": [text] * 30})
        table = hudi.Table.create(str(folder / name.table), rows.schema, record_key="id")
        for n in range(3):
            table.bulk_insert(rows.slice(10 * n, 10))
        found[name] = table.path
    return found


def service_of(
    tables: dict[TableName, str],
    options: dict[str, str] | None = None,
    key: bytes = KEY,
    clock: Clock | None = None,
) -> TrinoService:
    """A service of the tables that are to be served."""
    config = TrinoConfig.from_options(options or {})
    signer = TokenSigner([key], config.split_lifetime_s, clock or Clock())
    served = {name: path for name, path in tables.items() if name != SECRET}
    return TrinoService(hudi.Connector(), served, config, signer)


@pytest.fixture
def client(tables: dict[TableName, str]) -> Iterator[Any]:
    with client_of(service_of(tables)) as client:
        yield client


def trino_rows(client: Any, split: bytes, columns: Any = ("v",), token: Any = None) -> Any:
    identifier = PROTOCOL.Identifier(id=split)
    return client.trinoGetRows(identifier, list(columns), 40, token or no_token())


def splits(client: Any, name: Any = NAMES[0], token: Any = None, wanted: Any = None) -> Any:
    given = name, PROTOCOL.NullableColumnSet(), wanted or everything(), 1
    return client.trinoGetSplits(*given, token or no_token())


def refused(reason: str) -> Any:
    return pytest.raises(PROTOCOL.ServiceError, match=reason)


def changed(token: Any, at: int) -> Any:
    return PROTOCOL.Identifier(id=_flipped(token.id, at))


def _flipped(data: bytes, at: int) -> bytes:
    found = bytearray(data)
    found[at] ^= 1
    return bytes(found)


def test_a_forged_split_of_a_table_not_served(client: Any, tables: dict[TableName, str]) -> None:
    """By somebody who knows the form and the path, and has no key."""
    forger = TrinoService(
        hudi.Connector(), {SECRET: tables[SECRET]}, signer=TokenSigner([b"x" * 32], HOUR, Clock())
    )
    with client_of(forger) as own:
        forged = splits(own, table_name(*SECRET)).splits[0].splitId.id
        assert CANARY in str(trino_rows(own, forged))
    plain = forged[73:]
    for attempt in (forged, plain, b"", b"\x01", b"{}", b"[" * 100_000):
        with refused("not signed by this service") as error:
            trino_rows(client, attempt)
        assert error.value.retryable is False


def test_a_split_of_a_table_served_elsewhere(client: Any, tables: dict[TableName, str]) -> None:
    """Its signature is good, as both have one key."""
    signer = TokenSigner([KEY], HOUR, Clock())
    with client_of(TrinoService(hudi.Connector(), {SECRET: tables[SECRET]}, signer=signer)) as own:
        foreign = splits(own, table_name(*SECRET)).splits[0].splitId.id
    with refused(r"x\.x is not known"):
        trino_rows(client, foreign)


def test_changed_splits_and_tokens(client: Any) -> None:
    first = splits(client)
    split = first.splits[0].splitId.id
    page = trino_rows(client, split)
    for at in (0, 1, 32, 33, 40, 41, 72, 73, 90, len(split) // 2, -1):
        with refused("not signed by this service"):
            trino_rows(client, _flipped(split, at))
    for at in (0, 1, 32, 33, 40, 41, 72, 73, -1):
        with refused("not signed by this service"):
            splits(client, token=token_of(changed(first.nextToken, at)))
        with refused("not signed by this service"):
            trino_rows(client, split, token=token_of(changed(page.nextToken, at)))
    assert trino_rows(client, split) == page


def test_tokens_of_something_else(client: Any) -> None:
    first = splits(client)
    split = first.splits[0].splitId.id
    other = splits(client, token=token_of(first.nextToken)).splits[0].splitId.id
    page = trino_rows(client, split)
    more_splits, more_rows = token_of(first.nextToken), token_of(page.nextToken)
    with refused("for another scan"):
        splits(client, NAMES[1], more_splits)
    with refused("for another scan"):
        splits(client, NAMES[0], more_splits, domain("id", between("bigint", 3, 5)))
    with refused("for another scan, split or choice of columns"):
        trino_rows(client, other, token=more_rows)
    with refused("for another scan, split or choice of columns"):
        trino_rows(client, split, ["id"], more_rows)
    # each kind for itself
    with refused("not signed by this service"):
        splits(client, token=more_rows)
    with refused("not signed by this service"):
        trino_rows(client, split, token=more_splits)
    with refused("not signed by this service"):
        trino_rows(client, first.nextToken.id)


def test_what_was_handed_out_expires(tables: dict[TableName, str]) -> None:
    clock = Clock()
    options = {"hudi.trino.split-lifetime": "2h"}
    with client_of(service_of(tables, options, clock=clock)) as client:
        first = splits(client)
        split = first.splits[0].splitId.id
        page = trino_rows(client, split)
        clock.now += 2 * HOUR
        again = splits(client, token=token_of(first.nextToken))
        assert trino_rows(client, split).columnBlocks == page.columnBlocks
        clock.now += HOUR
        with refused("expired at 2027-01-15T1.*hudi.trino.split-lifetime") as error:
            trino_rows(client, split)
        assert error.value.retryable is False
        with refused("expired at"):
            trino_rows(client, split, token=token_of(page.nextToken))
        with refused("expired at"):
            splits(client, token=token_of(first.nextToken))
        # a scan that goes on gets tokens that hold longer
        assert splits(client, token=token_of(again.nextToken)).nextToken is None


def test_calls_are_repeated_at_a_second_server(
    tables: dict[TableName, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One has the key from a file, the other from its environment, a third one has none."""
    file = tmp_path / "key"
    file.write_text(f"{KEY.decode()}\n")
    config = TrinoConfig.from_options({TrinoConfig.signing_key_file.key: str(file)})
    served = {name: path for name, path in tables.items() if name != SECRET}
    first = TrinoService(hudi.Connector(), served, config)
    monkeypatch.setenv(SIGNING_KEY_VARIABLE, KEY.decode())
    second = TrinoService(hudi.Connector(), served)
    monkeypatch.delenv(SIGNING_KEY_VARIABLE)
    third = TrinoService(hudi.Connector(), served)
    with ExitStack() as stack:
        one, two, none = (stack.enter_context(client_of(each)) for each in (first, second, third))
        batch = splits(one)
        split = batch.splits[0].splitId.id
        page = trino_rows(one, split)
        for client in (one, two, two):
            assert len(splits(client, token=token_of(batch.nextToken)).splits) == 1
            assert trino_rows(client, split).columnBlocks == page.columnBlocks
            assert trino_rows(client, split, token=token_of(page.nextToken)).rowCount > 0
        with refused("need the same key: hudi.trino.signing-key-file"):
            splits(none, token=token_of(batch.nextToken))
        with refused("need the same key: hudi.trino.signing-key-file"):
            trino_rows(none, split)


def test_a_key_is_replaced_without_a_pause(tables: dict[TableName, str]) -> None:
    old, new = b"old" * 20, b"new" * 20
    served = {TRIPS: tables[TRIPS]}

    def service(*keys: bytes) -> TrinoService:
        return TrinoService(hudi.Connector(), served, signer=TokenSigner(keys, HOUR, Clock()))

    with client_of(service(old)) as client:
        split = splits(client).splits[0].splitId.id
    with client_of(service(new, old)) as client:
        assert trino_rows(client, split).rowCount > 0
        signed_by_new = splits(client).splits[0].splitId.id
    with client_of(service(new)) as client:
        assert trino_rows(client, signed_by_new).rowCount > 0
        with refused("not signed by this service"):
            trino_rows(client, split)


def test_a_server_reads_where_it_finds_it(tables: dict[TableName, str], tmp_path: Path) -> None:
    """A split has no place of a table in it: two servers may mount one at different paths."""
    copy = shutil.copytree(tables[TRIPS], tmp_path / "mounted elsewhere")
    with client_of(service_of(tables)) as client:
        found = all_splits(client, NAMES[0])
    shutil.rmtree(copy / ".hoodie" / "metadata")
    with client_of(service_of({TRIPS: str(copy)})) as client:
        read = [row for one in found for row in rows_of_split(client, one, ["id"])]
    assert sorted(read) == [(n,) for n in range(30)]


def test_calls_that_lack_something(client: Any) -> None:
    nothing = PROTOCOL.NullableColumnSet(), everything(), 1, no_token()
    half = PROTOCOL.TableName(schemaName="lake")
    incomplete = (
        PROTOCOL.TupleDomain(domains={"id": PROTOCOL.Domain()}),
        domain("id", PROTOCOL.Range()),
        domain("id", between("varchar", "a", "b")),
        domain("v", between("bigint", 1, 2)),
        domain("id", PROTOCOL.Range(low=PROTOCOL.Marker(value=PROTOCOL.Block(), bound=2))),
    )
    calls: list[Callable[[], object]] = [
        lambda: client.trinoGetTableMetadata(None),
        lambda: client.trinoGetTableMetadata(half),
        lambda: client.trinoGetSplits(None, *nothing),
        lambda: client.trinoGetRows(None, ["id"], 10, no_token()),
        lambda: client.trinoGetRows(PROTOCOL.Identifier(), ["id"], 10, no_token()),
        *(partial(splits, client, wanted=one) for one in incomplete),
    ]
    for call in calls:
        with pytest.raises(PROTOCOL.ServiceError, match="is refused: it") as error:
            call()
        assert error.value.retryable is False
        assert "Error" not in error.value.message
        assert "NoneType" not in error.value.message
    split = splits(client).splits[0].splitId.id
    for columns, reason in ((["nothing"], "nothing"), (["v", "v"], "twice")):
        with refused(reason):
            trino_rows(client, split, columns)


def test_a_failure_inside_says_where_its_cause_is(
    client: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("/a/path/of/the/server")

    monkeypatch.setattr(TrinoService, "schemas", fail)
    with refused(
        r"The service failed at this call. Its log has the cause, as call \w{8}."
    ) as error:
        client.trinoListSchemaNames()
    assert "KeyError" not in error.value.message
    number = error.value.message[-9:-1]
    assert len(number) == 8
    assert any(number in one.getMessage() and one.exc_info for one in caplog.records)


def frame(method: str, body: bytes) -> bytes:
    head = struct.pack(">I", 0x80010001) + struct.pack(">i", len(method)) + method.encode()
    sent = head + struct.pack(">i", 7) + body
    return struct.pack(">i", len(sent)) + sent


def answered(at: socket.socket, sent: bytes) -> bytes:
    """The answer to a frame; empty where the connection ends."""
    try:
        at.sendall(sent)
        head = at.recv(4, socket.MSG_WAITALL)
    except ConnectionError:  # bytes that nobody read make a reset of an end
        return b""
    return at.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL) if len(head) == 4 else b""


STRUCTS = b"\x0c\x00\x7f" * 5000 + b"\x00" * 5001
LISTS = b"\x0f\x00\x7f" + b"\x0f\x00\x00\x00\x01" * 5000
MANY = b"\x0f\x00\x02" + b"\x0b" + struct.pack(">i", 200_000) + b"\x00\x00\x00\x00" * 200_000


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (STRUCTS, b"hudi.trino.max-depth"),
        (LISTS, b"hudi.trino.max-depth"),
        (MANY + b"\x00", b"hudi.trino.max-values"),
        (b"\x0f\x00\x02\x0b\x7f\xff\xff\xff", b"hudi.trino.max-values"),
        (b"\x0f\x00\x02\x0b\xff\xff\xff\xff", b"hudi.trino.max-values"),
        (b"\x0b\x00\x01\x7f\xff\xff\xff", b"not those of the binary protocol"),
        (b"\x0c\x00\x01", b"not those of the binary protocol"),
    ],
)
def test_unreadable_arguments(tables: dict[TableName, str], body: bytes, reason: bytes) -> None:
    """They are answered with an error of Thrift's, and the connection goes on."""
    service = service_of(tables, {"hudi.trino.max-values": "100000"})
    with (
        ThriftServer(service).running() as address,
        socket.create_connection(address, timeout=20) as at,
    ):
        found = answered(at, frame("trinoGetRows", body))
        assert found[:4] == b"\x80\x01\x00\x03"  # an exception
        assert reason in found
        assert b"There is no method" in answered(at, frame("trinoGetNothing", body))
        assert b"lake" in answered(at, frame("trinoListSchemaNames", b"\x00"))


def test_whatever_comes_is_answered_or_ends_its_connection(tables: dict[TableName, str]) -> None:
    """Calls with bytes that were changed, by the thousand."""
    seed = random.Random(1)
    recorded = _recorded_calls(tables)
    with ThriftServer(service_of(tables)).running() as address:
        for number in range(400):
            sent = bytearray(recorded[number % len(recorded)])
            for _ in range(seed.choice((1, 1, 2, 8))):
                sent[seed.randrange(8, len(sent))] = seed.randrange(256)
            with socket.create_connection(address, timeout=20) as at:
                found = answered(at, bytes(sent))
            assert CANARY.encode() not in found
            for name in (b"Error:", b"NoneType", b"Traceback", b"object has no"):
                assert name not in found, (sent, found)
        with connected(address) as client:
            assert len(all_splits(client, NAMES[0])) == 3


def _recorded_calls(tables: dict[TableName, str]) -> list[bytes]:
    with client_of(service_of(tables)) as client:
        split = splits(client).splits[0].splitId
    wanted = domain("id", between("bigint", 3, 5))
    calls = {
        "trinoGetTableMetadata": {"schemaTableName": NAMES[0]},
        "trinoGetSplits": {
            "schemaTableName": NAMES[0],
            "desiredColumns": PROTOCOL.NullableColumnSet(),
            "outputConstraint": wanted,
            "maxSplitCount": 1,
            "nextToken": no_token(),
        },
        "trinoGetRows": {
            "splitId": split,
            "columns": ["v"],
            "maxBytes": 1000,
            "nextToken": no_token(),
        },
    }
    found = []
    for method, arguments in calls.items():
        buffer = _MEMORY()
        struct_of = getattr(PROTOCOL.Tables, f"{method}_args")
        struct_of(**arguments).write(_PROTOCOL(buffer))
        found.append(frame(method, buffer.getvalue()))
    return found


def test_silent_connections_keep_nobody_out(tables: dict[TableName, str]) -> None:
    """Neither those that send nothing, nor those that send a part of a call."""
    service = service_of(tables, {"hudi.trino.max-connections": "8"})
    before = threading.active_count()
    with ThriftServer(service).running() as address, ExitStack() as stack:
        for number in range(40):
            at = stack.enter_context(socket.create_connection(address, timeout=20))
            at.sendall((b"", b"\x00", b"\x00\x00\x00\x50", b"\x00\x00\x00\x50\x80")[number % 4])
        for _ in range(3):
            with connected(address) as client:
                assert client.trinoListSchemaNames() == ["lake"]
        until = time.monotonic() + 20
        while (threads := threading.active_count() - before) > 9 and time.monotonic() < until:
            time.sleep(0.01)
        assert threads <= 9  # one of them accepts connections


def test_where_all_connections_are_at_work_the_new_one_goes(
    tables: dict[TableName, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, end = threading.Event(), threading.Event()

    def slow(_: TrinoService) -> list[str]:
        begun.set()
        end.wait(20)
        return ["late"]

    monkeypatch.setattr(TrinoService, "schemas", slow)
    service = service_of(tables, {"hudi.trino.max-connections": "1"})
    with (
        ThriftServer(service).running() as address,
        socket.create_connection(address, timeout=20) as at,
    ):
        at.sendall(frame("trinoListSchemaNames", b"\x00"))
        assert begun.wait(20)
        with socket.create_connection(address, timeout=20) as other:
            assert other.recv(1) == b""
        end.set()
        assert b"late" in at.recv(1000)


@pytest.mark.parametrize("sent", [b"", b"\x00", b"\x00\x00\x00\x50\x80\x01"])
def test_silence_ends_a_connection(tables: dict[TableName, str], sent: bytes) -> None:
    options = {"hudi.trino.idle-timeout": "0.3s", "hudi.trino.frame-timeout": "0.2s"}
    with (
        ThriftServer(service_of(tables, options)).running() as address,
        socket.create_connection(address, timeout=20) as at,
    ):
        assert b"lake" in answered(at, frame("trinoListSchemaNames", b"\x00"))
        at.sendall(sent)
        assert at.recv(1) == b""


def test_a_call_that_drips_ends(tables: dict[TableName, str]) -> None:
    """Each byte comes in time, the call does not."""
    options = {"hudi.trino.frame-timeout": "0.5s"}
    with (
        ThriftServer(service_of(tables, options)).running() as address,
        socket.create_connection(address, timeout=0.1) as at,
    ):
        begin = time.monotonic()
        for byte in frame("trinoListSchemaNames", b"\x00" * 100)[:-1]:
            try:
                at.sendall(bytes([byte]))
                if at.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        assert 0.3 < time.monotonic() - begin < 10


def test_an_answer_that_nobody_takes_ends_its_connection(
    tables: dict[TableName, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TrinoService, "schemas", lambda _: ["x" * (32 << 20)])
    options = {"hudi.trino.frame-timeout": "0.3s"}
    before = threading.active_count()
    with (
        ThriftServer(service_of(tables, options)).running() as address,
        socket.create_connection(address, timeout=20) as at,
    ):
        at.sendall(frame("trinoListSchemaNames", b"\x00"))
        assert at.recv(1)
        until = time.monotonic() + 20
        while threading.active_count() > before + 1 and time.monotonic() < until:
            time.sleep(0.01)
        assert threading.active_count() <= before + 1


def test_calls_that_are_too_large(tables: dict[TableName, str]) -> None:
    options = {"hudi.trino.max-frame-size": "2kB"}
    with ThriftServer(service_of(tables, options)).running() as address:
        for size, is_answered in ((2048, True), (2049, False)):
            with socket.create_connection(address, timeout=20) as at:
                sent = frame("trinoListSchemaNames", b"")
                sent = frame("trinoListSchemaNames", b"\x00" * (size - len(sent) + 4))
                assert bool(answered(at, sent)) is is_answered


def test_pages_and_columns_have_limits(tables: dict[TableName, str]) -> None:
    options = {"hudi.trino.max-page-size": "200B", "hudi.trino.max-columns": "2"}
    with client_of(service_of(tables, options)) as client:
        split = splits(client).splits[0].splitId
        page = client.trinoGetRows(split, ["id", "v"], 1 << 40, no_token())
        assert 0 < page.rowCount < 10
        with refused("names 3 columns. Name 2 at most, or set hudi.trino.max-columns"):
            client.trinoGetRows(split, ["id", "v", "path"], 1000, no_token())


def test_calls_wait_in_turn(tables: dict[TableName, str], monkeypatch: pytest.MonkeyPatch) -> None:
    begun, end = threading.Event(), threading.Event()
    plain = TrinoService.schemas

    def slow(service: TrinoService) -> Any:
        begun.set()
        end.wait(20)
        return plain(service)

    monkeypatch.setattr(TrinoService, "schemas", slow)
    limits = {"hudi.trino.max-concurrent-requests": "1", "hudi.trino.queue-timeout": "0.2s"}
    with (
        ThriftServer(service_of(tables, limits)).running() as address,
        socket.create_connection(address, timeout=20) as at,
        connected(address) as client,
    ):
        at.sendall(frame("trinoListSchemaNames", b"\x00"))
        assert begun.wait(20)
        with refused("1 calls are worked on") as busy:
            client.trinoListSchemaNames()
        assert busy.value.retryable is True
        end.set()
        assert b"lake" in at.recv(1000)
        assert client.trinoListSchemaNames() == ["lake"]


def test_an_answer_that_is_not_taken_keeps_its_turn(
    tables: dict[TableName, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TrinoService, "schemas", lambda _: ["x" * (32 << 20)])
    limits = {"hudi.trino.max-concurrent-requests": "1", "hudi.trino.queue-timeout": "0.2s"}
    with ThriftServer(service_of(tables, limits)).running() as address:
        with socket.create_connection(address, timeout=20) as at:
            at.sendall(frame("trinoListSchemaNames", b"\x00"))
            assert at.recv(1)  # the answer has begun
            with connected(address) as client, refused("1 calls are worked on"):
                client.trinoListSchemaNames()
        with connected(address) as client:
            assert len(client.trinoListSchemaNames()) == 1


def tls_client(authority: Authority, own: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if own is not None:
        context.load_cert_chain(own)
    return context


@pytest.mark.parametrize("mutual", [True, False])
def test_certificates(tables: dict[TableName, str], tmp_path: Path, mutual: bool) -> None:
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    options = {"hudi.trino.tls.certificate-file": str(ours.issue("server"))}
    if mutual:
        options["hudi.trino.tls.client-ca-file"] = str(ours.certificate)
    names = frame("trinoListSchemaNames", b"\x00")

    def ask(context: ssl.SSLContext | None) -> bytes:
        with socket.create_connection(address, timeout=20) as plain:
            if context is None:
                return answered(plain, names)
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as at:
                at.sendall(names)
                return at.recv(1000)

    with ThriftServer(service_of(tables, options)).running() as address:
        assert b"lake" in ask(tls_client(ours, ours.issue("client")))
        assert ask(None) == b""
        for own in (None, theirs.issue("client")):
            try:
                found = ask(tls_client(ours, own))
            except OSError:  # ssl.SSLError too
                found = b""
            assert (b"lake" in found) is (not mutual)


def test_a_handshake_that_does_not_come_ends(tables: dict[TableName, str], tmp_path: Path) -> None:
    options = {
        "hudi.trino.tls.certificate-file": str(Authority(tmp_path, "ours").issue("server")),
        "hudi.trino.frame-timeout": "0.2s",
        "hudi.trino.max-connections": "2",
    }
    with ThriftServer(service_of(tables, options)).running() as address, ExitStack() as stack:
        some = [stack.enter_context(socket.create_connection(address, 20)) for _ in range(5)]
        for one in some:
            assert one.recv(1) == b""


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"hudi.trino.max-conections": "3"}, "Did you mean hudi.trino.max-connections?"),
        ({"hudi.trino.signing-key": "0" * 64}, "Did you mean hudi.trino.signing-key-file?"),
        ({"hudi.trino.tls.client-ca": "x"}, "Did you mean hudi.trino.tls.client-ca-file?"),
        ({"hudi.trino.split-lifetime": "1 week"}, "it is no duration, such as"),
        ({"hudi.trino.idle-timeout": "0s"}, "it is not between 0 and 366d"),
        ({"hudi.trino.max-connections": "0"}, "it is less than 1"),
        ({"hudi.trino.tls.client-ca-file": "ca.pem"}, "there is no TLS without"),
        ({"hudi.trino.tls.private-key-file": "key.pem"}, "there is no TLS without"),
    ],
)
def test_options_that_would_not_protect(options: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidOptionError) as error:
        TrinoConfig.from_options(options)
    assert reason in str(error.value)
    assert "0" * 64 not in str(error.value)


def test_keys_that_are_none(tmp_path: Path) -> None:
    short, raw, none = tmp_path / "short", tmp_path / "raw", tmp_path / "none"
    short.write_text("0" * 64 + "\nshort\n")
    raw.write_bytes(bytes(range(256)))
    for path, reason in (
        (short, "fewer than 32 characters"),
        (raw, "no ASCII text"),
        (none, "No such file"),
    ):
        with pytest.raises(InvalidOptionError, match=reason):
            TokenSigner.of(TrinoConfig(signing_key_file=str(path)))
    with pytest.raises(InvalidOptionError, match="fewer than 32") as error:
        TokenSigner.of(TrinoConfig(), {SIGNING_KEY_VARIABLE: "too-short"})
    assert "too-short" not in str(error.value)


def test_certificates_that_are_none(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ours")
    good, locked = authority.issue("server"), authority.issue("locked", b"password")
    empty = tmp_path / "empty.pem"
    empty.touch()
    for options in (
        {"certificate-file": tmp_path / "none.pem"},
        {"certificate-file": empty},
        {"certificate-file": locked},
        {"certificate-file": good, "private-key-file": authority.issue("other")},
        {"certificate-file": good, "client-ca-file": empty},
    ):
        given = {f"hudi.trino.tls.{name}": str(path) for name, path in options.items()}
        with pytest.raises(InvalidOptionError, match="Give a file in PEM"):
            ThriftServer(service_of({}, given))


def test_unknown_options_of_the_connector_are_named() -> None:
    with pytest.warns(UnknownOptionWarning, match="did you mean hudi.target-split-size"):
        hudi.Connector({"hudi.target-split-sze": "1MB"})
    # Hudi's connector has them, and they change nothing here
    hudi.Connector({"hudi.parquet.use-column-names": "true", "hudi.index.wait-timeout": "1s"})


def test_the_command_refuses_and_warns(
    tables: dict[TableName, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise InvalidOptionError("the test", "", "it has seen enough", "Go on.")

    monkeypatch.setattr(ThriftServer, "__init__", stop)

    def run(*options: str, host: str = "10.0.0.5") -> str:
        pairs = [part for one in options for part in ("-o", one)]
        served = ["serve-trino", "--table", f"lake.trips={tables[TRIPS]}", "--host", host]
        return CliRunner().invoke(app, [*served, *pairs], env={"COLUMNS": "500"}).output

    assert "Did you mean hudi.trino.max-connections?" in run("hudi.trino.max-conections=3")
    warning = "all who reach 10.0.0.5:9090 read the tables: hudi.trino.tls.client-ca-file"
    assert warning in run()
    for quiet in (
        run(host="127.0.0.1"),
        run("hudi.trino.tls.certificate-file=c", "hudi.trino.tls.client-ca-file=c"),
    ):
        assert "it has seen enough" in quiet
        assert "all who reach" not in quiet
