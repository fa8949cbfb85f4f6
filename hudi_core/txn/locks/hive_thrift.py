"""What of a Hive metastore's Thrift interface has to do with locks.

Source: ``hive_metastore.thrift`` of Apache Hive, whose numbers of fields stand here.
"""

from __future__ import annotations

from typing import Any, Final

from thrift.protocol.TBase import TBase
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TException, TMessageType, TType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

ACQUIRED: Final = 1
WAITING: Final = 2
_EXCLUSIVE: Final = 3
_TABLE: Final = 2
_MAX_TEXT: Final = 1_000_000
_MAX_ITEMS: Final = 100_000

Failures: Final = (TException, OSError, EOFError)
"""What a call may end with, besides :class:`NoSuchLock`."""


class NoSuchLock(Exception):  # noqa: N818 - Hive's own word for it
    """The metastore does not know the lock, or has taken it away."""


class _Struct(TBase):  # type: ignore[misc]  # thrift has no types
    """A struct; a value that is missing is not sent."""

    thrift_spec: tuple[Any, ...] = ()

    def __init__(self, **values: Any) -> None:
        for field in filter(None, self.thrift_spec):
            setattr(self, field[2], values.get(field[2]))


def _struct(name: str, *fields: tuple[int, int, str, Any]) -> type[_Struct]:
    numbered = {field[0]: (*field, None) for field in fields}
    spec = tuple(numbered.get(number) for number in range(max(numbered) + 1))
    return type(name, (_Struct,), {"thrift_spec": spec})


def _of(struct: type[_Struct]) -> tuple[Any, ...]:
    return (struct, struct.thrift_spec)


_Component: Final = _struct(
    "LockComponent",
    (1, TType.I32, "type", None),
    (2, TType.I32, "level", None),
    (3, TType.STRING, "dbname", "UTF8"),
    (4, TType.STRING, "tablename", "UTF8"),
)
_Request: Final = _struct(
    "LockRequest",
    (1, TType.LIST, "component", (TType.STRUCT, _of(_Component), False)),
    (3, TType.STRING, "user", "UTF8"),
    (4, TType.STRING, "hostname", "UTF8"),
)
_Id: Final = _struct("LockId", (1, TType.I64, "lockid", None))
_Response: Final = _struct(
    "LockResponse", (1, TType.I64, "lockid", None), (2, TType.I32, "state", None)
)
_Place: Final = _struct(
    "ShowLocksRequest",
    (1, TType.STRING, "dbname", "UTF8"),
    (2, TType.STRING, "tablename", "UTF8"),
)
_Lock: Final = _struct(
    "ShowLocksResponseElement",
    (1, TType.I64, "lockid", None),
    (5, TType.I32, "state", None),
    (10, TType.STRING, "user", "UTF8"),
    (11, TType.STRING, "hostname", "UTF8"),
)
_Locks: Final = _struct(
    "ShowLocksResponse", (1, TType.LIST, "locks", (TType.STRUCT, _of(_Lock), False))
)
_Error: Final = _struct("Error", (1, TType.STRING, "message", "UTF8"))
_Setting: Final = _struct(
    "get_config_value_args",
    (1, TType.STRING, "name", "UTF8"),
    (2, TType.STRING, "defaultValue", "UTF8"),
)


class Metastore:
    """Calls of a metastore, each with a connection of its own.

    Parameters
    ----------
    addresses
        Host and port of each; the first that answers is asked.
    timeout_s
        Seconds to wait for an answer.
    """

    def __init__(self, addresses: tuple[tuple[str, int], ...], timeout_s: float) -> None:
        self._addresses, self._timeout_s = addresses, timeout_s

    def lock(self, database: str, table: str, user: str, host: str) -> tuple[int, int]:
        """Ask for an exclusive lock; its number, and how it stands."""
        component = _Component(type=_EXCLUSIVE, level=_TABLE, dbname=database, tablename=table)
        request = _Request(component=[component], user=user, hostname=host)
        found = self._call("lock", request, _Response)
        return found.lockid, found.state

    def check(self, lock: int) -> int:
        """How a lock stands; a sign of life as well."""
        state: int = self._call("check_lock", _Id(lockid=lock), _Response).state
        return state

    def heartbeat(self, lock: int) -> None:
        """Give a sign of life."""
        self._call("heartbeat", _Id(lockid=lock), None)

    def unlock(self, lock: int) -> None:
        """Give a lock back, or a request for one."""
        self._call("unlock", _Id(lockid=lock), None)

    def holder(self, database: str, table: str) -> tuple[str, str] | None:
        """User and host of whoever holds the lock of a table."""
        found = self._call("show_locks", _Place(dbname=database, tablename=table), _Locks)
        held = [one for one in found.locks or () if one.state == ACQUIRED]
        return (held[0].user, held[0].hostname) if held else None

    def setting(self, name: str, default: str) -> str:
        """A setting of the metastore's."""
        result = _struct("result", (0, TType.STRING, "success", "UTF8"))
        request = _Setting(name=name, defaultValue=default)
        return str(self._send("get_config_value", request, result).success)

    def _call(self, method: str, request: _Struct, answer: type[_Struct] | None) -> Any:
        arguments = _struct(f"{method}_args", (1, TType.STRUCT, "rqst", _of(type(request))))
        # whatever it throws says that there is no such lock any more, or no such transaction
        thrown = [(number, TType.STRUCT, f"o{number}", _of(_Error)) for number in (1, 2, 3)]
        success = [] if answer is None else [(0, TType.STRUCT, "success", _of(answer))]
        result = self._send(method, arguments(rqst=request), _struct("result", *success, *thrown))
        for error in (result.o1, result.o2, result.o3):
            if error is not None:
                raise NoSuchLock(error.message)
        if answer is None:
            return None
        if result.success is None:
            raise TApplicationException(TApplicationException.MISSING_RESULT, method)
        return result.success

    def _send(self, method: str, arguments: _Struct, result: type[_Struct]) -> Any:
        for place, (host, port) in enumerate(self._addresses, 1):
            socket = TSocket(host, port)
            socket.setTimeout(self._timeout_s * 1000)
            transport = TBufferedTransport(socket)
            try:
                transport.open()
            except TTransportException:
                if place == len(self._addresses):
                    raise
                continue
            try:
                return _exchange(_protocol(transport), method, arguments, result)
            finally:
                transport.close()
        raise TTransportException(TTransportException.NOT_OPEN, "no address")


def _protocol(transport: TBufferedTransport) -> TBinaryProtocol:
    return TBinaryProtocol(
        transport, string_length_limit=_MAX_TEXT, container_length_limit=_MAX_ITEMS
    )


def _exchange(
    protocol: TBinaryProtocol, method: str, arguments: _Struct, result: type[_Struct]
) -> Any:
    protocol.writeMessageBegin(method, TMessageType.CALL, 0)
    arguments.write(protocol)
    protocol.writeMessageEnd()
    protocol.trans.flush()
    _, kind, _ = protocol.readMessageBegin()
    if kind == TMessageType.EXCEPTION:
        error = TApplicationException()
        error.read(protocol)
        raise error
    found = result()
    found.read(protocol)
    protocol.readMessageEnd()
    return found
