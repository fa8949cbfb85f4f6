"""The server: framed calls of Thrift's binary protocol, over TCP or TLS."""

from __future__ import annotations

import contextlib
import logging
import secrets
import socket
import socketserver
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeAlias

import pyarrow as pa
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TException, TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer

from hudi_core.config.trino import TrinoConfig
from hudi_core.errors import (
    HudiError,
    InvalidOptionError,
    MetastoreError,
    RefusedCallError,
    ResourceLimitError,
    StorageError,
)
from hudi_core.metastore.thrift_calls import Struct
from hudi_core.read.connector.handles import TableName
from hudi_core.read.connector.predicate import TupleDomain
from hudi_core.trino import wire
from hudi_core.trino.blocks import trino_type
from hudi_core.trino.constraints import predicate_of
from hudi_core.trino.service import TrinoService

_log = logging.getLogger(__name__)
_RETRYABLE: Final = (StorageError, MetastoreError, ResourceLimitError)
_CHUNK: Final = 1 << 18
_SHOWN: Final = 100
"""Characters of a name that come from outside, in a message."""
_BACKLOG: Final = 128
_STOP_POLL_S: Final = 0.1
_UNREADABLE: Final = (
    TException,
    EOFError,
    UnicodeDecodeError,
    struct.error,
    ValueError,
    MemoryError,
)
"""Ends of reading what is not written in Thrift's binary protocol."""

Answer: TypeAlias = bytes | Struct
_Handler: TypeAlias = Callable[[TrinoService, Any], Answer]


class _CallProtocol(TBinaryProtocol):  # type: ignore[misc]  # thrift has no types
    """Reads a call, within the limits of the options."""

    def __init__(self, frame: bytes, config: TrinoConfig) -> None:
        super().__init__(TMemoryBuffer(frame), string_length_limit=len(frame))
        self._values_left, self._levels_left = config.max_values, config.max_depth

    def _check_container_length(self, length: int) -> None:
        # of a few bytes each, objects of some hundred are made
        self._values_left -= length
        if length < 0 or self._values_left < 0:
            raise TProtocolException(TProtocolException.SIZE_LIMIT, "too many values")

    def skip(self, ttype: int, *depth: int) -> None:
        # declared structs end by themselves; what is not declared is nested as a client likes
        self._levels_left -= 1
        if self._levels_left < 0:
            raise TProtocolException(TProtocolException.DEPTH_LIMIT, "too deep")
        super().skip(ttype, *depth)
        self._levels_left += 1


class _Calls:
    """Answers calls, so many at a time."""

    def __init__(self, service: TrinoService, config: TrinoConfig) -> None:
        self._service, self._config = service, config
        self._turns = threading.BoundedSemaphore(config.max_requests)

    def answer(self, frame: bytes, send: Callable[[bytes], None]) -> None:
        """Answer the frame of a call.

        ``send`` is part of the turn: answers that clients do not take count, as their bytes are
        held. ``TException``, ``EOFError``, ``UnicodeDecodeError`` or ``struct.error`` mean that the
        frame is no call.
        """
        call = _CallProtocol(frame, self._config)
        method, _, number = call.readMessageBegin()
        found = _METHODS.get(method)
        if found is None:
            code = TApplicationException.UNKNOWN_METHOD
            send(_exception(method, number, code, f"There is no method {method[:_SHOWN]}"))
            return
        arguments, handle = found
        if not self._turns.acquire(timeout=self._config.queue_timeout_s):
            busy = ResourceLimitError(
                f"{self._config.max_requests} calls are worked on, and none has ended for "
                f"{self._config.queue_timeout_s:g} seconds",
                f"Try again, or set {TrinoConfig.max_requests.key}.",
            )
            send(_frame(method, number, TMessageType.REPLY, _failure(str(busy), retryable=True)))
            return
        try:
            given = arguments()
            try:
                given.read(call)
            except _UNREADABLE as error:
                code = TApplicationException.PROTOCOL_ERROR
                reason = f"The arguments of {method} cannot be read: {_reason(error)}"
                send(_exception(method, number, code, reason))
                return
            send(_frame(method, number, TMessageType.REPLY, self._answered(given, handle)))
        finally:
            self._turns.release()

    def _answered(self, given: Any, handle: _Handler) -> Answer:
        try:
            return handle(self._service, given)
        except HudiError as error:
            return _failure(str(error), retryable=isinstance(error, _RETRYABLE))
        except OSError as error:
            _log.warning("a call failed", exc_info=True)
            reason = error.strerror or "no reason is known"
            return _failure(f"A file or a store cannot be reached: {reason}.", retryable=True)
        except Exception:  # noqa: BLE001 - a connection outlives what one call meets
            number = secrets.token_hex(4)
            _log.exception("call %s failed", number)
            reason = f"The service failed at this call. Its log has the cause, as call {number}."
            return _failure(reason, retryable=False)


