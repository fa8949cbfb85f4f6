"""Heartbeats: files that show which writers are alive.

The file is ``.hoodie/.heartbeat/<instant>``, as in Hudi, which looks at its time of change alone.
Two more things are in it here:

* on local paths its writer holds a lock of the operating system on it, and says on which machine. A
  writer that died there is known to be dead at once, and one that was merely stopped is never taken
  for dead;
* the interval it promises, so that a reader with a shorter one does not bury it alive.

Where there is no such lock the file's age decides, measured by the store's own clock.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from hudi_core.engine.base import start_thread
from hudi_core.errors import PathNotFoundError, PreconditionFailedError, StorageError
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import Storage
from hudi_core.storage.disk import translated
from hudi_core.storage.location import parse_location
from hudi_core.storage.probes import store_now_ms

FOLDER: Final = ".hoodie/.heartbeat"
SERVICE_SIGN: Final = ".service"
"""Ends the names of heartbeats of services: no instant has it, and a listing is enough to know
them; see :mod:`hudi_core.txn.table_lock`."""
_MAX_BYTES: Final = 4096
_MAX_INTERVAL_MS: Final = 3_600_000
_CLOCK_STEP_MS: Final = 1000
"""What some stores round times of change to."""


def heartbeat_path(instant: InstantTime) -> str:
    """Return the path of an instant's heartbeat, relative to the table."""
    return f"{FOLDER}/{instant}"


class Heartbeat:
    """The heartbeat of one writer, from its own thread."""

    def __init__(self, storage: Storage, instant: InstantTime, interval_ms: int) -> None:
        self._storage = storage
        self._path = heartbeat_path(instant)
        self._beat = _Beat(uuid.uuid4().hex, interval_ms)
        self.interval_s = interval_ms / 1000
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._held: HeldFile | None = None
        self._tag = ""
        self._process = os.getpid()
        self._lost = False
        self._signed_at = 0.0

    @property
    def is_lost(self) -> bool:
        """Whether another removed or replaced the heartbeat.

        This writer was taken for dead.
        """
        return self._lost

    @property
    def is_fresh(self) -> bool:
        """Whether the last sign is too young for a missed one."""
        is_beating = not (self._lost or self._stop.is_set())
        return is_beating and _now() - self._signed_at < self.interval_s

    def start(self) -> None:
        """Give the first sign and go on until :meth:`stop`."""
        began = _now()
        self._storage.put_if_absent(self._path, self._beat.encode())
        self._signed_at = began
        try:
            self._held = self._hold()
            if self._held is not None and self._held.is_locked:
                # not before: a process that finds the boot id without the lock takes us for dead
                self._beat.host = boot_id()
                self._held.overwrite(self._beat.encode())
            name = f"heartbeat-{self._path.rpartition('/')[2]}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            start_thread(self._thread)
        except BaseException:
            self._give_up()
            raise

    def stop(self, others: Sequence[str] = ()) -> None:
        """End the thread, give the lock back and remove the file.

        May be called more than once and without :meth:`start`. In a process forked since it has no
        effect, for the heart is the parent's.
        """
        if os.getpid() != self._process:
            return
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._give_up(others)

    def cease(self) -> None:
        """End the thread and unlock; the file stays, as if it died."""
        if os.getpid() != self._process:
            return
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._held is not None:
            self._held.close()
            self._held = None

    def _give_up(self, others: Sequence[str] = ()) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None
        # a file that stays is one of a dead writer, which the next rollback of the instant removes;
        # what the writer has done meanwhile must not fail for it
        with contextlib.suppress(StorageError):
            self._storage.discard([*others, *([] if self._lost else [self._path])])

    def _hold(self) -> HeldFile | None:
        path = _local_path(self._storage, self._path)
        if path is None:
            return None
        with translated(path):
            return hold(path)

    def _run(self) -> None:
        while not self._stop.wait(self.interval_s) and not self._lost:
            self._beat.number += 1
            # a sign that does not get through is a miss, and misses are allowed for
            with contextlib.suppress(StorageError, OSError):
                self._give_sign()

    def _give_sign(self) -> None:
        began = _now()
        if self._held is not None:
            self._held.overwrite(self._beat.encode())
            self._lost = self._held.is_deleted
            self._signed_at = began
            return
        if not self._tag:
            self._take_up()  # not at the start: most writes are over before their second sign
            if self._lost:
                return
        data = self._beat.encode()
        try:
            # never a plain put: it would bring back the file of an instant that was rolled back
            self._tag = self._storage.compare_and_set(self._path, data, self._tag)
            self._signed_at = began
        except PreconditionFailedError:
            self._take_up()

    def _take_up(self) -> None:
        """Continue from the stored heartbeat, if it is still ours.

        An earlier one may have got there unanswered.
        """
        try:
            data, tag = self._storage.version(self._path)
        except PathNotFoundError:
            self._lost = True
            return
        if _Beat.decode(data).writer == self._beat.writer:
            self._tag = tag
        else:
            self._lost = True


