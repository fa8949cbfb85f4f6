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

import contextlib
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import (
    ConnectionLoss,
    KazooException,
    NoNodeError,
    OperationTimeoutError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError

from hudi_core.config.kinds import LockKind
from hudi_core.config.lock import LockConfig
from hudi_core.config.lock_servers import ZookeeperLockConfig
from hudi_core.errors import LockError
from hudi_core.txn.locks.in_process import HeldLock, InProcessLock
from hudi_core.txn.locks.place import LockPlace, required

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


class ZookeeperLock(HeldLock["Turn"]):
    """Excludes all who lock a table through one ZooKeeper.

    ``hosts`` may end with a root, as in ``zk1:2181,zk2:2181/root``; ``path`` is the lock's node.
    After ``session_s`` without a sign the lock goes to the next; ``connection_s`` is the wait for
    an answer. The time to reach a server comes on top of that to take the lock.
    """

    def __init__(
        self, hosts: str, path: str, session_s: float = 60, connection_s: float = 15
    ) -> None:
        super().__init__(InProcessLock(f"/zookeeper/{hosts}{path}"))
        self._hosts, self._path = hosts, path
        self._session_s, self._connection_s = session_s, connection_s

    def _give_back(self, held: Turn) -> None:
        held.end()

    def _left(self, held: Turn) -> float:
        """Seconds until the session may end, as ZooKeeper says now."""
        return held.left()

    def _wait(self, deadline: float, _: float) -> Turn | None:
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


# --- the queue of a lock --------------------------------------------------------------------------


RETRY_S: Final = 0.1
FAILURES: Final = (KazooException, KazooTimeoutError)
"""What a call of the client may end with."""
_NUMBERED: Final = "lock-"
_DATA: Final = "application_id="


class Turn:
    """A place in the queue before the lock, and its session.

    ``patience_s`` is the wait for an answer. ``is_kept``: the lock is held, and the session is to
    last.
    """

    def __init__(self, client: KazooClient, path: str, session_s: float, patience_s: float) -> None:
        self._client, self._path = client, path
        self._session_s, self._patience_s = session_s, patience_s
        self._node = ""
        self._changed = threading.Event()
        self.is_kept = False

    def begin(self) -> None:
        """Take the last place."""
        owner = uuid.uuid4()
        self._client.add_listener(self._notice)
        self._ask("ensure_path", self._path)
        made: str = self._ask(
            "create",
            f"{self._path}/_c_{owner}-{_NUMBERED}",
            f"{_DATA}{owner}".encode(),
            ephemeral=True,
            sequence=True,
        )
        self._node = made.rpartition("/")[2]

    def node_before(self) -> str | None:
        """The node to wait for; ``None`` at the head of the queue."""
        queue = self._queue()
        if self._node not in queue:
            # the session ended, and with it the node
            raise SessionExpiredError
        place = queue.index(self._node)
        return queue[place - 1] if place else None

    def wait_for(self, node: str, seconds: float) -> None:
        """Wait until a node is gone, or the connection changes."""
        self._changed.clear()
        if self._ask("exists", f"{self._path}/{node}", watch=self._notice) is not None:
            self._changed.wait(seconds)

    def keep(self) -> Turn:
        """Let the session last: the lock is held."""
        self.is_kept = True
        return self

    def end(self) -> None:
        """Leave the queue, or give the lock back."""
        # a session that cannot be ended runs out
        with contextlib.suppress(KazooException):
            self._client.stop()
        with contextlib.suppress(KazooException):
            self._client.close()

    def left(self) -> float:
        """Seconds until the session may end, by asking for the node."""
        patience = time.monotonic() + self._session_s / 3
        while (asked := time.monotonic()) < patience:
            try:
                node = self._client.exists_async(f"{self._path}/{self._node}")
                found = node.get(timeout=patience - asked)
            except ConnectionLoss:
                time.sleep(RETRY_S)  # another server may know the same session
                continue
            except FAILURES:
                break
            session = self._client.client_id
            if found is None or session is None or found.ephemeralOwner != session[0]:
                break
            return max(0.0, self._session_s - (time.monotonic() - asked))
        return 0.0

    def describe_first(self) -> str | None:
        """Who is at the head of the queue, as its node says."""
        for node in self._queue()[:1]:
            with contextlib.suppress(NoNodeError):
                data, status = self._ask("get", f"{self._path}/{node}")
                name = data.decode(errors="replace").removeprefix(_DATA)
                held_s = max(0.0, time.time() - status.created)
                return f"{name or 'unknown'}, which queued for it {held_s:.0f} s ago"
        return None

    def _queue(self) -> list[str]:
        """All nodes in Curator's order."""
        nodes: list[str] = self._ask("get_children", self._path)
        return sorted(nodes, key=lambda node: node.rpartition(_NUMBERED)[2])

    def _ask(self, what: str, *arguments: Any, **more: Any) -> Any:
        """Call a method of the client, for a limited time."""
        call = getattr(self._client, f"{what}_async")
        return call(*arguments, **more).get(timeout=self._patience_s)

    def _notice(self, _: object) -> None:
        self._changed.set()
