"""What of a Hive metastore's Thrift interface has to do with locks.

Source: ``hive_metastore.thrift`` of Apache Hive, whose numbers of fields are used here.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

from thrift.Thrift import TApplicationException

from hudi_core.metastore.thrift_calls import (
    I32,
    I64,
    LIST,
    STRING,
    STRUCT,
    TEXT,
    Connection,
    Error,
    Failures,
    Struct,
    of,
    struct,
    structs,
)

__all__ = ["ACQUIRED", "WAITING", "Failures", "LockService", "NoSuchLock"]

ACQUIRED: Final = 1
WAITING: Final = 2
_EXCLUSIVE: Final = 3
_TABLE: Final = 2


class NoSuchLock(Exception):  # noqa: N818 - Hive's own word for it
    """The metastore does not know the lock, or has taken it away."""


_Component: Final = struct(
    "LockComponent",
    (1, I32, "type", None),
    (2, I32, "level", None),
    (3, STRING, "dbname", TEXT),
    (4, STRING, "tablename", TEXT),
)
_Request: Final = struct(
    "LockRequest",
    (1, LIST, "component", structs(_Component)),
    (3, STRING, "user", TEXT),
    (4, STRING, "hostname", TEXT),
)
_Id: Final = struct("LockId", (1, I64, "lockid", None))
_Response: Final = struct("LockResponse", (1, I64, "lockid", None), (2, I32, "state", None))
_Place: Final = struct(
    "ShowLocksRequest",
    (1, STRING, "dbname", TEXT),
    (2, STRING, "tablename", TEXT),
)
_Lock: Final = struct(
    "ShowLocksResponseElement",
    (1, I64, "lockid", None),
    (5, I32, "state", None),
    (10, STRING, "user", TEXT),
    (11, STRING, "hostname", TEXT),
)
_Locks: Final = struct("ShowLocksResponse", (1, LIST, "locks", structs(_Lock)))
_Setting: Final = struct(
    "get_config_value_args",
    (1, STRING, "name", TEXT),
    (2, STRING, "defaultValue", TEXT),
)


class LockService:
    """Calls of a metastore, each with a connection of its own."""

    def __init__(self, addresses: tuple[tuple[str, int], ...], timeout_s: float) -> None:
        self._addresses, self._timeout_s = addresses, timeout_s

    def lock(self, database: str, table: str, user: str, host: str) -> tuple[int, int]:
        """Ask for an exclusive lock; its number and state."""
        component = _Component(type=_EXCLUSIVE, level=_TABLE, dbname=database, tablename=table)
        request = _Request(component=[component], user=user, hostname=host)
        found = self._call("lock", request, _Response)
        return found.lockid, found.state

    def check(self, lock: int) -> int:
        """The state of a lock; a sign of life as well."""
        state: int = self._call("check_lock", _Id(lockid=lock), _Response).state
        return state

    def heartbeat(self, lock: int) -> None:
        """Give a sign of life."""
        self._call("heartbeat", _Id(lockid=lock), None)

    def unlock(self, lock: int) -> None:
        """Give a lock back, or a request for one."""
        self._call("unlock", _Id(lockid=lock), None)

    def holder(self, database: str, table: str) -> tuple[str, str] | None:
        """User and host of the holder of a table's lock."""
        found = self._call("show_locks", _Place(dbname=database, tablename=table), _Locks)
        held = [one for one in found.locks or () if one.state == ACQUIRED]
        return (held[0].user, held[0].hostname) if held else None

    def setting(self, name: str, default: str) -> str:
        """A setting of the metastore's."""
        result = struct("result", (0, STRING, "success", TEXT))
        request = _Setting(name=name, defaultValue=default)
        return str(self._send("get_config_value", request, result).success)

    def _call(self, method: str, request: Struct, answer: type[Struct] | None) -> Any:
        arguments = struct(f"{method}_args", (1, STRUCT, "rqst", of(type(request))))
        # whatever it throws says that there is no such lock any more, or no such transaction
        thrown = [(number, STRUCT, f"o{number}", of(Error)) for number in (1, 2, 3)]
        success = [] if answer is None else [(0, STRUCT, "success", of(answer))]
        result = self._send(method, arguments(rqst=request), struct("result", *success, *thrown))
        for error in (result.o1, result.o2, result.o3):
            if error is not None:
                raise NoSuchLock(error.message)
        if answer is None:
            return None
        if result.success is None:
            raise TApplicationException(TApplicationException.MISSING_RESULT, method)
        return result.success

    def _send(self, method: str, arguments: Struct, result: type[Struct]) -> Any:
        with closing(Connection(self._addresses, self._timeout_s)) as connection:
            return connection.call(method, arguments, result)
