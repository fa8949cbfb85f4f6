"""The typed front of a table's format: one method per hook.

Every open table has its own host with its own plugin manager, which holds the table's one format
and the installed observers; :mod:`hudi_core.plugin.calls` has what happens around a call. Several
formats of a table are one to everybody else: :mod:`hudi_core.plugin.several`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hudi_core.config.table_parsers import split_format_names
from hudi_core.model.capability import Capability, FormatCapabilities
from hudi_core.model.client import MetaClientView
from hudi_core.model.instant import Instant
from hudi_core.plugin.calls import HookCalls
from hudi_core.plugin.capability import require
from hudi_core.plugin.format_options import (
    check_options,
    given_options,
    stored_options,
)
from hudi_core.plugin.hook_methods import HookMethods
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.plugin.several import SeveralFormats


class FormatHost(HookMethods):
    """One table's format, and the observers around it.

    Every method named like a hook calls that hook; :mod:`hudi_core.hookspecs` says when, under
    which lock, and what it does; ``view_manager`` is supplied here. Each may raise the project's
    errors as the format raised them, ``PluginHookError`` for any other error of the format,
    ``PluginContractError`` for an answer of the wrong kind, and ``UnsupportedCapabilityError`` when
    the format does not declare the ability. So may what they return: factories, timelines, listers,
    locks and strategies.

    Parameters
    ----------
    plugin
        The format.
    observers
        Observers by name; the first one is outermost. One that breaks the contract is logged and
        left out.
    name
        Name of the format, in lower case; of several, all of them.
    parts
        The hosts of several formats, of which ``plugin`` makes one.

    Raises
    ------
    PluginContractError
        The plugin breaks the contract in a way that can be seen at load.
    """

    def __init__(
        self,
        plugin: object,
        observers: Mapping[str, object] | None = None,
        *,
        name: str,
        parts: Sequence[FormatHost] = (),
    ) -> None:
        super().__init__(HookCalls(name, plugin, observers or {}))
        self.name = name
        self._several = plugin if isinstance(plugin, SeveralFormats) else None
        self._parts = tuple(parts)

    @property
    def parts(self) -> tuple[FormatHost, ...]:
        """The host of each format, in the order of the table."""
        return self._parts or (self,)

    @classmethod
    def load(cls, registry: FormatRegistry, name: str) -> FormatHost:
        """Load a format and the installed observers for one table.

        Parameters
        ----------
        registry
            Where to look.
        name
            Name of the format, compared without regard to case; or several, with commas.

        Raises
        ------
        UnknownTableFormatError, PluginConflictError, PluginLoadError, InvalidOptionError
            See :meth:`FormatRegistry.load`.
        PluginContractError
            The plugin breaks the contract.
        """
        names = split_format_names(name)
        if len(names) > 1:
            parts = {one: cls(registry.load(one), name=one) for one in names}
            return cls(
                SeveralFormats(parts),
                registry.load_observers(),
                name=",".join(names),
                parts=tuple(parts.values()),
            )
        plugin = registry.load(name)
        return cls(plugin, registry.load_observers(), name=name.lower())

    def close(self) -> None:
        """Close the format, once; it is not called again.

        Optional: it happens as soon as the host, and what the format returned, are garbage.

        Raises
        ------
        PluginHookError, HudiError
            The format failed.
        """
        self.calls.close()

    # --- of several formats ----------------------------------------------------------------------

    def holders(self, meta_client: MetaClientView, instant: Instant) -> tuple[str, ...]:
        """Names of the formats whose current lineage holds an instant."""
        if self._several is not None:
            return self._several.holders(meta_client, instant)
        held = self.find_publication(meta_client, instant)
        return () if held is None else (self.name,)

    def lacking(self, meta_client: MetaClientView, instant: Instant) -> str:
        """Names of the formats that lack a pending instant, for messages."""
        if self._several is None:
            return self.name
        held = self._several.holders(meta_client, instant)
        return ", ".join(part.name for part in self.parts if part.name not in held) or self.name

    # --- what the format can do ------------------------------------------------------------------

    @property
    def capabilities(self) -> FormatCapabilities:
        """What the format declares."""
        return self.calls.capabilities

    def require(self, *needed: Capability) -> None:
        """Refuse what the format does not declare.

        To be called before the first file is written.

        Raises
        ------
        UnsupportedCapabilityError
            Names what is missing.
        """
        require(self.name, self.calls.capabilities, needed)

    def check_options(self, options: Mapping[str, str]) -> None:
        """Refuse, or warn of, a user's options of the format.

        Parameters
        ----------
        options
            All options of the user's, as text.

        Raises
        ------
        InvalidOptionError
            One cannot be used.
        """
        for part in self.parts:
            given = given_options(part.name, options)
            declared = part.get_options() if given else None
            if declared is not None:
                check_options(part.name, declared, given)

    def stored_options(self, options: Mapping[str, str]) -> dict[str, str]:
        """The properties by which a new table keeps options of the format."""
        found: dict[str, str] = {}
        for part in self.parts:
            given = given_options(part.name, options)
            declared = part.get_options() if given else None
            if declared is not None:
                found |= stored_options(part.name, declared, given)
        return found
