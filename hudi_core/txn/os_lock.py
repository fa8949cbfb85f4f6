"""OS locks on open files, which show that owners live.

Such a lock ends with the process that took it, however the process ends, so a process that finds
the file unlocked knows the owner is gone. Works between processes of one machine, and between
machines where the file system passes locks on.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import Final

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
