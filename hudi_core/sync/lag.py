"""Entries of metastores that are behind their table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from hudi_core.config.sync import SyncConfig
from hudi_core.errors import HudiError, MetastoreError
from hudi_core.model.difference import Difference
from hudi_core.services.mending.differences import Source, TableValidation
from hudi_core.sync.result import EntryChange, SyncedEntry
from hudi_core.sync.tool import sync_table
from hudi_core.table_handle import OpenTable

_WORDS: Final = {
    EntryChange.CREATED: "not there",
    EntryChange.CHANGED: "those of an earlier state",
    EntryChange.RECREATED: "those of something else",
}


def with_entries(
    found: TableValidation, opened: OpenTable, options: Mapping[str, str]
) -> TableValidation:
    """A validation that compares the table's entries as well.

    In the metastores that options name for syncs after commits. A sync repairs what it finds.
    """
    differences, checked = list(found.differences), dict(found.checked)
    skipped = dict(found.skipped)
    for tool in SyncConfig.wanted(options):
        try:
            planned = sync_table(opened, tool, options, dry_run=True)
        except MetastoreError as error:
            skipped[f"entries in {tool}"] = error.what
            continue
        except HudiError as error:
            differences.append(
                Difference(Source.METASTORE, f"the table's entry in {tool}", error.hint, error.what)
            )
            continue
        name = f"entries in {planned.address}"
        checked[name] = checked.get(name, 0) + len(planned.entries)
        for entry in planned.entries:
            differences += _differences(entry)
    return replace(found, differences=tuple(differences), checked=checked, skipped=skipped)


def _differences(entry: SyncedEntry) -> list[Difference]:
    name, found = f"{entry.database}.{entry.name}", []
    if entry.change in _WORDS:
        expected = "; ".join(entry.columns) or "those of the table's present state"
        what = f"columns and properties of {name}"
        found.append((what, expected, _WORDS[entry.change]))
    partitions = {
        "as in the table": ("at another place", entry.changed),
        "there": ("not there", entry.added),
        "gone": ("there", entry.dropped),
    }
    for expected, (actual, paths) in partitions.items():
        found += [(f"partition {path} of {name}", expected, actual) for path in paths]
    return [
        Difference(Source.METASTORE, what, expected, actual, is_pending=True)
        for what, expected, actual in found
    ]