def is_alive(storage: Storage, instant: InstantTime, interval_ms: int, misses: int) -> bool:
    """Whether the writer of a pending instant is at work.

    The writer's own interval counts where it is longer than ``interval_ms``; ``misses`` signs may
    be missing. A :class:`StorageError` means that nothing is known.
    """
    path = heartbeat_path(instant)
    found = storage.head(path)
    if found is None:
        return False
    try:
        beat = _Beat.decode(storage.read(path, _MAX_BYTES))
        local = _local_path(storage, path)
        held = is_held(local) if local is not None else None
    except (PathNotFoundError, FileNotFoundError):
        return False  # removed meanwhile, which only its writer or a rollback does
    if held:
        return True
    if held is False and beat.host is not None and beat.host == boot_id():
        return False
    promised = max(interval_ms, min(beat.interval_ms, _MAX_INTERVAL_MS))
    age = store_now_ms(storage) - found.modified_ms
    return age <= promised * (misses + 1) + _CLOCK_STEP_MS


def is_of_other_engine(storage: Storage, instant: InstantTime) -> bool:
    """Whether another engine gives a heartbeat, whose files are empty."""
    try:
        beat = _Beat.decode(storage.read(heartbeat_path(instant), _MAX_BYTES))
    except (PathNotFoundError, FileNotFoundError):
        return False
    return not beat.writer


def is_of_this_boot(storage: Storage, instant: InstantTime) -> bool:
    """Whether the writer ran on this machine since its start.

    If so, whatever the writer put on local disks is there, flushed or not. Object stores keep what
    they have taken in any case.
    """
    if _local_path(storage, "") is None:
        return True
    try:
        beat = _Beat.decode(storage.read(heartbeat_path(instant), _MAX_BYTES))
    except PathNotFoundError:
        return False
    return beat.host is not None and beat.host == boot_id()


def remove_heartbeat(storage: Storage, instant: InstantTime) -> None:
    """Delete a dead writer's heartbeat, if any."""
    storage.discard([heartbeat_path(instant)])


@dataclass(slots=True)
class _Beat:
    """Content of a heartbeat: writer, interval, machine and counter.

    The machine only if the file is locked.
    """

    writer: str = ""
    interval_ms: int = 0
    host: str | None = None
    number: int = 0

    def encode(self) -> bytes:
        """Return JSON of constant length, for overwriting in place."""
        text = json.dumps(
            {
                "writer": self.writer,
                "interval_ms": self.interval_ms,
                "host": self.host,
                "number": self.number,
            }
        )
        return text.ljust(254).encode() + b"\n"

    @classmethod
    def decode(cls, data: bytes) -> _Beat:
        """The heartbeat in ``data``; Hudi's own are empty."""
        try:
            read: Any = json.loads(data)
        except (ValueError, RecursionError):
            return cls()
        if not isinstance(read, dict):
            return cls()
        writer, interval, host = read.get("writer"), read.get("interval_ms"), read.get("host")
        return cls(
            writer if isinstance(writer, str) else "",
            interval if type(interval) is int else 0,
            host if isinstance(host, str) else None,
        )


def _now() -> float:
    """Seconds of a clock that runs while the machine is suspended."""
    clock: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def _local_path(storage: Storage, path: str) -> str | None:
    location = parse_location(storage.root)
    return os.path.join(location.key, path) if location.is_local else None


# --- locks of the operating system on open files --------------------------------------------------

# Such a lock ends with the process that took it, however the process ends, so a process that finds
# the file unlocked knows the owner is gone. Works between processes of one machine, and between
# machines where the file system passes locks on.


_PATIENCE_S: Final = 2.0
_POLL_S: Final = 0.01


class HeldFile:
    """An open, exclusively locked file; see :func:`hold`.

    Locked where the file system has locks.
    """

    def __init__(self, descriptor: int, is_locked: bool) -> None:
        self._descriptor = descriptor
        self.is_locked = is_locked
        _held.add(self)

    @property
    def is_deleted(self) -> bool:
        """Whether the file has lost its name since it was opened."""
        return os.fstat(self._descriptor).st_nlink == 0

    def overwrite(self, data: bytes) -> None:
        """Replace the file's first bytes, and with them its time of change."""
        os.pwrite(self._descriptor, data, 0)

    def close(self) -> None:
        """Give the lock back."""
        _held.discard(self)
        os.close(self._descriptor)


_held: Final[set[HeldFile]] = set()


def _close_in_child() -> None:
    # a child keeps its parent's locks with its copies of the descriptors, and may outlive it
    for held in list(_held):
        with contextlib.suppress(OSError):
            held.close()


os.register_at_fork(after_in_child=_close_in_child)


def hold(path: str) -> HeldFile:
    """Open an existing file, locked while this process lives.

    Or as long as it wants.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    return HeldFile(descriptor, _lock(descriptor))


def _lock(descriptor: int) -> bool:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # a process that checks whether the file is held holds it meanwhile
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        except OSError:
            return False  # no locks here
        else:
            return True


def is_held(path: str) -> bool | None:
    """Whether a process holds a file's lock; ``None`` if unknown."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    else:
        return False
    finally:
        os.close(descriptor)


# --- this start of this machine -------------------------------------------------------------------


_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@cache
def boot_id() -> str | None:
    """Return a hash of the kernel's boot id, or ``None``.

    Two processes with the same token run on one kernel, so that each sees the other's file locks.
    The machine's own id adds nothing to it, and containers often have none. ``None`` where the
    system does not have it.
    """
    try:
        drawn = _BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return hashlib.sha256(drawn.encode()).hexdigest()[:32]
