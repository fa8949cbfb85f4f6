"""What of a Hive metastore's Thrift interface has to do with locks.

Source: ``hive_metastore.thrift`` of Apache Hive, whose numbers of fields are used here.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

from thrift.Thrift import TApplicationException

from hudi_core.metastore.thrift_calls import Connection, Failures, Interface, Struct

__all__ = ["ACQUIRED", "WAITING", "Failures", "LockService", "NoSuchLock"]

ACQUIRED: Final = 1
WAITING: Final = 2
_EXCLUSIVE: Final = 3
_TABLE: Final = 2


class NoSuchLock(Exception):  # noqa: N818 - Hive's own word for it
    """The metastore does not know the lock, or has taken it away."""


_HIVE: Final = Interface()
_Component: Final = _HIVE.struct(
    "LockComponent", "1: i32 type, 2: i32 level, 3: string dbname, 4: string tablename"
)
_Request: Final = _HIVE.struct(
    "LockRequest", "1: list<LockComponent> component, 3: string user, 4: string hostname"
)
_Id: Final = _HIVE.struct("LockId", "1: i64 lockid")
_HIVE.struct("LockResponse", "1: i64 lockid, 2: i32 state")
_Place: Final = _HIVE.struct("ShowLocksRequest", "1: string dbname, 2: string tablename")
_HIVE.struct(
    "ShowLocksElement", "1: i64 lockid, 5: i32 state, 10: string user, 11: string hostname"
)
_HIVE.struct("ShowLocksResponse", "1: list<ShowLocksElement> locks")


class LockService:
    """Calls of a metastore, each with a connection of its own."""

    def __init__(self, addresses: tuple[tuple[str, int], ...], timeout_s: float) -> None:
        self._addresses, self._timeout_s = addresses, timeout_s

    def lock(self, database: str, table: str, user: str, host: str) -> tuple[int, int]:
        """Ask for an exclusive lock; its number and state."""
        component = _Component(type=_EXCLUSIVE, level=_TABLE, dbname=database, tablename=table)
        request = _Request(component=[component], user=user, hostname=host)
        found = self._call("lock", request, "LockResponse")
        return found.lockid, found.state

    def check(self, lock: int) -> int:
        """The state of a lock; a sign of life as well."""
        state: int = self._call("check_lock", _Id(lockid=lock), "LockResponse").state
        return state

    def heartbeat(self, lock: int) -> None:
        """Give a sign of life."""
        self._call("heartbeat", _Id(lockid=lock), None)

    def unlock(self, lock: int) -> None:
        """Give a lock back, or a request for one."""
        self._call("unlock", _Id(lockid=lock), None)

    def holder(self, database: str, table: str) -> tuple[str, str] | None:
        """User and host of the holder of a table's lock."""
        asked = _Place(dbname=database, tablename=table)
        found = self._call("show_locks", asked, "ShowLocksResponse")
        held = [one for one in found.locks or () if one.state == ACQUIRED]
        return (held[0].user, held[0].hostname) if held else None

    def setting(self, name: str, default: str) -> str:
        """A setting of the metastore's."""
        arguments = {"string name": name, "string defaultValue": default}
        answer = _HIVE.answer("get_config_value", "string")
        return str(self._send("get_config_value", arguments, answer).success)

    def _call(self, method: str, request: Struct, success: str | None) -> Any:
        arguments = {f"{type(request).__name__} rqst": request}
        # whatever it throws says that there is no such lock any more, or no such transaction
        result = self._send(method, arguments, _HIVE.answer(method, success, 3))
        for error in (result.o1, result.o2, result.o3):
            if error is not None:
                raise NoSuchLock(error.message)
        if success is not None and result.success is None:
            raise TApplicationException(TApplicationException.MISSING_RESULT, method)
        return result.success

    def _send(self, method: str, arguments: Mapping[str, object], result: type[Struct]) -> Any:
        request = _HIVE.request(method, arguments)
        with closing(Connection(self._addresses, self._timeout_s)) as connection:
            return connection.call(method, request, result)
