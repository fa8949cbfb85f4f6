"""The lock of Hudi's ``FileSystemBasedLockProvider``: a file.

The file exists while the lock is held. Who makes the file holds the lock, and deletes it to give it
back. Hudi knows nothing of the holder but the age of the file: with an expiry another writer's old
file may be deleted, without one it stays until it is deleted by hand. Writers of this project
do better among themselves: the file has their mark, and its holder keeps it locked by the operating
system, which distinguishes a live holder from a dead one.

On local disks Hudi looks for the file and then makes it, in two steps; and closing a Hudi
writer deletes the file, held by it or not. So a holder looks whether the file is still its own
before each step that others would see (:meth:`HudiFileLock.lease_left`).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import math
import os
import stat
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

import filelock

from hudi_core.engine.base import start_thread
from hudi_core.errors import LockError
from hudi_core.storage.location import parse_location
from hudi_core.txn.locks.in_process import HeldLock, InProcessLock, canonical_path

# --- a lock between the processes that share a file system ----------------------------------------


_POLL_S: Final = 0.02


class FileLock(HeldLock[filelock.BaseFileLock]):
    """Excludes other processes by an OS lock on a file.

    The system gives the lock back when its holder ends, however it ends. The file itself stays: a
    lock file that is removed can be locked twice.

    ``folder`` is by default ``.hoodie/.locks`` of the table. It may serve many tables, as the name
    of the file is made from the table's path.
    """

    def __init__(self, base_path: str, folder: str | None = None) -> None:
        table = canonical_path(base_path)
        if folder is None:
            self.path = os.path.join(table, ".hoodie", ".locks", "table.lock")
        else:
            name = hashlib.sha256(table.encode("utf-8", "surrogateescape")).hexdigest()[:32]
            self.path = os.path.join(parse_location(folder).key, f"table-{name}.lock")
        # the system's lock alone would do, but threads are served faster without polling
        super().__init__(InProcessLock(self.path))

    def lease_left(self) -> float:
        """Return infinity: the lock lasts as long as its holder."""
        return math.inf

    def owner(self) -> str | None:
        """The process that has the file locked; the file names none."""
        return f"the process of this machine that has {self.path} locked"

    def _give_back(self, held: filelock.BaseFileLock) -> None:
        held.release()

    def _wait(self, deadline: float, _: float) -> filelock.BaseFileLock | None:
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            lock = filelock.FileLock(
                self.path,
                thread_local=False,
                poll_interval=_POLL_S,
                fallback_to_soft=False,
                preserve_lock_file=True,
            )
            with contextlib.suppress(filelock.Timeout):
                lock.acquire(timeout=max(deadline - time.monotonic(), 0.0))
                return lock
        except (OSError, NotImplementedError) as error:
            raise LockError(
                f"{self.path} cannot be locked: {error}",
                "Check the permissions. On a file system without locks, name a local folder that "
                "all writers share in hoodie.write.lock.filesystem.path.",
                path=self.path,
            ) from error
        return None


# --- the lock of Hudi's provider ------------------------------------------------------------------


_NAME: Final = "lock"
_CHECKSUM: Final = ".lock.crc"
"""What Hadoop keeps beside the file on local disks."""
_MARK: Final = "hudi-core"
_MAX_BYTES: Final = 65_536
_SETTLE_S: Final = 0.05
"""Within this time after giving the lock back Hudi deletes the file once more."""


class HudiFileLock(HeldLock["_Held"]):
    """Excludes Hudi's writers with ``FileSystemBasedLockProvider``, and our own.

    ``folder`` is local, by default ``.hoodie`` of the table. Tables that share a folder share the
    lock, as in Hudi. Others delete a file whose writer gives no sign of life for ``expire_s`` (0:
    never); this class renews its own file.
    """

    first_pause_s = 0.02
    longest_pause_s = 0.5

    def __init__(self, base_path: str, folder: str | None = None, expire_s: float = 0) -> None:
        table = canonical_path(base_path)
        self._own = FileLock(base_path, folder)
        super().__init__(self._own)
        place = os.path.join(table, ".hoodie") if folder is None else parse_location(folder).key
        self.path = os.path.join(place, _NAME)
        self._checksum = os.path.join(place, _CHECKSUM)
        # made where the other lock keeps its file, under a name that only its holder uses
        name = hashlib.sha256(table.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self._new = os.path.join(os.path.dirname(self._own.path), f".{_NAME}-{name}")
        self._expire_s = expire_s
        self._has_waited = False

    def owner(self) -> str | None:
        """What the file says now of who made it, and when."""
        with contextlib.suppress(OSError):
            file = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                return _named(os.read(file, _MAX_BYTES), os.fstat(file).st_mtime)
            finally:
                os.close(file)
        return self._own.owner()

    def _give_back(self, held: _Held) -> None:
        held.end()

    def _left(self, held: _Held) -> float:
        """Infinity while the file is this holder's, else 0."""
        return math.inf if held.is_intact() else 0.0

    def _wait(self, deadline: float, timeout_s: float) -> _Held | None:
        self._has_waited = False
        with _translated(self.path):
            return super()._wait(deadline, timeout_s)

    def _take(self) -> _Held | None:
        """Take the lock if it is free now."""
        held = self._made()
        if held is not None and self._has_waited:
            # Hudi has just given it back
            time.sleep(_SETTLE_S)
            if not held.is_intact():
                held.end()
                held = None
        self._has_waited = True
        return held

    def _made(self) -> _Held | None:
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        held = _Held.make(self._new, self.path, self._expire_s)
        if held is None and self._remove_dead():
            held = _Held.make(self._new, self.path, self._expire_s)
        return held

    def _remove_dead(self) -> bool:
        """Delete the file if its writer is dead, or it expired.

        ``True`` when it is gone.
        """
        try:
            found = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return True
        try:
            status = os.fstat(found)
            if not stat.S_ISREG(status.st_mode) or not _locked(found):
                return False  # its holder is one of ours, and lives
            is_old = 0 < self._expire_s < time.time() - status.st_mtime
            if not (is_old or _is_ours(os.read(found, _MAX_BYTES))):
                return False
            if _same(self.path, status):
                for path in (self.path, self._checksum):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(path)
            return True
        finally:
            os.close(found)


