"""The record keys of every value of a column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import pyarrow as pa

from hudi_core.errors import TableServiceError, UnsupportedTableError
from hudi_core.metadata.index_definitions import AskedIndex, IndexDefinitions
from hudi_core.metadata.key_index.sharded import KeyIndex
from hudi_core.metadata.key_index.unique_keys import with_repeated_keys
from hudi_core.metadata.key_index.value_index import with_type
from hudi_core.metadata.keys import split_secondary_key
from hudi_core.metadata.log.records import MetadataRecord, RecordType, SecondaryEntry
from hudi_core.metadata.log.shards import Change
from hudi_core.metadata.partition_types import EXPRESSION_INDEX, RECORD_INDEX, SECONDARY_INDEX
from hudi_core.metadata.partitions.base import (
    GroupCountFacts,
    MetadataPartition,
    Reading,
    key_group_count,
)
from hudi_core.metadata.partitions.key_changes import KeyChanges, KeysOfTable
from hudi_core.metadata.partitions.listed import ListedTable, RecordComparison
from hudi_core.metadata.partitions.names import Check
from hudi_core.metadata.partitions.work import Commit, Work
from hudi_core.metadata.table import has_value_types
from hudi_core.model.difference import Difference

_PLAIN: Final = ("", "identity")


@dataclass(frozen=True)
class SecondaryIndex(MetadataPartition):
    """The record keys of every value of a column.

    A table has any number of them.
    """

    name: str = SECONDARY_INDEX
    arrow_schema: ClassVar[pa.Schema] = pa.schema(
        [("value", pa.string()), ("record_key", pa.string())]
    )
    checks: ClassVar[frozenset[Check]] = frozenset({Check.SECONDARY_INDEX})
    read_through: ClassVar[str | None] = RECORD_INDEX
    is_key_index: ClassVar[bool] = True
    is_of_column: ClassVar[bool] = True
    prefix: ClassVar[str] = SECONDARY_INDEX

    def is_by_value(self, definitions: IndexDefinitions) -> bool:
        return definitions.is_by_value(self.name)

    def require_maintained(self, definitions: IndexDefinitions, base_path: str) -> None:
        is_plain = definitions.function(self.name) in _PLAIN
        if len(definitions.columns(self.name)) != 1 or not is_plain:
            raise UnsupportedTableError(
                base_path,
                f"has the index {self.name} of no one plain column",
                "Drop that index with Apache Hudi, or write with Apache Hudi.",
            )

    # --- its definition ------------------------------------------------------------------------

    def defined(self, work: Work, asked: AskedIndex) -> IndexDefinitions:
        client, definitions, column = work.client, work.definitions, asked.column
        if asked.kind is not None or asked.options:
            raise TableServiceError(
                f"The secondary index {self.name} is of a column as it is, and of no function",
                f"An index of a function is an expression index: name it {EXPRESSION_INDEX}<name>.",
            )
        if column is None and len(definitions.columns(self.name)) == 1:
            return definitions
        if column is None or client.schema.field(column) is None:
            raise TableServiceError(
                f"The secondary index {self.name} needs a column of the table, not {column!r}",
                f"The columns are: {', '.join(client.schema.arrow.names)}.",
            )
        made = {
            "indexName": self.name,
            "indexType": "secondary_index",
            "indexFunction": "identity",
            "sourceFields": [column],
            "indexOptions": {},
            "version": "V2" if has_value_types(client.config) else "V1",
        }
        return IndexDefinitions(definitions.path, {**definitions.raw, self.name: made})

    # --- its records ---------------------------------------------------------------------------

    def of_commit(self, commit: Commit) -> Change:
        keys = commit.shared(KeyChanges)
        keys.note_repeated()
        (column,) = commit.definitions.columns(self.name)
        return keys.of(KeyIndex(self.name, column, self.is_by_value(commit.definitions)))

    def keys(self, table: ListedTable) -> KeysOfTable:
        (column,) = table.definitions.columns(self.name)
        schema = table.client.schema.arrow
        table.definitions = made = with_type(table.definitions, self.name, column, schema)
        return KeysOfTable(table, KeyIndex(self.name, column, self.is_by_value(made)))

    def group_count(self, layout: GroupCountFacts) -> int:
        return key_group_count(layout)

    def note_repeated(self, table: ListedTable, folder: str) -> None:
        made = table.definitions
        if RECORD_INDEX in made.raw and not made.is_partitioned(RECORD_INDEX):
            keys = KeysOfTable(table, KeyIndex(RECORD_INDEX))
            table.definitions = with_repeated_keys(made, are_repeated=keys.are_repeated(folder))

    def build(self, table: ListedTable) -> Iterable[MetadataRecord]:
        found = {
            key for _, one in self.keys(table).keyed() for key in one.column("key").to_pylist()
        }
        entry = SecondaryEntry()
        return [MetadataRecord(key, RecordType.SECONDARY_INDEX, entry) for key in found]

    # --- for people and tools ------------------------------------------------------------------

    def rows(self, record: MetadataRecord, reading: Reading) -> Iterable[tuple[str | None, str]]:
        yield split_secondary_key(record.key, reading.path)

    def compare(self, comparison: RecordComparison) -> Iterator[Difference]:
        if len(comparison.table.definitions.columns(self.name)) != 1:
            comparison.skipped[self.name] = "its definition names no column"
            return
        listed = {one.key for one in comparison.snapshot.scan(self.name)}
        comparison.checked[self.name] = len(listed)
        expected = {one.key for one in self.right(comparison)}
        for key in sorted(expected ^ listed):
            value, record_key = split_secondary_key(key, self.name)
            stated = f"value {value!r}"
            yield Difference(
                self.name,
                f"record key {record_key!r}",
                stated if key in expected else None,
                stated if key in listed else None,
            )
