"""One entry-point group whose members are chosen by name.

Finding reads the metadata of distributions and imports nothing of them; only the extension that
is asked for is imported. It is never looked up by an import path: an option or a table's property
that names a Java class of Hudi's means the name in the group that the class maps to.
"""

from __future__ import annotations

import difflib
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import Final, TypeVar, cast

from hudi_core.errors import (
    PluginConflictError,
    PluginLoadError,
    UnknownExtensionError,
)
from hudi_core.extension.guard import Guard, Raised, attempt

# --- the entry points of installed distributions; nothing of them is imported ---------------------


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


# --- groups of entry points -----------------------------------------------------------------------


T = TypeVar("T")

_OWN: Final = "hudi-core"
"""The distribution that this package comes with."""


@dataclass(frozen=True)
class ExtensionPoint:
    """What can be added under one entry-point group.

    ``built_in`` names are in lower case, and no other distribution may provide them. ``java_names``
    maps Hudi's Java classes to names. ``options_prefix`` comes before a member's name and a full
    stop in the names of its options; it is empty where members have none.
    """

    group: str
    kind: str
    built_in: frozenset[str] = frozenset()
    java_names: Mapping[str, str] = field(default_factory=dict)
    options_prefix: str = ""
    find: FindEntryPoints = installed_entry_points

    def name(self, text: str) -> str:
        """Return the name that an option's value means.

        Whether there is such a member is not looked at.

        The text may be in any case, or name a Java class of Hudi's. The ``ValueError`` completes
        the sentence "... cannot be used: ...".
        """
        name = self.find_name(text)
        if name is None:
            names = ", ".join((*self.names(), *self.java_names))
            raise ValueError(
                f"it can be no name of a {self.kind}, which is a letter and up to 31 letters, "
                f"digits, _ and -, and it is none of {names}"
            )
        return name

    def find_name(self, text: str) -> str | None:
        """The name that an option's value means; ``None`` if it is none."""
        known = self.java_names.get(text)
        return folded_name(text) if known is None else known

    def names(self) -> tuple[str, ...]:
        """Return the names of all members, sorted; imports nothing."""
        return tuple(sorted(self.built_in | {name for name, _ in self._entries()}))

    def options_of(self, name: str, options: Mapping[str, str]) -> dict[str, str]:
        """Return a member's own options, without what their names begin with."""
        begin = f"{self.options_prefix}{name}."
        return {
            key.removeprefix(begin): value
            for key, value in options.items()
            if self.options_prefix and key.startswith(begin)
        }

    def owns(self, option: str) -> bool:
        """Whether an option is one of an installed member's own."""
        if not self.options_prefix or not option.startswith(self.options_prefix):
            return False
        name, dot, _ = option.removeprefix(self.options_prefix).partition(".")
        return bool(dot) and any(found == name for found, _ in self._entries())

    def installed(self) -> tuple[InstalledExtension, ...]:
        """Return every claim to a name; imports nothing.

        By name and distribution.
        """
        return installed_claims(self._entries())

    def require(self, name: str) -> None:
        """Refuse a name that no member has, or several; imports nothing.

        A built-in name that another distribution also provides is a :class:`PluginConflictError`.
        """
        self._claims(name)

    def load(self, name: str, base: Callable[..., T]) -> type[T]:
        """Import a member that is not built in, and return its class."""
        claims = self._claims(name)
        if not claims:
            raise ValueError(f"the {self.kind} {name} is built in")
        ((claim, entry),) = claims.items()
        outcome = attempt(entry.load)
        if isinstance(outcome, Raised):
            raise self._not_loaded(claim, outcome.reason) from outcome.error
        found: object = outcome.value
        kind = cast("type[T]", base)
        if not isinstance(found, type) or not issubclass(found, kind):
            raise self._not_loaded(claim, f"{claim.target} is no class derived from {_path(kind)}")
        missing = sorted(getattr(found, "__abstractmethods__", ()))
        if missing:
            raise self._not_loaded(claim, f"{claim.target} lacks {', '.join(missing)}")
        return found

    def make(self, name: str, base: Callable[..., T], how: Callable[[type[T]], T]) -> T:
        """Import a member that is not built in, and make one."""
        found = self.load(name, base)
        return self.guard(name).call("__init__", lambda: how(found))

    def guard(self, name: str) -> Guard:
        """Return the guard of calls into a member."""
        return Guard(name, self.kind)

    def _claims(self, name: str) -> dict[InstalledExtension, EntryPoint]:
        claims = {
            InstalledExtension.of(found, entry): entry
            for found, entry in self._entries()
            if found == name
        }
        owners = sorted(claim.distribution for claim in claims)
        if name in self.built_in:
            owners = [_OWN, *owners]
        if len(owners) > 1:
            raise PluginConflictError(name, owners, kind=self.kind)
        if not owners:
            names = self.names()
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.7)
            raise UnknownExtensionError(
                self.kind, name, names, self.group, near=near[0] if near else None
            )
        return claims

    def _entries(self) -> Iterable[tuple[str, EntryPoint]]:
        return named_entries(self.find(self.group), self.kind, "nothing can ask for")

    def _not_loaded(self, claim: InstalledExtension, reason: str) -> PluginLoadError:
        return PluginLoadError(claim.name, claim.distribution, reason, kind=self.kind)


@contextmanager
def named_by(option: str, text: str) -> Iterator[None]:
    """Add the option's name to the error of an unknown name."""
    try:
        yield
    except UnknownExtensionError as error:
        if error.given is not None:
            raise
        raise error.given_as(option, text) from None


def _path(kind: type[object]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
