"""Places in the queue of a lock in ZooKeeper."""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, KazooException, NoNodeError, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError

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