def _reason(error: BaseException) -> str:
    """What an unreadable call lacks, in words for people."""
    kind = getattr(error, "type", None)
    if isinstance(error, TProtocolException) and kind == TProtocolException.SIZE_LIMIT:
        return f"it has more values than {TrinoConfig.max_values.key} allows"
    if isinstance(error, TProtocolException) and kind == TProtocolException.DEPTH_LIMIT:
        return f"it is nested deeper than {TrinoConfig.max_depth.key} allows"
    return "its bytes are not those of the binary protocol"


def _failure(reason: str, *, retryable: bool) -> Struct:
    reason = reason.encode(errors="backslashreplace").decode()  # of paths that are no Unicode
    return wire.FailedAnswer(error=wire.ServiceError(message=reason, retryable=retryable))


def _exception(method: str, number: int, code: int, reason: str) -> bytes:
    error = TApplicationException(code, reason)
    return _frame(method, number, TMessageType.EXCEPTION, error)


def _frame(method: str, number: int, kind: int, body: Any) -> bytes:
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocol(buffer)
    protocol.writeMessageBegin(method, kind, number)
    if isinstance(body, bytes):  # a page, whose bytes are made already
        protocol.writeFieldBegin("success", TType.STRUCT, 0)
        buffer.write(body)
        protocol.writeFieldStop()
    else:
        body.write(protocol)
    found: bytes = buffer.getvalue()
    return found


# --- the methods ---------------------------------------------------------------------------------


def _list_schemas(service: TrinoService, given: Any) -> Answer:
    del given
    return wire.SchemasAnswer(success=list(service.schemas()))


def _list_tables(service: TrinoService, given: Any) -> Answer:
    schema = None if given.schema is None else given.schema.name
    names = [wire.Name(schema=one.schema, table=one.table) for one in service.tables(schema)]
    return wire.TablesAnswer(success=names)


def _get_table(service: TrinoService, given: Any) -> Answer:
    name = _name(given.name)
    columns = service.columns(name)
    if columns is None:
        return wire.TableAnswer(success=wire.FoundTable())
    listed = [
        wire.Column(
            name=shown,
            type=trino_type(one.type).name,
            comment=one.comment,
            hidden=one.is_hidden,
        )
        for shown, one in columns.items()
    ]
    table = wire.Table(name=given.name, columns=listed)
    return wire.TableAnswer(success=wire.FoundTable(table=table))


def _get_splits(service: TrinoService, given: Any) -> Answer:
    name = _name(given.name)
    wanted = _wanted(given.constraint, service.schema(name))
    found = service.splits(name, wanted, max(1, given.most or 0), _token(given))
    entries = [wire.SplitEntry(id=wire.Id(id=one), hosts=[]) for one in found.splits]
    following = None if found.token is None else wire.Id(id=found.token)
    return wire.SplitsAnswer(success=wire.SplitBatch(splits=entries, next=following))


def _get_rows(service: TrinoService, given: Any) -> Answer:
    split = None if given.split is None else given.split.id
    if split is None:
        raise _lacks("its split")
    return service.rows(split, given.columns or [], max(1, given.max_bytes or 0), _token(given))


def _get_index_splits(service: TrinoService, given: Any) -> Answer:
    del service, given
    return _failure("Tables have no keys that Trino may look rows up by.", retryable=False)


