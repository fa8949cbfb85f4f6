"""What builds and drops the partitions of metadata tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hudi_core.config.write import WriteConfig
from hudi_core.services.metadata import MetadataOperator
from hudi_core.services.opening import open_table
from hudi_core.txn.table_lock import table_lock


def operator(path: str | Path, options: Mapping[str, str] | None = None) -> MetadataOperator:
    """What the commands about the metadata table of a table call."""
    opened, config = open_table(str(path), options or {}), WriteConfig.from_options(options or {})
    return MetadataOperator(opened, table_lock(opened, config), config)
