"""Whether every record key is in one file group.

The index knows one place of a key. An operation that looks nothing up may bring a key a second
time, and the first place is forgotten. So who builds the index notes beside it whether keys are
repeated, and each commit notes where they come to be. What another engine commits to the index is
not watched like that: commits that are say so, and readers and writers look back as far as the last
one of these.

Of a table without meta columns Hudi keeps no record index, though its properties name one: the rows
that Hudi writes are not in it. There every commit of another engine ends what is known of the keys,
until the index is built again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.table import TableConfig
from hudi_core.hashing.java_hash import shards_of
from hudi_core.metadata.index_definitions import IndexDefinitions
from hudi_core.metadata.keys import partition_path
from hudi_core.metadata.log.completeness import CommitRecords
from hudi_core.metadata.log.layers import GroupReader
from hudi_core.metadata.log.records import RecordLocation
from hudi_core.metadata.partition_types import RECORD_INDEX
from hudi_core.model.files import FileGroupId, FileId
from hudi_core.model.instant import Action
from hudi_core.model.ranges import Mask

_REPEATED: Final = "hudi.core.repeated-keys"
"""Option of the record index's definition: whether several file groups hold one key. Without it
this is unknown."""


def has_repeated_keys(definitions: IndexDefinitions) -> bool:
    """Whether several file groups are known to hold one key."""
    return index_option(definitions, RECORD_INDEX, _REPEATED) == "true"


def has_unique_keys(definitions: IndexDefinitions) -> bool:
    """Whether no two file groups held one key when last looked."""
    return index_option(definitions, RECORD_INDEX, _REPEATED) == "false"


def is_noted(definitions: IndexDefinitions) -> bool:
    """Whether it is recorded if file groups hold one key."""
    return has_unique_keys(definitions) or has_repeated_keys(definitions)


def with_repeated_keys(definitions: IndexDefinitions, *, are_repeated: bool) -> IndexDefinitions:
    """Return the definitions with a note of repeated keys."""
    return with_index_option(definitions, RECORD_INDEX, _REPEATED, str(are_repeated).lower())


def without_note(definitions: IndexDefinitions) -> IndexDefinitions:
    """Return the definitions without a note: it is unknown."""
    return with_index_option(definitions, RECORD_INDEX, _REPEATED, None)


def index_option(definitions: IndexDefinitions, index: str, name: str) -> str | None:
    """An option of an index's definition; ``None`` without."""
    options = definitions.raw.get(index, {}).get("indexOptions")
    found = options.get(name) if isinstance(options, dict) else None
    return None if found is None else str(found)


def with_index_option(
    definitions: IndexDefinitions, index: str, name: str, value: str | None
) -> IndexDefinitions:
    """Return the definitions with an option of an index; ``None``: without."""
    known: Mapping[str, Any] = definitions.raw.get(index, {})
    options = known.get("indexOptions")
    noted = {**(options if isinstance(options, dict) else {}), name: value}
    kept = {name: one for name, one in noted.items() if one is not None}
    changed = {**known, "indexOptions": kept}
    return IndexDefinitions(definitions.path, {**definitions.raw, index: changed})


def are_watched(records: CommitRecords, config: TableConfig) -> bool:
    """Whether all commits to the record index have watched its keys.

    Each that does has looked at those before it.
    """
    for write in records.newest_first():
        if write.action is Action.COMMIT:
            continue  # a compaction adds nothing
        recorded = records.read(write)
        if recorded.watches_keys:
            return True
        if not config.tells_meta_columns or any(True for _ in recorded.files(RECORD_INDEX)):
            return False
    return False


def group_of(where: RecordLocation) -> FileGroupId:
    """The file group of a location."""
    return FileGroupId(partition_path(where.partition_name), FileId(where.file_id))


def held_keys(groups: Mapping[int, GroupReader], count: int, keys: pa.StringArray) -> Mask:
    """Which keys the file groups of a record index hold.

    ``groups`` are, by number, those of ``count`` that have the keys; each key is given once.
    """
    held = np.zeros(len(keys), np.bool_)
    if not groups:
        return held
    shards = shards_of(keys, count)
    for number in np.unique(shards).tolist():
        own = np.flatnonzero(shards == number)
        encoded = keys.take(pa.array(own)).cast(pa.binary())
        for layer in groups[number].layers:
            if layer.reader is not None:
                for ordinals, values in layer.reader.find_many(encoded):
                    # a value without bytes says that the key is gone
                    held[own[ordinals]] = values.type.byte_width > 0
            if layer.deleted:
                deleted = pa.array([key.encode() for key in layer.deleted], pa.binary())
                is_gone = pc.is_in(encoded, value_set=deleted).to_numpy(zero_copy_only=False)
                held[own[is_gone]] = False
    return held