_METHODS: Final[Mapping[str, tuple[type[Struct], _Handler]]] = {
    "trinoListSchemaNames": (wire.ListSchemas, _list_schemas),
    "trinoListTables": (wire.ListTables, _list_tables),
    "trinoGetTableMetadata": (wire.GetTable, _get_table),
    "trinoGetSplits": (wire.GetSplits, _get_splits),
    "trinoGetRows": (wire.GetRows, _get_rows),
    "trinoGetIndexSplits": (wire.ListSchemas, _get_index_splits),
}


def _name(given: Any) -> TableName:
    if given is None or given.schema is None or given.table is None:
        raise _lacks("the name of its table")
    return TableName(given.schema, given.table)


def _token(given: Any) -> bytes | None:
    if given.token is None or given.token.token is None:
        return None
    found: bytes | None = given.token.token.id
    if found is None:
        raise _lacks("the bytes of its token")
    return found


def _wanted(constraint: Any, schema: pa.Schema) -> TupleDomain:
    try:
        return predicate_of(constraint, schema)
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        # a struct that lacks a field, or a value that is not of its column's type
        raise RefusedCallError(
            "A call for splits",
            "its constraint has a domain that is incomplete, or not of its column's type",
            "Send what Trino's Thrift connector sends.",
        ) from error


def _lacks(what: str) -> RefusedCallError:
    return RefusedCallError(
        "A call", f"it lacks {what}", "Send what Trino's Thrift connector sends."
    )


# --- connections ---------------------------------------------------------------------------------


