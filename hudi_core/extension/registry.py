"""One entry-point group whose members are chosen by name.

Finding reads the metadata of distributions and imports nothing of them; only the extension that
is asked for is imported. It is never looked up by an import path: an option or a table's property
that names a Java class of Hudi's means the name in the group that the class maps to.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import Final, TypeVar, cast

from hudi_core.errors import (
    PluginConflictError,
    PluginLoadError,
    UnknownExtensionError,
)
from hudi_core.extension.entry_points import (
    FindEntryPoints,
    InstalledExtension,
    folded_name,
    installed_claims,
    installed_entry_points,
    named_entries,
)
from hudi_core.extension.guard import Guard, Raised, attempt

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
