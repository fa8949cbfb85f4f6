"""The files and connections that this process has open."""

from __future__ import annotations

import os
from contextlib import suppress


def open_files() -> set[str]:
    """Descriptors with what they are of: a path, or ``socket:[inode]``."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the listing itself
            found.add(f"file {number} {os.readlink(f'/proc/self/fd/{number}')}")
    return found
