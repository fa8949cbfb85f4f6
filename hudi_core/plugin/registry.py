"""Finds installed plugins by the entry points of their distributions.

Finding reads the metadata of distributions and imports nothing of them; only the format that a
table names is imported, and the observers.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from importlib.metadata import EntryPoint, PackageNotFoundError, requires
from typing import Final

from hudi_core.config.table_keys import TableKeys
from hudi_core.errors import PluginConflictError, PluginLoadError, UnknownTableFormatError
from hudi_core.extension.guard import Raised, attempt
from hudi_core.extension.registry import (
    FindEntryPoints,
    InstalledExtension,
    distribution_of,
    installed_claims,
    installed_entry_points,
    named_entries,
)
from hudi_core.hookspecs import TableFormat
from hudi_core.plugin.calls import log_unusable
from hudi_core.plugin.versions import warn_once

Claims = dict[InstalledExtension, EntryPoint]

FORMAT_GROUP: Final = "hudi.table_formats"
OBSERVER_GROUP: Final = "hudi.observers"
_OWN: Final = "hudi-core"
"""The distribution that this package comes with; the default format comes with it, too."""
_DISTRIBUTION: Final = re.compile(r"hudi-(?P<name>[a-z0-9_]+)-format(?![\w.-])")


class FormatRegistry:
    """The table formats and observers that are installed.

    Parameters
    ----------
    find
        Returns the entry points of a group; those of all installed distributions by default.
    """

    def __init__(self, find: FindEntryPoints | None = None) -> None:
        self._find: FindEntryPoints = find or installed_entry_points

    def installed(self) -> tuple[InstalledExtension, ...]:
        """Return every claim to a format name; imports nothing.

        By name and distribution.
        """
        return installed_claims(self._formats())

    def names(self) -> tuple[str, ...]:
        """Return the names of the installed formats, sorted; imports nothing."""
        return tuple(sorted({name for name, _ in self._formats()}))

    def load(self, name: str) -> object:
        """Import a format and return its plugin object.

        A class is called to make one.

        Parameters
        ----------
        name
            Name of the format, compared without regard to case.

        Raises
        ------
        InvalidOptionError
            The text cannot be the name of a format.
        UnknownTableFormatError
            No distribution provides it.
        PluginConflictError
            Several do.
        PluginLoadError
            Its module cannot be imported, or the class cannot be called.
        """
        claims = self._claims(name)
        if len(claims) > 1:
            owners = sorted(claim.distribution for claim in claims)
            raise PluginConflictError(next(iter(claims)).name, owners)
        ((claim, entry),) = claims.items()
        outcome = attempt(lambda: _make(entry))
        if isinstance(outcome, Raised):
            raise PluginLoadError(claim.name, claim.distribution, outcome.reason) from outcome.error
        return outcome.value

    def claims(self, name: str) -> tuple[InstalledExtension, ...]:
        """Return every claim to a name, at least one; imports nothing.

        Raises
        ------
        InvalidOptionError
            The text cannot be the name of a format.
        UnknownTableFormatError
            No distribution provides it.
        """
        return tuple(self._claims(name))

    def load_observers(self) -> dict[str, object]:
        """Import the installed observers; return them by name and distribution.

        One that cannot be imported is logged and left out: an observer never decides whether a
        table can be used.
        """
        found: dict[str, object] = {}
        for entry in self._find(OBSERVER_GROUP):
            label = f"{entry.name} of {distribution_of(entry)}"
            outcome = attempt(lambda entry=entry: _make(entry))  # type: ignore[misc]
            if isinstance(outcome, Raised):
                log_unusable(label, "cannot be loaded", outcome.error)
            else:
                found[label] = outcome.value
        return dict(sorted(found.items()))

    def _claims(self, name: str) -> Claims:
        name = TableKeys.table_format.parse_as(TableKeys.table_format.key, name)
        claims = {
            InstalledExtension.of(found, entry): entry
            for found, entry in self._formats()
            if found == name
        }
        if name == TableKeys.table_format.default:
            claims = _without_rivals(claims)
        if not claims:
            ours = _formats_of_the_project()
            package = _OWN if name == TableKeys.table_format.default else f"hudi-{name}-format"
            near = difflib.get_close_matches(name, sorted({*self.names(), *ours}), n=1, cutoff=0.7)
            raise UnknownTableFormatError(
                name, self.names(), package, known=name in ours, near=near[0] if near else None
            )
        return claims

    def _formats(self) -> Iterable[tuple[str, EntryPoint]]:
        return named_entries(self._find(FORMAT_GROUP), "table format", "no table can have")


def _without_rivals(
    claims: Claims,
) -> Claims:
    """The claims to the default format, without those of other distributions.

    One that is installed for something else would make every such table unreadable.
    """
    own = {claim: entry for claim, entry in claims.items() if claim.distribution == _OWN}
    if not own:
        return claims
    for rival in sorted(one.distribution for one in claims if one not in own):
        warn_once(
            f"The distribution {rival} registers a table format by the name "
            f"{TableKeys.table_format.default!r}, which is that of {_OWN}, and is not asked. "
            f"Uninstall {rival}, or have its authors choose another name."
        )
    return own


def _formats_of_the_project() -> set[str]:
    """Names of the project's own formats, installed or not.

    These are the default one and those that the extras of this distribution ask for, so that none
    is named here.
    """
    try:
        asked_for = requires(_OWN) or []
    except PackageNotFoundError:  # run from a folder, not installed
        asked_for = []
    found = (_DISTRIBUTION.match(one) for one in asked_for)
    return {
        TableKeys.table_format.default,
        *(match["name"] for match in found if match is not None),
    }


def _make(entry: EntryPoint) -> object:
    loaded: object = entry.load()
    if isinstance(loaded, TableFormat):
        raise TypeError(f"{entry.value} is an object; name its class, of which each table gets one")
    return loaded() if isinstance(loaded, type) else loaded
