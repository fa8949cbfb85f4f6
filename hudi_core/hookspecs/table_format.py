"""The base class of table formats, and the list of its hooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from hudi_core.hookspecs.about import RefusalCalls, RefusalHooks
from hudi_core.hookspecs.marks import Hook, hooks_of
from hudi_core.hookspecs.metadata import MetadataCalls, MetadataHooks
from hudi_core.hookspecs.services import ServiceCalls, ServiceHooks
from hudi_core.hookspecs.writes import WriteCalls, WriteHooks


class TableFormat(RefusalHooks, MetadataHooks, WriteHooks, ServiceHooks):
    """The base class of table formats; :mod:`hudi_core.hookspecs` is its contract.

    A format overrides the hooks that it has something to say to, and needs no marker for that. An
    optional hook answers for a format that has nothing to say; one that only some abilities need is
    called of no other format; a required one that is missing is named when the format is loaded.

    Attributes
    ----------
    spi_version
        The contract for which the format is written, as a literal: ``spi_version = "1.0"``. Every
        format says it; by this a later core knows what the format cannot know.
    """

    spi_version: ClassVar[str]


HOOKS: Final[Mapping[str, Hook]] = {
    one.name: one
    for owner in (RefusalHooks, MetadataHooks, WriteHooks, ServiceHooks)
    for one in hooks_of(owner)
}
"""Every hook by its name, in the order of the contract."""


class FormatCalls(RefusalCalls, MetadataCalls, WriteCalls, ServiceCalls):
    """The hooks of a format as methods of its host."""