class _OpenConnections:
    """The open connections; those that wait for a call, longest first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._guard = threading.Lock()
        self._open: set[_Connection] = set()
        self._waiting: dict[_Connection, None] = {}

    def admit(self, connection: _Connection) -> bool:
        """Whether a connection is let in.

        The one that has waited longest may be ended for it.
        """
        with self._guard:
            if len(self._open) >= self._most:
                longest = next(iter(self._waiting), None)
                if longest is None:
                    return False
                self._drop(longest)
                longest.end()
            self._open.add(connection)
            self._waiting[connection] = None
        return True

    def working(self, connection: _Connection) -> None:
        """Keep a connection while its call is answered."""
        with self._guard:
            self._waiting.pop(connection, None)

    def waiting(self, connection: _Connection) -> None:
        """Take a connection for one that waits, from now on."""
        with self._guard:
            if connection in self._open:
                self._waiting[connection] = None

    def gone(self, connection: _Connection) -> None:
        """Forget a connection."""
        with self._guard:
            self._drop(connection)

    def end(self) -> None:
        """End all."""
        with self._guard:
            for one in self._open:
                one.end()

    def _drop(self, connection: _Connection) -> None:
        self._open.discard(connection)
        self._waiting.pop(connection, None)


class _SilentError(Exception):
    """A client took too long, or went."""


class _Connection(socketserver.BaseRequestHandler):
    """One connection: a call after the other."""

    server: ThriftServer
    request: socket.socket

    def setup(self) -> None:
        """Begin with nothing received."""
        self._received = bytearray()
        self._socket = self.request

    def handle(self) -> None:
        """Answer calls until the client goes, or is silent for too long."""
        server, config = self.server, self.server.config
        if not server.connections.admit(self):
            _log.warning("a connection from %s was one too many", self.client_address)
            return
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if server.tls is not None:
                self._shake_hands(server.tls, config.frame_timeout_s)
            while True:
                frame = self._next_frame(config)
                server.connections.working(self)
                server.calls.answer(frame, partial(self._send, timeout_s=config.frame_timeout_s))
                server.connections.waiting(self)
        except _SilentError:
            return
        except _UNREADABLE as error:
            _log.warning("no call of Thrift from %s: %s", self.client_address, error)
        except OSError as error:  # ssl.SSLError too
            _log.info("the connection from %s ended: %s", self.client_address, error)
        finally:
            server.connections.gone(self)
            # a wrapped socket is another object than the one that the server closes
            self._socket.close()

    def end(self) -> None:
        """Interrupt the connection, from another thread."""
        with contextlib.suppress(OSError):
            # not that of TLS, which says goodbye first
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _shake_hands(self, tls: ssl.SSLContext, timeout_s: float) -> None:
        self._socket.settimeout(timeout_s)
        # wrapped first, so that another thread can end it while hands are shaken
        wrapped = tls.wrap_socket(self._socket, server_side=True, do_handshake_on_connect=False)
        self._socket = wrapped
        wrapped.do_handshake()

    def _next_frame(self, config: TrinoConfig) -> bytes:
        """The next call.

        It may begin as late as a connection may be idle; once it has begun, it has to come soon.
        """
        if not self._received:
            self._receive(1, time.monotonic() + config.idle_timeout_s)
        until = time.monotonic() + config.frame_timeout_s
        self._receive(4, until)
        (size,) = struct.unpack_from(">i", self._received)
        if not 0 < size <= config.max_frame_size:
            raise ValueError(f"a call of {size} bytes; {config.max_frame_size} are allowed")
        self._receive(4 + size, until)
        frame = bytes(memoryview(self._received)[4 : 4 + size])
        del self._received[: 4 + size]
        return frame

    def _receive(self, count: int, until: float) -> None:
        """Wait until so many bytes are there."""
        while len(self._received) < count:
            self._socket.settimeout(_left(until))
            wanted = max(count - len(self._received), 1 << 12)
            found = self._socket.recv(min(wanted, _CHUNK))
            if not found:
                raise _SilentError
            self._received += found

    def _send(self, body: bytes, timeout_s: float) -> None:
        until = time.monotonic() + timeout_s
        head = struct.pack(">i", len(body))
        for part in (head + body,) if len(body) < _CHUNK else (head, body):
            if not isinstance(self._socket, ssl.SSLSocket):
                self._socket.settimeout(_left(until))
                self._socket.sendall(part)  # within the time, all of it
                continue
            rest = memoryview(part)
            while rest:  # sendall of TLS has the time for each piece
                self._socket.settimeout(_left(until))
                rest = rest[self._socket.send(rest[:_CHUNK]) :]


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise _SilentError
    return left


class ThriftServer(socketserver.ThreadingTCPServer):
    """Answers Trino's Thrift connector; each connection has a thread.

    Port 0 takes a free one. Without TLS and certificates of clients, all who reach the port read
    the tables that are served.
    """

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = _BACKLOG

    def __init__(self, service: TrinoService, host: str = "127.0.0.1", port: int = 0) -> None:
        self.config = service.config
        self.calls = _Calls(service, self.config)
        self.tls = tls_of(self.config)
        self.connections = _OpenConnections(self.config.max_connections)
        super().__init__((host, port), _Connection)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        host, port = self.server_address[:2]
        return str(host), int(port)

    @contextmanager
    def running(self) -> Iterator[tuple[str, int]]:
        """Answer in a thread, while it is entered."""
        thread = threading.Thread(
            target=self.serve_forever, args=(_STOP_POLL_S,), name="hudi-trino", daemon=True
        )
        thread.start()
        try:
            yield self.address
        finally:
            self.shutdown()
            thread.join()
            self.server_close()
            self.connections.end()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log the error that ended a connection."""
        del request
        _log.exception("the connection from %s failed", client_address)


def tls_of(config: TrinoConfig) -> ssl.SSLContext | None:
    """How connections are encrypted; ``None`` for plain ones."""
    if config.certificate_file is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with _named(TrinoConfig.certificate_file.key, config.certificate_file):
        # a password is refused, not asked for at a terminal
        context.load_cert_chain(config.certificate_file, config.private_key_file, password=str)
    if config.client_ca_file is not None:
        with _named(TrinoConfig.client_ca_file.key, config.client_ca_file):
            context.load_verify_locations(config.client_ca_file)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@contextmanager
def _named(key: str, path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        hint = (
            "Give a file in PEM that this process may read, and a private key without a password "
            f"that fits the certificate ({TrinoConfig.private_key_file.key})."
        )
        raise InvalidOptionError(key, path, str(reason), hint) from error
