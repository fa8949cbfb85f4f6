"""The entry points of installed distributions; nothing of them is imported."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import Final

FindEntryPoints = Callable[[str], Iterable[EntryPoint]]
"""Returns the entry points of a group."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InstalledExtension:
    """What a distribution registers in a group.

    Nothing of it has been imported. ``name`` is in lower case; ``target`` is ``module:attribute``,
    as the entry point names it.
    """

    name: str
    distribution: str
    version: str
    target: str

    @classmethod
    def of(cls, name: str, entry: EntryPoint) -> InstalledExtension:
        """The claim of an entry point to a name."""
        version = name_and_version(entry.dist)[1] if entry.dist else ""
        return cls(name, distribution_of(entry), version, entry.value)


def named_entries(
    entries: Iterable[EntryPoint], kind: str, reason: str
) -> Iterator[tuple[str, EntryPoint]]:
    """The entry points of a group, by names in lower case.

    One that cannot be asked for is logged, with the ``reason``, and left out.
    """
    for entry in entries:
        name = folded_name(entry.name)
        if name is not None:
            yield name, entry
        else:
            _log.warning(
                "distribution %s registers the %s %r, a name that %s",
                distribution_of(entry),
                kind,
                entry.name,
                reason,
            )


def installed_claims(
    entries: Iterable[tuple[str, EntryPoint]],
) -> tuple[InstalledExtension, ...]:
    """Every claim to a name, by name and distribution; imports nothing."""
    claims = {InstalledExtension.of(name, entry) for name, entry in entries}
    return tuple(sorted(claims, key=lambda claim: (claim.name, claim.distribution)))


def folded_name(text: str) -> str | None:
    """A name in lower case; ``None`` if it can be none."""
    # lower() makes ASCII of a few other letters, which must not pass for a known name
    name = text.lower() if text.isascii() else ""
    return name if _NAME.fullmatch(name) else None


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
