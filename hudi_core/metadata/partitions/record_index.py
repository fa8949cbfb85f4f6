"""The file group of every record key."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.key_settings import why_unmade
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.table import TableConfig
from hudi_core.errors import InvalidOptionError
from hudi_core.metadata.index_definitions import IndexDefinitions, with_index
from hudi_core.metadata.key_index.sharded import KeyIndex
from hudi_core.metadata.key_index.unique_keys import with_repeated_keys
from hudi_core.metadata.keys import partition_path
from hudi_core.metadata.log.records import MetadataRecord, RecordLocation, RecordType
from hudi_core.metadata.log.shards import Change
from hudi_core.metadata.merging import present
from hudi_core.metadata.partition_types import RECORD_INDEX, group_place
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
from hudi_core.metadata.table import metadata_storage
from hudi_core.model.difference import Difference
from hudi_core.model.files import BaseFileName, LogFileName


@dataclass(frozen=True)
class RecordIndexPartition(MetadataPartition):
    """The place of every record key.

    Of each once in the whole table, or once in each partition.

    As an Arrow table, ``instant`` is when the instant that brought a key was requested.
    """

    name: str = RECORD_INDEX
    arrow_schema: ClassVar[pa.Schema] = pa.schema(
        [
            ("record_key", pa.string()),
            ("partition_path", pa.string()),
            ("file_id", pa.string()),
            ("instant", pa.timestamp("ms", "UTC")),
            ("position", pa.int64()),
        ]
    )
    checks: ClassVar[frozenset[Check]] = frozenset({Check.RECORD_INDEX, Check.RECORD_INDEX_COUNT})
    is_key_index: ClassVar[bool] = True

    # --- which partitions a table has ----------------------------------------------------------

    def is_enabled(self, config: MetadataConfig) -> bool:
        return config.record_index or config.partitioned_record_index

    def require_possible(self, config: MetadataConfig, table: TableConfig) -> None:
        whole, partitioned = MetadataConfig.record_index, MetadataConfig.partitioned_record_index
        if config.partitioned_record_index and config.record_index:
            raise InvalidOptionError(
                partitioned.key,
                "true",
                f"{whole.key}=true asks for a record index of the whole table",
                "Give only one of them.",
            )
        reason = why_unmade(table)
        if self.is_enabled(config) and reason is not None:
            raise InvalidOptionError(
                (whole if config.record_index else partitioned).key,
                "true",
                f"the table has no record keys in its files, and {reason}",
                "Leave that out.",
            )

    def require_same_kind(self, work: Work) -> None:
        config, path = work.config, work.client.base_path
        if work.definitions.is_partitioned(self.name) is config.partitioned_record_index:
            return
        is_asked = config.partitioned_record_index
        whole, partitioned = MetadataConfig.record_index, MetadataConfig.partitioned_record_index
        theirs = "of the whole table" if is_asked else "kept by partitions"
        raise InvalidOptionError(
            (partitioned if is_asked else whole).key,
            "true",
            f"the record index of the table at {path} is {theirs}",
            f"Run `hudi metadata drop {path} {self.name}` first, or leave that out.",
        )

    def with_option(
        self, config: MetadataConfig, definitions: IndexDefinitions | None
    ) -> MetadataConfig:
        is_there = definitions is not None
        by_partition = definitions is not None and definitions.is_partitioned(self.name)
        return replace(
            config,
            record_index=is_there and not by_partition,
            partitioned_record_index=by_partition,
        )

    def restored(self, work: Work) -> IndexDefinitions:
        if self.name in work.definitions.raw:
            return work.definitions
        # the names of its file groups say whether they belong to partitions of the table
        owned = any(
            (place := group_place(self.name, named.file_id)) and place.owner is not None
            for status in metadata_storage(work.client).list(self.name)
            if (named := BaseFileName.parse(status.name) or LogFileName.parse(status.name))
        )
        return with_index(work.definitions, work.client.config, self.name, options=_form(owned))

    # --- its records ---------------------------------------------------------------------------

    def of_commit(self, commit: Commit) -> Change:
        keys = commit.shared(KeyChanges)
        keys.note_repeated()
        is_owned = commit.definitions.is_partitioned(self.name)
        return keys.of(KeyIndex(self.name, is_owned=is_owned))

    def keys(self, table: ListedTable) -> KeysOfTable:
        table.definitions = self._defined(table)
        is_owned = table.definitions.is_partitioned(self.name)
        return KeysOfTable(table, KeyIndex(self.name, is_owned=is_owned))

    def build(self, table: ListedTable) -> Iterable[MetadataRecord]:
        for source, keyed in self.keys(table).keyed():
            for key in pc.unique(keyed.column("key")).to_pylist():
                yield MetadataRecord(key, RecordType.RECORD_INDEX, source.location)

    def _defined(self, table: ListedTable) -> IndexDefinitions:
        """Definitions with it; no key is repeated yet.

        As the options say, else as it was.
        """
        config, definitions = table.config, table.definitions
        is_owned = config.partitioned_record_index
        if not (is_owned or config.record_index):
            is_owned = definitions.is_partitioned(self.name)
        made = with_index(definitions, table.client.config, self.name, options=_form(is_owned))
        return with_repeated_keys(made, are_repeated=False)

    def group_count(self, layout: GroupCountFacts) -> int:
        return key_group_count(layout)

    # --- for people and tools ------------------------------------------------------------------

    def rows(self, record: MetadataRecord, reading: Reading) -> Iterable[tuple[Any, ...]]:  # noqa: ARG002
        one = record.payload
        if isinstance(one, RecordLocation):
            yield record.key, one.partition_name, one.file_id, one.instant_ms, one.position

    def compare(self, comparison: RecordComparison) -> Iterator[Difference]:
        if Check.RECORD_INDEX in comparison.checks:
            yield from super().compare(comparison)
            return
        listed = sum(1 for _ in comparison.snapshot.scan(self.name))
        comparison.checked[self.name] = listed
        expected = len(self.expected(comparison))
        if listed != expected:
            yield Difference(self.name, "the number of keys", str(expected), str(listed))

    def listed(self, comparison: RecordComparison) -> Mapping[Hashable, MetadataRecord]:
        # a key of one partition is another than that of the next, where file groups belong to them
        if not comparison.is_partitioned(self.name):
            return super().listed(comparison)
        return {
            (owner, key): seen
            for owner, groups in comparison.snapshot.groups_by_owner(self.name).items()
            for group in groups
            for key, record in group.scan().items()
            if (seen := present(record)) is not None
        }

    def expected(self, comparison: RecordComparison) -> Mapping[Hashable, MetadataRecord]:
        if not comparison.is_partitioned(self.name):
            return super().expected(comparison)
        return {
            (partition_path(one.payload.partition_name), one.key): one
            for one in self.right(comparison)
            if isinstance(one.payload, RecordLocation)
        }

    def fact(self, record: MetadataRecord) -> object:
        found = record.payload
        if not isinstance(found, RecordLocation):
            return found
        return found.partition_name, found.file_id

    def subject(self, record: MetadataRecord) -> str:
        return f"record key {record.key!r}"

    def describe(self, record: MetadataRecord) -> str:
        found = record.payload
        if not isinstance(found, RecordLocation):
            return super().describe(record)
        return f"in file group {found.file_id} of partition {found.partition_name!r}"


def _form(is_partitioned: bool) -> dict[str, str]:
    return {"isPartitioned": "true" if is_partitioned else "false"}
