"""The entry points of installed distributions; nothing of them is imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, entry_points

FindEntryPoints = Callable[[str], Iterable[EntryPoint]]
"""Returns the entry points of a group."""


def installed_entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, of all installed distributions."""
    places = tuple((path, _changed_ns(path or os.curdir)) for path in sys.path)
    return _found(group, places, tuple(map(id, sys.meta_path)))


def distribution_of(entry: EntryPoint) -> str:
    """Return the name of the distribution that an entry point belongs to."""
    return name_and_version(entry.dist)[0] if entry.dist else "an unnamed distribution"


@lru_cache(maxsize=64)
def name_and_version(distribution: Distribution) -> tuple[str, str]:
    """Metadata of a distribution, read once: entry points found again have it."""
    return distribution.name, distribution.version


@lru_cache(maxsize=16)
def _found(
    group: str, places: tuple[tuple[str, int], ...], finders: tuple[int, ...]
) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group.

    A file of every distribution is read for them.

    Installing or removing a distribution changes the folder that it is in, and so the
    arguments.
    """
    del places, finders
    return tuple(entry_points(group=group))


def _changed_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
