"""What properties say of a table's files, as splits carry it.

A worker reads splits by a table that it has opened before. By the mark it knows whether that is the
table as it was when the scan was planned.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from hudi_core.config.table import TableConfig

_DIGITS: Final = 16


def files_mark(config: TableConfig) -> str:
    """Mark of how files are found, and record keys had.

    It changes with a move of the files, a rewriting of keys, and a table that takes another one's
    place; not with what is of no account to a reader of files, such as partitions of the metadata
    table or, where keys are stored, columns. Options do not count: other processes have others.
    """
    facts: list[Any] = [
        config.name,
        config.placement.properties,
        config.populate_meta_fields,
        config.virtual_keys,
        config.keeps_virtual_keys,
        config.keys_differ_by_file,
    ]
    if config.makes_keys or config.keys_differ_by_file:
        # keys are made of columns, which a worker looks up in the timeline
        facts += [
            config.record_key_fields,
            config.keygen_name,
            config.key_concatenator,
            config.version,
            config.timeline_path,
            config.field_ids,
        ]
    text = json.dumps(facts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