class _Held:
    """The file of one holder, renewed by a thread where files expire."""

    def __init__(self, path: str, file: int, size: int, expire_s: float) -> None:
        self._path, self._file, self._size = path, file, size
        self._interval_s = expire_s / 10
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        if expire_s > 0:
            self._thread = threading.Thread(target=self._renew, name="lock-file", daemon=True)
            start_thread(self._thread)

    @classmethod
    def make(cls, new: str, path: str, expire_s: float) -> _Held | None:
        """Create the file, whole and locked; ``None`` if it exists."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)  # of a writer that died
        file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            content = _content()
            os.write(file, content)
            if _locked(file):
                os.link(new, path)
                return cls(path, file, len(content), expire_s)
        except FileExistsError:
            pass
        except BaseException:
            os.close(file)
            raise
        finally:
            os.unlink(new)
        os.close(file)
        return None

    def is_intact(self) -> bool:
        """Whether the file is there and still this holder's."""
        status = os.fstat(self._file)
        return status.st_size == self._size and _same(self._path, status)

    def end(self) -> None:
        """Delete the file, unless another writer has it by now."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        # the work under the lock is done; who waits for a file that stays finds its holder dead
        with contextlib.suppress(OSError):
            if self.is_intact():
                os.unlink(self._path)
        # a child that was forked meanwhile has the file open, too
        fcntl.flock(self._file, fcntl.LOCK_UN)
        os.close(self._file)

    def _renew(self) -> None:
        while not self._stop.wait(self._interval_s):
            with contextlib.suppress(OSError):
                os.utime(self._file)


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _same(path: str, status: os.stat_result) -> bool:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (status.st_dev, status.st_ino)


def _content() -> bytes:
    """Content of the file in Hudi's fields; names neither host nor user."""
    now = datetime.now().astimezone()
    fields = {
        "lockCreateTime": f"{now:%Y-%m-%d %H:%M:%S}.{now.microsecond // 1000:03d}",
        "lockThreadName": _MARK,
        "lockStacksInfo": [],
        "owner": str(uuid.uuid4()),
    }
    return json.dumps(fields, indent=2).encode()


def _named(content: bytes, modified: float) -> str:
    since = datetime.fromtimestamp(modified).astimezone().isoformat(timespec="seconds")
    if _is_ours(content):
        return f"the writer {json.loads(content)['owner']}, last heard of {since}"
    return f"a writer of Hudi since {since}"


def _is_ours(content: bytes) -> bool:
    try:
        fields: Any = json.loads(content)
        return bool(fields["lockThreadName"] == _MARK and fields["owner"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


@contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LockError(
            f"{path} cannot be made: {error}",
            "Check the permissions, and that the file system has hard links and locks; or name a "
            "local folder that all writers share in hoodie.write.lock.filesystem.path.",
            path=path,
        ) from error
