"""Plugins of an older or a later contract than this release has.

What a major contract takes away, plugins of the one before it are still called by:
:data:`FORMER`. What a minor contract adds is ignored where it is not known yet.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from typing import Final

from hudi_core.errors import PluginContractError, PluginContractWarning
from hudi_core.hookspecs import SPI_VERSION, TableFormat
from hudi_core.hookspecs.version import BEFORE_VERSIONS, Version, parse_version
from hudi_core.model.capability import Capability

_OWN: Final = parse_version(SPI_VERSION) or (0, 0)
_OLDEST: Final = _OWN[0] - 1
"""The oldest major contract whose plugins are still called."""
_WARNED: Final[set[str]] = set()


@dataclass(frozen=True, slots=True)
class FormerHook:
    """A hook of former contracts, and what became of it.

    ``major`` is the contract that removed it. ``now`` gives, by the hook that the core calls
    instead, the values of former arguments that it lacks; a :class:`Capability` means whether the
    format declares it.
    """

    name: str
    arguments: tuple[str, ...]
    major: int
    now: Mapping[str, Mapping[str, object]]
    advice: str = field(compare=False)


FORMER: Final = (
    FormerHook(
        "initialize",
        ("meta_client", "view_manager", "create", "rebuild"),
        1,
        {
            "create": {"create": True, "rebuild": Capability.CONVERSION},
            "open": {"create": False, "rebuild": False},
            "rebuild": {"create": True, "rebuild": True},
        },
        "initialize became create, open and rebuild",
    ),
)


_MODEL: Final = "hudi_core.model"
FORMER_NAMES: Final[Mapping[str, tuple[str, str, str]]] = {
    **{
        name: (
            "hudi_core.spi.files",
            name,
            f"import it from hudi_core.spi.files: from hudi_core.spi.files import {name}",
        )
        for name in (
            "Footer",
            "field_id",
            "footer_statistics",
            "leaves",
            "read_footer",
            "read_statistics",
            "require_no_links",
            "table_lister",
        )
    },
    **dict.fromkeys(
        ("FileLister", "RangeSource", "NamedFiles"),
        ("hudi_core.spi", "FileIndex", "FileIndex has taken its place"),
    ),
    "TableMetaClient": (
        "hudi_core.meta_client",
        "TableMetaClient",
        "what hooks get is a MetaClientView",
    ),
    "Timeline": ("hudi_core.timeline.timeline", "Timeline", "take TimelineView"),
    "StorageLister": (
        "hudi_core.view.storage_lister",
        "StorageLister",
        "storage_lister of hudi_core.spi.files makes one",
    ),
    "FormatHost": (
        "hudi_core.plugin.host",
        "FormatHost",
        "load_format of hudi_core.spi.testing makes one",
    ),
    **{
        name: (home, name, "nothing takes its place")
        for name, home in (
            ("ActionInstant", f"{_MODEL}.actions"),
            ("BasePath", f"{_MODEL}.files"),
            ("CleanPartitionMetadata", f"{_MODEL}.actions"),
            ("FORMAT_GROUP", "hudi_core.plugin.registry"),
            ("LogFileName", f"{_MODEL}.files"),
            ("NO_PREVIOUS_COMMIT", f"{_MODEL}.commit"),
            ("OBSERVER_GROUP", "hudi_core.plugin.registry"),
            ("RollbackPartitionMetadata", f"{_MODEL}.actions"),
            ("RunMap", f"{_MODEL}.client"),
            ("SCHEMA_EVOLUTION", f"{_MODEL}.capability"),
            ("StorageOptions", "hudi_core.storage.options"),
            ("pending_publications", "hudi_core.plugin.fenced"),
        )
    },
}
"""Names that ``hudi_core.spi`` had in the contract before: their module, their name there, and what
an author has to change."""
_GONE_NAMES: Final = {
    "TableFormatHooks": "derive the class of the format from TableFormat",
}
"""Names of the contract before for which there is nothing any more."""


def former_name(name: str) -> object:
    """What ``hudi_core.spi`` had by a name in the contract before.

    It is warned of once. ``None`` for a name that it never had.

    Raises
    ------
    ImportError
        There is nothing like it any more; says what to do.
    """
    asked = f"{name} of hudi_core.spi"
    if name in _GONE_NAMES:
        raise ImportError(
            f"{asked} was that of contract {_OLDEST} and is gone: {_GONE_NAMES[name]}",
            name="hudi_core.spi",
        )
    if name not in FORMER_NAMES:
        return None
    module, there, advice = FORMER_NAMES[name]
    warn_once(
        f"{asked} is one of contract {_OLDEST} of table formats, and there until contract "
        f"{_OLDEST + 2}: {advice}.",
        stacklevel=4,
    )
    return getattr(import_module(module), there)


@dataclass(frozen=True, slots=True)
class Contract:
    """The contract for which a plugin is written.

    ``is_derived``: it derives from ``TableFormat``, so that its methods need no marker.
    """

    text: str
    version: Version
    is_derived: bool

    @property
    def is_later(self) -> bool:
        """Whether the plugin may know more than this release."""
        return self.version > _OWN

    def former(self) -> Mapping[str, FormerHook]:
        """The hooks by their names that the contract still had."""
        return {one.name: one for one in FORMER if self.version < (one.major, 0)}

    def behind(self, name: str, former: Sequence[FormerHook], *, is_observer: bool) -> str:
        """The warning of former hooks."""
        advice = "; ".join(one.advice for one in former)
        base = (
            ""
            if is_observer
            else f" Derive the class from hudi_core.spi.TableFormat, say spi_version = "
            f"{SPI_VERSION!r} in it, and leave out @hookimpl."
        )
        return (
            f"The plugin {name!r} is written for contract {self.text} of table formats, and this "
            f"hudi-core has {SPI_VERSION}. It is called as it was, until contract "
            f"{_OLDEST + 2}. To be changed: {advice}.{base}"
        )

    def ahead(self, name: str, unknown: Sequence[str]) -> str:
        """The warning of a later contract, with its unknown names.

        What a derived class has beyond the hooks may be a hook that came later, or a method of its
        own: it is not named.
        """
        named = f", which does not know {', '.join(unknown)}" if unknown else ""
        return (
            f"The plugin {name!r} is written for contract {self.text} of table formats, and this "
            f"hudi-core has {SPI_VERSION}{named}: it works without what came later. A later "
            "hudi-core may know it."
        )


def contract_of(name: str, plugin: object) -> Contract:
    """Return the contract for which a plugin is written."""
    is_derived = isinstance(plugin, TableFormat)
    text = getattr(plugin, "spi_version", None if is_derived else BEFORE_VERSIONS)
    if text is None:
        raise PluginContractError(
            name,
            "it does not say for which contract it is written; its class needs "
            f"spi_version = {SPI_VERSION!r}",
        )
    found = parse_version(text)
    if found is None:
        raise PluginContractError(
            name, f"its spi_version is {text!r}, not the string of a version like {SPI_VERSION!r}"
        )
    if found[0] > _OWN[0]:
        raise PluginContractError(
            name,
            f"it is written for contract {text} of table formats and needs hudi-core >= one that "
            f"has it; hudi-core {version('hudi-core')} has {SPI_VERSION} "
            "(pip install --upgrade hudi-core)",
        )
    if found[0] < _OLDEST:
        raise PluginContractError(
            name,
            f"it is written for contract {text} of table formats, and hudi-core "
            f"{version('hudi-core')} calls plugins of {_OLDEST} to {SPI_VERSION} alone",
        )
    return Contract(str(text), found, is_derived)


def warn_once(message: str, stacklevel: int = 2) -> None:
    """Warn of a plugin, once in a process."""
    if message not in _WARNED:
        warnings.warn(message, PluginContractWarning, stacklevel=stacklevel)
        _WARNED.add(message)  # not before: a filter may make an error of the warning
