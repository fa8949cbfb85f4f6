"""The lock of Hudi's ``ZookeeperBasedLockProvider``: a queue of nodes in ZooKeeper.

Hudi takes Curator's ``InterProcessMutex``. Who wants the lock makes an ephemeral sequential
node below the lock's own::

    <base_path>/<lock_key>/_c_<uuid>-lock-<number of ten digits>   "application_id=<owner>"

The lowest number behind ``lock-`` holds the lock; each other one waits for the node before its own
to go. A node goes with the session that made it, however its process ends. ``kazoo`` has such a
recipe, too, which orders other names of nodes, so that it and Curator do not exclude each other.

Each hold has a session of its own, which ends with it: what an error may have left in ZooKeeper
goes with the session.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, OperationTimeoutError, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError

from hudi_core.config.kinds import LockKind
from hudi_core.config.lock import LockConfig
from hudi_core.config.lock_servers import ZookeeperLockConfig
from hudi_core.errors import LockError
from hudi_core.txn.locks.in_process import InProcessLock
from hudi_core.txn.locks.place import LockPlace, required
from hudi_core.txn.locks.zookeeper_queue import FAILURES, RETRY_S, Turn

_IMPLICIT_FOLDER: Final = "/tmp/"  # noqa: S108 - of nodes, and Hudi's
_IMPLICIT_KEY: Final = "lock_key"


_Passing: Final = (
    ConnectionLoss,
    OperationTimeoutError,
    SessionExpiredError,
    KazooTimeoutError,
)


def lock_of(place: LockPlace, config: LockConfig) -> ZookeeperLock:
    """The lock of a table in ZooKeeper."""
    options, kind = config.zookeeper, config.provider or LockKind.ZOOKEEPER
    hosts = required(ZookeeperLockConfig.url.key, options.url, kind)
    if kind is LockKind.ZOOKEEPER_IMPLICIT:
        path = f"{_IMPLICIT_FOLDER}{place.hashed_path}/{_IMPLICIT_KEY}"
    else:
        base = required(ZookeeperLockConfig.base_path.key, options.base_path, kind)
        path = f"{base}/{place.name_for(ZookeeperLockConfig.lock_key.key, options.lock_key)}"
    return ZookeeperLock(
        with_port(hosts, options.port),
        path,
        options.session_ms / 1000,
        options.connection_ms / 1000,
    )


def with_port(hosts: str, port: int | None) -> str:
    """Give the servers of a connect string a port that have none."""
    if port is None:
        return hosts
    servers, slash, root = hosts.partition("/")
    named = (
        one if ":" in one.rpartition("]")[2] else f"{one}:{port}" for one in servers.split(",")
    )
    return ",".join(named) + slash + root


class ZookeeperLock:
    """Excludes all who lock a table through one ZooKeeper.

    ``hosts`` may end with a root, as in ``zk1:2181,zk2:2181/root``; ``path`` is the lock's node.
    After ``session_s`` without a sign the lock goes to the next; ``connection_s`` is the wait for
    an answer.
    """

    def __init__(
        self, hosts: str, path: str, session_s: float = 60, connection_s: float = 15
    ) -> None:
        self._hosts, self._path = hosts, path
        self._session_s, self._connection_s = session_s, connection_s
        # threads are served without a session for each
        self._threads = InProcessLock(f"/zookeeper/{hosts}{path}")
        self._turn: Turn | None = None
        self._owner: str | None = None

    def try_lock(self, timeout_s: float) -> bool:
        """Take the lock within ``timeout_s`` seconds, else return ``False``.

        ``False`` as well if this lock is held already. The time to reach a server comes on top.
        """
        deadline = time.monotonic() + max(timeout_s, 0.0)
        if not self._threads.try_lock(timeout_s):
            self._owner = self._threads.owner()
            return False
        try:
            self._turn = self._wait(deadline)
        finally:
            if self._turn is None:
                self._threads.unlock()
        return self._turn is not None

    def unlock(self) -> None:
        """Release the lock, if the calling thread holds it."""
        if not self._threads.is_held:
            return
        turn, self._turn = self._turn, None
        try:
            if turn is not None:
                turn.end()
        finally:
            self._threads.unlock()

    def lease_left(self) -> float:
        """Seconds until the session may end, as ZooKeeper says now.

        0 when not held.
        """
        turn = self._turn
        return turn.left() if turn is not None else 0.0

    def owner(self) -> str | None:
        """Who held the lock when it was last waited for."""
        return self._owner

    @property
    def excludes_processes(self) -> bool:
        """True."""
        return True

    def _wait(self, deadline: float) -> Turn | None:
        """Queue up; again where the session is lost meanwhile."""
        while True:
            try:
                with self._queued() as turn:
                    while (before := turn.node_before()) is not None:
                        self._owner = turn.describe_first()
                        left = deadline - time.monotonic()
                        if left <= 0:
                            return None
                        turn.wait_for(before, left)
                    return turn.keep()
            except FAILURES as error:
                is_passing = isinstance(error, _Passing)
                if not is_passing or time.monotonic() + RETRY_S >= deadline:
                    raise self._refusal(str(error) or type(error).__name__) from error
                time.sleep(RETRY_S)

    @contextmanager
    def _queued(self) -> Iterator[Turn]:
        client = KazooClient(hosts=self._hosts, timeout=self._session_s)
        try:
            client.start(timeout=self._connection_s)
        except KazooTimeoutError as error:
            raise self._refusal("no server answers") from error
        turn = Turn(client, self._path, self._session_s, self._connection_s)
        try:
            turn.begin()
            yield turn
        finally:
            if not turn.is_kept:
                turn.end()

    def _refusal(self, why: str) -> LockError:
        return LockError(
            f"The lock {self._path} of ZooKeeper at {self._hosts} cannot be taken: {why}",
            "Check hoodie.write.lock.zookeeper.url, and that its servers can be reached.",
            path=self._path,
        )
