"""The server: framed calls of Thrift's binary protocol, over TCP."""

from __future__ import annotations

import logging
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TException, TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer

from hudi_core.errors import HudiError, MetastoreError, ResourceLimitError, StorageError
from hudi_core.metastore.thrift_calls import Struct
from hudi_core.read.connector.handles import TableName
from hudi_core.trino import wire
from hudi_core.trino.blocks import trino_type
from hudi_core.trino.constraints import predicate_of
from hudi_core.trino.service import TrinoService

_log = logging.getLogger(__name__)
_LARGEST_CALL: Final = 64 << 20
"""Bytes: a split as JSON takes some thousands, a constraint of very many values some millions."""
_RETRYABLE: Final = (StorageError, MetastoreError, ResourceLimitError, OSError)

Answer: TypeAlias = bytes | Struct
_Handler: TypeAlias = Callable[[TrinoService, Any], Answer]


def answer(service: TrinoService, frame: bytes) -> bytes:
    """The frame that answers the frame of a call.

    Raises
    ------
    TException, EOFError
        It is no call.
    """
    call = TBinaryProtocol(
        TMemoryBuffer(frame), string_length_limit=len(frame), container_length_limit=len(frame)
    )
    method, _, number = call.readMessageBegin()
    found = _METHODS.get(method)
    if found is None:
        unknown = TApplicationException(
            TApplicationException.UNKNOWN_METHOD, f"There is no method {method}"
        )
        return _frame(method, number, TMessageType.EXCEPTION, unknown)
    arguments, handle = found
    given = arguments()
    given.read(call)
    return _frame(method, number, TMessageType.REPLY, _answered(service, given, handle))


def _answered(service: TrinoService, given: Any, handle: _Handler) -> Answer:
    try:
        return handle(service, given)
    except HudiError as error:
        reason, retryable = str(error), isinstance(error, _RETRYABLE)
    except OSError as error:
        reason, retryable = str(error), True
    except Exception as error:  # noqa: BLE001 - a connection outlives what one call meets
        _log.exception("a call failed")
        reason, retryable = f"{type(error).__name__}: {error}", False
    failure = wire.ServiceError(message=reason, retryable=retryable)
    return wire.FailedAnswer(error=failure)


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
    wanted = predicate_of(given.constraint, service.schema(name))
    found = service.splits(name, wanted, max(1, given.most), _token(given))
    entries = [wire.SplitEntry(id=wire.Id(id=one), hosts=[]) for one in found.splits]
    following = None if found.token is None else wire.Id(id=found.token)
    return wire.SplitsAnswer(success=wire.SplitBatch(splits=entries, next=following))


def _get_rows(service: TrinoService, given: Any) -> Answer:
    return service.rows(given.split.id, given.columns, max(1, given.max_bytes), _token(given))


def _get_index_splits(service: TrinoService, given: Any) -> Answer:
    del service, given
    message = "Tables have no keys that Trino may look rows up by"
    return wire.FailedAnswer(error=wire.ServiceError(message=message, retryable=False))


_METHODS: Final[Mapping[str, tuple[type[Struct], _Handler]]] = {
    "trinoListSchemaNames": (wire.ListSchemas, _list_schemas),
    "trinoListTables": (wire.ListTables, _list_tables),
    "trinoGetTableMetadata": (wire.GetTable, _get_table),
    "trinoGetSplits": (wire.GetSplits, _get_splits),
    "trinoGetRows": (wire.GetRows, _get_rows),
    "trinoGetIndexSplits": (wire.ListSchemas, _get_index_splits),
}


def _name(given: Any) -> TableName:
    return TableName(given.schema, given.table)


def _token(given: Any) -> bytes | None:
    if given.token is None or given.token.token is None:
        return None
    found: bytes = given.token.token.id
    return found


# --- connections ---------------------------------------------------------------------------------


class _Connection(socketserver.StreamRequestHandler):
    """One connection: a call after the other."""

    server: ThriftServer
    disable_nagle_algorithm = True

    def handle(self) -> None:
        """Answer calls until the client goes."""
        while len(head := self.rfile.read(4)) == 4:
            (size,) = struct.unpack(">i", head)
            if not 0 < size <= _LARGEST_CALL:
                _log.warning("a call of %s bytes from %s", size, self.client_address)
                return
            frame = self.rfile.read(size)
            if len(frame) < size:
                return
            try:
                found = answer(self.server.service, frame)
            except (TException, EOFError, UnicodeDecodeError, struct.error) as error:
                _log.warning("no call of Thrift from %s: %s", self.client_address, error)
                return
            self.wfile.write(struct.pack(">i", len(found)))
            self.wfile.write(found)


class ThriftServer(socketserver.ThreadingTCPServer):
    """Answers Trino's Thrift connector; each connection has a thread.

    Parameters
    ----------
    service
        What answers.
    host, port
        Where it listens; port 0 for a free one. There is neither encryption nor authentication in
        the protocol: who reaches the port reads the tables.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, service: TrinoService, host: str = "127.0.0.1", port: int = 0) -> None:
        self.service = service
        super().__init__((host, port), _Connection)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        host, port = self.server_address[:2]
        return str(host), int(port)

    @contextmanager
    def running(self) -> Iterator[tuple[str, int]]:
        """Answer in a thread, while it is entered."""
        thread = threading.Thread(target=self.serve_forever, name="hudi-trino", daemon=True)
        thread.start()
        try:
            yield self.address
        finally:
            self.shutdown()
            thread.join()
            self.server_close()
