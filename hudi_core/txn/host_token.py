"""A word for this machine as it is running now, which names nobody."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

_PARTS: Final = ("/etc/machine-id", "/proc/sys/kernel/random/boot_id")


@cache
def host_token() -> str | None:
    """Return a hash of the machine's id and the id of its current boot.

    Two processes with the same token run on one kernel, so that each sees the other's file locks.
    ``None`` where the system does not tell.
    """
    try:
        ids = [Path(part).read_text(encoding="ascii").strip() for part in _PARTS]
    except (OSError, UnicodeDecodeError):
        return None
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()[:32]
