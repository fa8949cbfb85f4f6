"""The lock of Hudi's ``HiveMetastoreBasedLockProvider``.

An exclusive lock on a table that need not exist, in the metastore's own lock manager: ``lock`` asks
for it and ``check_lock`` again while it waits in the queue; ``heartbeat`` keeps it, as the
metastore takes locks away that it does not hear of for its ``hive.txn.timeout``; ``unlock`` gives
it back. The metastore has to have its transaction tables. Connections are plain ones: SASL
(Kerberos) and TLS are not spoken here.
"""

from __future__ import annotations

import contextlib
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Final, NamedTuple

from thrift.Thrift import TApplicationException

from hudi_core.config.kinds import LockKind
from hudi_core.config.lock import LockConfig
from hudi_core.config.lock_servers import HiveLockConfig
from hudi_core.errors import LockError
from hudi_core.metastore.thrift_calls import Connection, Failures, Interface, Struct, addresses_of
from hudi_core.txn.locks.in_process import HeldLock, InProcessLock
from hudi_core.txn.locks.place import LockPlace, required
from hudi_core.txn.locks.renewal import Renewal

_USER: Final = "hudi-core"
_ANSWER_S: Final = 20.0
_LEASE_KEY: Final = "hive.txn.timeout"
_LEASE_S: Final = 300.0
"""Hive's default."""
_DURATION: Final = re.compile(r"(\d+)\s*([a-z]*)")
_UNITS: Final = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def lock_of(_: LockPlace, config: LockConfig) -> HiveLock:
    """The lock of a table in a Hive metastore."""
    options, kind = config.hive, LockKind.HIVE_METASTORE
    uris = required(HiveLockConfig.uris.key, options.uris, kind)
    database = required(HiveLockConfig.database.key, options.database, kind)
    table = required(HiveLockConfig.table.key, options.table, kind)
    return HiveLock(uris, database, table, options.heartbeat_ms / 1000)


class _Hold(NamedTuple):
    """A lock of the metastore's, by its number."""

    number: int
    renewal: Renewal


class HiveLock(HeldLock[_Hold]):
    """Excludes all who lock a table through one Hive metastore.

    ``heartbeat_s`` is the most time between two signs of life. If the metastore does not answer
    when the lock is released, it gives it to another after a while.
    """

    def __init__(
        self, uris: tuple[str, ...], database: str, table: str, heartbeat_s: float = 60
    ) -> None:
        super().__init__(InProcessLock(f"/hive/{','.join(uris)}/{database}.{table}"))
        self._metastore = LockService(addresses_of(uris), _ANSWER_S)
        self._uris, self._database, self._table = uris, database, table
        self._heartbeat_s = heartbeat_s
        self._lease_s = 0.0

    def _give_back(self, held: _Hold) -> None:
        held.renewal.stop()
        with self._translated(), contextlib.suppress(NoSuchLock):
            self._metastore.unlock(held.number)

    def _left(self, held: _Hold) -> float:
        """Seconds the lock lasts, as the metastore says now."""
        if held.renewal.left() == 0:
            return 0.0
        asked = time.monotonic()
        try:
            if self._metastore.check(held.number) != ACQUIRED:
                return 0.0
        except NoSuchLock:
            return 0.0
        except Failures:
            return held.renewal.left()
        return max(0.0, self._lease_s - (time.monotonic() - asked))

    def _wait(self, deadline: float, _: float) -> _Hold | None:
        with self._translated():
            if not self._lease_s:
                found = self._metastore.setting(_LEASE_KEY, f"{_LEASE_S:.0f}s")
                self._lease_s = _seconds(found)
            return self._queue(deadline)

    def _queue(self, deadline: float) -> _Hold | None:
        """Queue up; again where the metastore has forgotten it."""
        pause = self.first_pause_s
        while True:
            asked = time.monotonic()
            lock, state = self._metastore.lock(
                self._database, self._table, _USER, str(uuid.uuid4())
            )
            held = None
            try:
                with contextlib.suppress(NoSuchLock):
                    while state == WAITING and (left := deadline - asked) > 0:
                        time.sleep(min(pause, left))
                        pause = min(2 * pause, self.longest_pause_s)
                        asked = time.monotonic()
                        state = self._metastore.check(lock)
                    if state == ACQUIRED:
                        held = _Hold(lock, self._kept(lock, asked))
            finally:
                if held is None:
                    self._owner = self._holder() or self._owner
                    with contextlib.suppress(NoSuchLock):
                        self._metastore.unlock(lock)
            if held is not None or time.monotonic() >= deadline:
                return held

    def _kept(self, lock: int, asked: float) -> Renewal:
        def renew() -> bool:
            with self._translated():
                try:
                    self._metastore.heartbeat(lock)
                except NoSuchLock:
                    return False
            return True

        renewal = Renewal(self._lease_s, min(self._heartbeat_s, self._lease_s / 6), renew)
        renewal.start(asked)
        return renewal

    def _holder(self) -> str | None:
        with contextlib.suppress(*Failures):
            found = self._metastore.holder(self._database, self._table)
            return None if found is None else f"the user {found[0]} at {found[1]}"
        return None

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (NoSuchLock, *Failures) as error:
            raise LockError(
                f"The lock of {self._database}.{self._table} in the Hive metastore at "
                f"{', '.join(self._uris)} cannot be reached: {error}",
                "Check hoodie.write.lock.hivemetastore.uris, and that the metastore has its "
                "transaction tables and asks for no Kerberos.",
            ) from error


def _seconds(text: str) -> float:
    """Seconds of a duration such as ``300s`` or ``5min``."""
    found = _DURATION.match(text.strip().lower())
    if found is None:
        return _LEASE_S
    units = (seconds for unit, seconds in _UNITS.items() if found[2].startswith(unit))
    return int(found[1]) * next(units, 1.0)


# --- the part of Hive's interface about locks -----------------------------------------------------

# Source: ``hive_metastore.thrift`` of Apache Hive, whose numbers of fields are used here.


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
