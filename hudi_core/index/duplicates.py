"""Inserts of existing keys: dropped or refused by an option.

Source: Hudi's ``hoodie.datasource.insert.dup.policy``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from hudi_core.config.kinds import InsertDuplicates
from hudi_core.errors import DuplicateRecordKeyError
from hudi_core.index.incoming import record_keys
from hudi_core.index.tagging import Tagged, located_rows
from hudi_core.model.files import PartitionPath
from hudi_core.rows.context import WriteContext
from hudi_core.rows.staging import StagedPart
from hudi_core.schema.table_schema import TableSchema

_SHOWN: Final = 3


def without_duplicates(
    tagged: Mapping[PartitionPath, Tagged],
    parts: Sequence[StagedPart],
    context: WriteContext,
    staged: TableSchema,
) -> dict[PartitionPath, Tagged]:
    """Return locations of inserted rows, without those of existing keys."""
    if context.write.insert_duplicates is InsertDuplicates.FAIL:
        _refuse(tagged, parts, context, staged)
    return {path: replace(found, located={}) for path, found in tagged.items()}


def _refuse(
    tagged: Mapping[PartitionPath, Tagged],
    parts: Sequence[StagedPart],
    context: WriteContext,
    staged: TableSchema,
) -> None:
    for path, found in tagged.items():
        for candidate, stored in found.located.items():
            incoming = np.unique(located_rows(context, found, candidate).incoming[:_SHOWN])
            rows = found.sources.take(context, parts, incoming, staged.arrow)
            keys = record_keys(rows, context, staged).to_pylist()
            raise DuplicateRecordKeyError(
                f"The rows to insert have keys that the partition {path!r} holds already: "
                f"{', '.join(map(repr, keys))}{', ...' if stored > len(keys) else ''}",
                "Nothing was written. Use upsert, or set "
                "hoodie.datasource.insert.dup.policy=drop to leave these rows out.",
                columns=context.table.record_key_fields,
                keys=tuple(keys),
            )
