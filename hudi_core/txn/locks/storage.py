"""A lock between processes that share nothing but an object store (RFC-91).

The lock is one small file, changed by conditional puts only: the store lets one of several writers
through. It is a lease. Its holder renews it, and a holder that is gone loses it when it was not
renewed for a full lease. File and fields are those of Hudi's ``StorageBasedLockProvider``, so
that its writers and these exclude each other::

    .hoodie/.locks/table_lock.json   {"expired": false, "validUntil": <ms>, "owner": <uuid>}

The file is never deleted: giving the lock back marks it expired. It names neither host nor user.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from hudi_core.errors import (
    CorruptMetadataError,
    PathNotFoundError,
    PreconditionFailedError,
    ResourceLimitError,
    StorageError,
)
from hudi_core.model.protocols import Storage
from hudi_core.storage.probes import require_conditional_puts, store_now_ms
from hudi_core.txn.locks.in_process import HeldLock, InProcessLock
from hudi_core.txn.locks.renewal import Renewal

LOCK_PATH: Final = ".hoodie/.locks/table_lock.json"
_DRIFT_MS: Final = 500
"""What the clocks of two writers may differ by; RFC-91."""
_MAX_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class LeaseFile:
    """What the lock file says.

    ``expired``: the holder released the lock. ``valid_until_ms`` is by the holder's clock, since
    the epoch; ``owner`` is unique to one taking of the lock.
    """

    expired: bool
    valid_until_ms: int
    owner: str

    def encode(self) -> bytes:
        """Return the bytes of the file."""
        return json.dumps(
            {"expired": self.expired, "validUntil": self.valid_until_ms, "owner": self.owner}
        ).encode()

    def describe(self, now_s: float) -> str:
        """The holder, and how long its lease lasts by our clock."""
        left_s = self.valid_until_ms / 1000 - now_s
        return f"the writer {self.owner}, whose lease lasts for {left_s:.0f} s"

    @classmethod
    def decode(cls, data: bytes, path: str) -> LeaseFile:
        """The lease in the file."""
        try:
            read: Any = json.loads(data[:_MAX_BYTES])
            expired, until, owner = read["expired"], read["validUntil"], read["owner"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise CorruptMetadataError(path, "it is no lock file", _HINT) from error
        if type(expired) is not bool or type(until) is not int or not isinstance(owner, str):
            raise CorruptMetadataError(path, "it is no lock file", _HINT)
        return cls(expired, until, owner)


_HINT: Final = "Make sure that no process writes the table, and delete the file."


class StorageLock(HeldLock["_Lease"]):
    """Excludes all who lock the table through its store.

    ``storage`` must honour conditional puts. ``renew_s`` is much less than ``lease_s``, so that
    some renewals may fail. A store that ignores the conditions of puts cannot lock
    (:class:`UnsafeStoreError`).
    """

    def __init__(
        self,
        storage: Storage,
        lease_s: float = 300,
        renew_s: float = 30,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(InProcessLock(f"{storage.root}/{LOCK_PATH}"))
        self._storage = storage
        self._lease_s, self._renew_s = lease_s, renew_s
        self._wall_clock = wall_clock
        self._given_back: str | None = None

    def _give_back(self, held: _Lease) -> None:
        self._given_back = held.end()

    def _left(self, held: _Lease) -> float:
        return held.renewal.left()

    def _wait(self, deadline: float, timeout_s: float) -> _Lease | None:
        require_conditional_puts(self._storage)
        return super()._wait(deadline, timeout_s)

    def _take(self) -> _Lease | None:
        """Take the lock if it is free now."""
        mine, self._given_back = self._given_back, None
        if mine is not None:
            # as it was given back, unless another writer has changed it since
            lease = self._new_lease()
            if lease.start(mine):
                return lease
        tag: str | None = None
        with contextlib.suppress(PathNotFoundError):
            data, tag = self._storage.version(LOCK_PATH)
            found = LeaseFile.decode(data, f"{self._storage.root}/{LOCK_PATH}")
            if not self._is_free(found):
                self._owner = found.describe(self._wall_clock())
                return None
        lease = self._new_lease()
        return lease if lease.start(tag) else None

    def _new_lease(self) -> _Lease:
        return _Lease(self._storage, self._lease_s, self._renew_s, self._wall_clock)

    def _is_free(self, found: LeaseFile) -> bool:
        if found.expired:
            return True
        if self._wall_clock() * 1000 <= found.valid_until_ms + _DRIFT_MS:
            return False
        # past its end by our clock, which may be wrong by hours: whether anybody renewed it is seen
        # by the store's
        status = self._storage.head(LOCK_PATH)
        age_ms = store_now_ms(self._storage) - status.modified_ms if status else 0
        return age_ms > self._lease_s * 1000 + _DRIFT_MS


class _Lease:
    """A held lock, and its renewal."""

    def __init__(
        self, storage: Storage, lease_s: float, renew_s: float, wall_clock: Callable[[], float]
    ) -> None:
        self._storage, self._lease_s = storage, lease_s
        self._wall_clock = wall_clock
        self._owner = str(uuid.uuid4())
        self._tag = ""
        self.renewal = Renewal(lease_s, renew_s, self._renew)

    def start(self, tag: str | None) -> bool:
        """Put the lease where the file has this tag.

        ``False`` when another was first.
        """
        since = time.monotonic()
        try:
            self._put(tag)
        except PreconditionFailedError:
            return False
        try:
            self.renewal.start(since)
        except ResourceLimitError:
            self.end()  # no thread would renew it
            raise
        return True

    def end(self) -> str | None:
        """Stop renewing and mark the lock as free.

        Returns the tag of the file that says so.
        """
        self.renewal.stop()
        # a lease that cannot be marked expired runs out; who holds it by then is not known
        with contextlib.suppress(StorageError):
            if self.renewal.left() > 0:
                data = LeaseFile(True, self._valid_until(), self._owner).encode()
                return self._storage.compare_and_set(LOCK_PATH, data, self._tag)
        return None

    def _renew(self) -> bool:
        try:
            self._put(self._tag)
        except PreconditionFailedError:
            return False  # taken over
        return True

    def _put(self, tag: str | None) -> None:
        data = LeaseFile(False, self._valid_until(), self._owner).encode()
        self._tag = self._storage.compare_and_set(LOCK_PATH, data, tag)

    def _valid_until(self) -> int:
        return int((self._wall_clock() + self._lease_s) * 1000)
