"""Options of an open table that others have changed meanwhile."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_core.config.options import GivenOptions
from hudi_core.config.stored_table import stored_config
from hudi_core.config.table import TableConfig
from hudi_core.services.convert import without_format
from hudi_core.services.relocate import without_placement
from hudi_core.services.rewrite_keys import without_key_storage
from hudi_core.services.upgrade import CHANGED_OPTIONS


def still_given(
    options: Mapping[str, str], before: TableConfig, properties: Mapping[str, str]
) -> GivenOptions:
    """The options that hold for a table as it is now.

    Those with which it was created or opened agreed with what it was then. Where another process
    has changed that by a conversion, a move, a rewriting of keys or an upgrade, they say what it
    was and not what a user wants: they are left out, as by a change of its own. ``before`` is
    what the table was, ``properties`` are what is stored with it now.
    """
    now, kept = stored_config(properties), dict(options)
    if now.table_format != before.table_format:
        kept = without_format(kept)
    if now.placement != before.placement:
        kept = without_placement(kept)
    if _keys(now) != _keys(before):
        kept = without_key_storage(kept)
    if now.version != before.version:
        kept = {name: kept[name] for name in kept.keys() - CHANGED_OPTIONS}
    return GivenOptions(kept)


def _keys(config: TableConfig) -> tuple[object, ...]:
    """Where a table keeps its record keys."""
    return (
        config.virtual_keys,
        config.keeps_virtual_keys,
        config.populate_meta_fields,
        config.keys_differ_by_file,
    )
