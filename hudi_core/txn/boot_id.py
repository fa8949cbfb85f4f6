"""An anonymous id of this machine's running kernel."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

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
