"""Secondary indexes for readers: values to file groups.

The index of the column gives the record keys that have a value, and the record index the file group
of each key. That leaves nothing out as long as no two file groups hold one key: who finds that they
do notes it beside the record index, and from then on the two are not used together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import IndexDefinitions, read_definitions
from hudi_core.metadata.key_index.key_records import value_texts
from hudi_core.metadata.key_index.unique_keys import (
    group_of,
    has_repeated_keys,
    has_unique_keys,
    index_option,
    with_index_option,
)
from hudi_core.metadata.keys import secondary_prefix, split_secondary_key
from hudi_core.metadata.log.records import MetadataRecord, RecordLocation
from hudi_core.metadata.partition_types import RECORD_INDEX, secondary_indexes
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.model.files import FileGroupId, PartitionPath
from hudi_core.model.protocols import TimelineView

_MAX_VALUES: Final = 1_000
_MAX_KEYS: Final = 100_000
"""Of more, ranges of files and the files themselves are the cheaper way."""
_TYPE: Final = "hudi.core.column-type"
"""Option of a secondary index's definition: the type of its column when it was built."""


def with_type(
    definitions: IndexDefinitions, index: str, column: str, schema: pa.Schema
) -> IndexDefinitions:
    """Return the definitions with a secondary index's column type.

    Where it changes later, what the index has of older rows is spelled as in the former type.
    """
    if column not in schema.names:
        return definitions
    return with_index_option(definitions, index, _TYPE, str(schema.field(column).type))


def groups_of_values(
    client: TableMetaClient,
    snapshot: MetadataSnapshot,
    definitions: IndexDefinitions,
    column: str,
    values: pa.Array,
) -> frozenset[FileGroupId] | None:
    """Return the file groups with a row of some values.

    ``column`` is a path with dots; a null value matches no row. ``None`` where no index can be
    relied on, or the rows are many.
    """
    index = _reliable_index(snapshot, definitions, column, values.type)
    if index is None or len(values) > _MAX_VALUES:
        return None
    if not snapshot.is_of(snapshot.seen, index, RECORD_INDEX):
        return None
    texts = value_texts(pa.chunked_array([values.drop_null()]), column, client.base_path)
    keys: set[str] = set()
    for key in _record_keys(snapshot, index, [secondary_prefix(text) for text in texts]):
        keys.add(key)
        if len(keys) > _MAX_KEYS:
            return None
    locations = snapshot.lookup(RECORD_INDEX, keys)
    if len(locations) != len(keys):
        return None
    return _groups(locations.values())


def _groups(records: Iterable[MetadataRecord]) -> frozenset[FileGroupId]:
    """The file groups that records of the record index name."""
    return frozenset(
        group_of(where) for record in records if isinstance(where := record.payload, RecordLocation)
    )


def _reliable_index(
    snapshot: MetadataSnapshot, definitions: IndexDefinitions, column: str, kind: pa.DataType
) -> str | None:
    """Return a column's reliable secondary index, or ``None``.

    One that leads to all its rows.
    """
    if not (pt.is_string(kind) or pt.is_integer(kind)):
        return None  # other types have values that are equal and spelled in several ways
    indexes = secondary_indexes(snapshot.partitions)
    if not indexes or RECORD_INDEX not in snapshot.partitions:
        return None
    if has_repeated_keys(definitions) or definitions.is_partitioned(RECORD_INDEX):
        return None
    if not snapshot.knows_all_keys(definitions):
        return None
    for name in indexes:
        was = index_option(definitions, name, _TYPE)
        if definitions.columns(name) == (column,) and was in (None, str(kind)):
            return name
    return None


def _record_keys(snapshot: MetadataSnapshot, index: str, prefixes: list[str]) -> Iterator[str]:
    path = f"{snapshot.root}/{index}"
    for entry in snapshot.scan_many(index, prefixes):
        yield split_secondary_key(entry, path)[1]


# --- the record index for readers: keys to file groups -------------------------------------------

# It leaves nothing out as long as it speaks of the very state that is read, and no two file groups
# hold one key (:mod:`hudi_core.metadata.key_index.unique_keys`). Where either is in doubt, nothing
# is said.


MAX_KEYS: Final = 10_000
"""Of more, ranges of files and the files themselves are the cheaper way."""
_MAX_PARTITIONS: Final = 100
"""An index that is kept by partitions is asked for each."""


def groups_of_keys(
    client: TableMetaClient,
    snapshot: MetadataSnapshot,
    timeline: TimelineView,
    partitions: Sequence[PartitionPath],
    keys: Sequence[str],
) -> frozenset[FileGroupId] | None:
    """Return the file groups that hold some record keys.

    ``partitions`` are those where the rows can be; a key that is nowhere is in no group. ``None``
    where there is no index that can be relied on for this.
    """
    if RECORD_INDEX not in snapshot.partitions or len(keys) > MAX_KEYS:
        return None
    # read after the state: what comes to be repeated later is noted, too
    definitions = read_definitions(client.storage, client.config)
    is_known = has_unique_keys(definitions) and snapshot.watches_keys
    if not is_known or not snapshot.is_of(timeline, RECORD_INDEX):
        return None
    if not definitions.is_partitioned(RECORD_INDEX):
        return _groups(snapshot.lookup(RECORD_INDEX, keys).values())
    owners = snapshot.groups_by_owner(RECORD_INDEX)
    if len(partitions) > _MAX_PARTITIONS or any(path not in owners for path in partitions):
        return None
    found = (snapshot.lookup_owned(path, keys).values() for path in partitions)
    return _groups(chain.from_iterable(found))
