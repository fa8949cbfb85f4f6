"""The metadata table compared with the files of its table, partition by partition.

What it should say is taken from the files as they are: folders are listed, footers and key columns
read. What readers can live with is no difference: ranges of a partition that are wider than its
rows, and bounds in the type that a column had when they were made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from hudi_core.config.kinds import TableType
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.errors import DataFileError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.comparison import compare_files
from hudi_core.metadata.equivalence import (
    are_equivalent,
    describe_record,
    is_benign_extra,
    is_needed,
    record_subject,
)
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.indexed_columns import IndexedColumns
from hudi_core.metadata.initialize import PartitionBuilder
from hudi_core.metadata.keys import partition_path, split_secondary_key
from hudi_core.metadata.lister import MetadataLister
from hudi_core.metadata.merging import present
from hudi_core.metadata.partition_types import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX,
)
from hudi_core.metadata.records import ColumnRange, MetadataRecord, RecordLocation
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.state import MetadataState
from hudi_core.model.files import BaseFileName, FileStatus, PartitionPath
from hudi_core.model.instant import Action, State
from hudi_core.timeline.serde import decode_cleaner_plan
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.storage_lister import StorageLister

_Identity = tuple[PartitionPath | None, str]
"""Whose file group has a record, if it has an owner; and the record's key."""


class Check(StrEnum):
    """What is compared; the values are those of Hudi's options, without ``validate-``."""

    FILES = "all-file-groups"
    LATEST_FILES = "latest-base-files"
    COLUMN_STATS = "all-column-stats"
    PARTITION_STATS = "partition-stats"
    BLOOM_FILTERS = "bloom-filters"
    RECORD_INDEX_COUNT = "record-index-count"
    RECORD_INDEX = "record-index-content"
    SECONDARY_INDEX = "secondary-index"


ALL_CHECKS: Final = frozenset(Check) - {Check.LATEST_FILES, Check.RECORD_INDEX_COUNT}
"""All that the others are not part of."""
_OF_PARTITION: Final = {
    COLUMN_STATS: Check.COLUMN_STATS,
    PARTITION_STATS: Check.PARTITION_STATS,
    BLOOM_FILTERS: Check.BLOOM_FILTERS,
    RECORD_INDEX: Check.RECORD_INDEX,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about which the metadata table and the files disagree.

    Attributes
    ----------
    partition
        Partition of the metadata table.
    subject
        What it is said of: a file, a column of a file or of a partition, a key.
    expected
        What the files say; ``None``: nothing.
    listed
        What the metadata table says; ``None``: nothing.
    """

    partition: str
    subject: str
    expected: str | None
    listed: str | None

    def __str__(self) -> str:
        said = "does not know it" if self.listed is None else f"says {self.listed}"
        truth = "there is no such thing" if self.expected is None else f"it is {self.expected}"
        return f"{self.partition}: {self.subject}: the metadata table {said}, {truth}"


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """What a validation found.

    Attributes
    ----------
    findings
        The differences.
    checked
        Partitions of the metadata table that were compared, with the records each has.
    skipped
        Those that were not, and why.
    unreadable
        Those that could not be, for files of the table that are damaged, and which.
    """

    findings: tuple[Finding, ...]
    checked: Mapping[str, int]
    skipped: Mapping[str, str]
    unreadable: Mapping[str, str]

    @property
    def is_valid(self) -> bool:
        """Whether nothing was found, and everything could be read."""
        return not self.findings and not self.unreadable


def validate(
    client: TableMetaClient,
    checks: Collection[Check] = ALL_CHECKS,
    partitions: Collection[PartitionPath] | None = None,
) -> ValidationReport:
    """Compare a table's metadata table with its files.

    Parameters
    ----------
    client
        The table; what completes while the comparison runs is left out of it.
    checks
        What is compared.
    partitions
        Of the table, whose files are compared; ``None`` for all. Indexes are compared as a whole.

    Raises
    ------
    CorruptMetadataError
        The metadata table is missing, damaged, or lacks a write of the table.
    """
    return _Validation(client).run(frozenset(checks), partitions)


class _Validation:
    """One comparison."""

    def __init__(self, client: TableMetaClient) -> None:
        timeline = client.timeline()
        self._client = client.seeing(timeline)
        self._timeline = timeline
        self._snapshot = MetadataSnapshot.open(self._client, timeline)
        self._definitions = read_definitions(client.storage, client.config)
        config = MetadataConfig.from_options({})
        columns = self._definitions.columns(COLUMN_STATS)
        tables = MetadataState(self._client, self._definitions)
        self._builder = PartitionBuilder(
            tables, replace(config, stats_columns=columns), self._definitions
        )
        self._checked: dict[str, int] = {}
        self._skipped: dict[str, str] = {}
        self._unreadable: dict[str, str] = {}

    def run(
        self, checks: frozenset[Check], partitions: Collection[PartitionPath] | None
    ) -> ValidationReport:
        found: list[Finding] = []
        if checks & {Check.FILES, Check.LATEST_FILES}:
            found += self._files(Check.FILES not in checks, partitions)
        for name in self._snapshot.partitions:
            try:
                found += self._compare(name, checks)
            except DataFileError as error:
                self._unreadable[name] = str(error)
        return ValidationReport(tuple(found), self._checked, self._skipped, self._unreadable)

    def _compare(self, name: str, checks: frozenset[Check]) -> Iterable[Finding]:
        """Compare a partition with what the files hold, if that is asked for."""
        if name == RECORD_INDEX and Check.RECORD_INDEX not in checks:
            return self._key_count() if Check.RECORD_INDEX_COUNT in checks else ()
        if name.startswith(SECONDARY_INDEX):
            return self._secondary(name) if Check.SECONDARY_INDEX in checks else ()
        if name in _OF_PARTITION:
            return self._records(name) if _OF_PARTITION[name] in checks else ()
        if name != FILES:
            self._skipped[name] = "what it should hold is not known here"
        return ()

    # --- files ---------------------------------------------------------------------------------

    def _files(
        self, only_latest: bool, partitions: Collection[PartitionPath] | None
    ) -> Iterator[Finding]:
        config = self._client.config
        metadata = MetadataLister(self._client)
        storage = StorageLister(self._client.storage, config.is_partitioned, self._client.run_map)
        known = {*metadata.list_partitions(), *storage.list_partitions()}
        wanted = sorted(known if partitions is None else known.intersection(partitions))
        listed, stored = metadata.list_files(wanted), storage.list_files(wanted)
        going = _being_cleaned(self._client, self._timeline)
        self._checked[FILES] = sum(len(files) for files in listed.values())
        for path in wanted:
            ours = [one for one in listed[path] if one.path not in going]
            theirs = [one for one in stored[path] if one.path not in going]
            if only_latest:
                ours, theirs = _latest(ours), _latest(theirs)
            for one in compare_files(path, ours, theirs, self._timeline):
                yield Finding(
                    FILES,
                    f"{one.file_name} of partition {path!r}",
                    _bytes(one.stored_size),
                    _bytes(one.listed_size),
                )

    # --- records -------------------------------------------------------------------------------

    def _records(self, partition: str) -> Iterator[Finding]:
        if partition == RECORD_INDEX and self._has_logs(partition):
            return
        listed = self._listed(partition)
        self._checked[partition] = len(listed)
        expected = self._expected(partition)
        forms = self._builder.columns if partition in (COLUMN_STATS, PARTITION_STATS) else {}
        if partition == COLUMN_STATS:
            yield from self._unfit(forms)
        former = self._client.config.former_names
        for key, record in expected.items():
            found, column = listed.get(key), _column_of(record)
            if found is None:
                if is_needed(record):
                    yield Finding(partition, record_subject(record), describe_record(record), None)
            elif not are_equivalent(found, record, forms.get(column), is_former=column in former):
                yield Finding(
                    partition,
                    record_subject(record),
                    describe_record(record),
                    describe_record(found),
                )
        files = self._file_names() if partition == COLUMN_STATS else frozenset()
        for key, record in listed.items():
            if key not in expected and not is_benign_extra(record, files):
                yield Finding(partition, record_subject(record), None, describe_record(record))

    def _unfit(self, forms: IndexedColumns) -> Iterator[Finding]:
        """Yield the columns of which no ranges can be kept, although they are said to have some."""
        schema = self._client.schema_at(self._timeline)
        for path in self._definitions.columns(COLUMN_STATS):
            if path not in forms and schema.field(path) is not None:
                yield Finding(COLUMN_STATS, f"column {path}", None, "that it has ranges")

    def _listed(self, partition: str) -> dict[_Identity, MetadataRecord]:
        """Return the records of a partition of the metadata table; a key of one partition of the
        table is another than that of the next, where file groups belong to them."""
        if partition != RECORD_INDEX or not self._definitions.is_partitioned(partition):
            return {(None, one.key): one for one in self._snapshot.scan(partition)}
        return {
            (owner, key): seen
            for owner, groups in self._snapshot.groups_by_owner(partition).items()
            for group in groups
            for key, record in group.scan().items()
            if (seen := present(record)) is not None
        }

    def _expected(self, partition: str) -> dict[_Identity, MetadataRecord]:
        records = self._builder.records(partition)
        if partition != RECORD_INDEX or not self._definitions.is_partitioned(partition):
            return {(None, one.key): one for one in records}
        return {
            (partition_path(one.payload.partition_name), one.key): one
            for one in records
            if isinstance(one.payload, RecordLocation)
        }

    def _file_names(self) -> frozenset[str]:
        """Return the names of all files that the table has, of any instant."""
        config = self._client.config
        storage = StorageLister(self._client.storage, config.is_partitioned, self._client.run_map)
        listed = storage.list_files(storage.list_partitions())
        return frozenset(file.name for files in listed.values() for file in files)

    def _key_count(self) -> Iterator[Finding]:
        if self._has_logs(RECORD_INDEX):
            return
        listed = sum(1 for _ in self._snapshot.scan(RECORD_INDEX))
        self._checked[RECORD_INDEX] = listed
        expected = len(self._expected(RECORD_INDEX))
        if listed != expected:
            yield Finding(RECORD_INDEX, "the number of keys", str(expected), str(listed))

    def _secondary(self, partition: str) -> Iterator[Finding]:
        if self._has_logs(partition):
            return
        if len(self._definitions.columns(partition)) != 1:
            self._skipped[partition] = "its definition names no column"
            return
        listed = {one.key for one in self._snapshot.scan(partition)}
        self._checked[partition] = len(listed)
        expected = {one.key for one in self._builder.records(partition)}
        for key in sorted(expected ^ listed):
            value, record_key = split_secondary_key(key, partition)
            said = f"value {value!r}"
            yield Finding(
                partition,
                f"record key {record_key!r}",
                said if key in expected else None,
                said if key in listed else None,
            )

    def _has_logs(self, partition: str) -> bool:
        """Whether keys may be in log files, of which only merging readers know the rows."""
        if self._client.config.table_type is TableType.MERGE_ON_READ:
            self._skipped[partition] = "keys in log files of the table are not read"
            return True
        return False


def _column_of(record: MetadataRecord) -> str:
    one = record.payload
    return (one.column_name or "") if isinstance(one, ColumnRange) else ""


def _being_cleaned(client: TableMetaClient, timeline: Timeline) -> frozenset[str]:
    """Return the paths of files that a pending clean deletes: gone or not, both is right."""
    paths: set[str] = set()
    for pending in timeline.pending().of_actions(Action.CLEAN):
        requested = pending.to(State.REQUESTED)
        body = client.active.read(requested)
        if body:
            plan = decode_cleaner_plan(body, client.active.path(requested))
            for partition, infos in (plan.file_paths_to_be_deleted_per_partition or {}).items():
                names = ((info.file_path or "").rpartition("/")[2] for info in infos)
                paths.update(f"{partition}/{name}" if partition else name for name in names)
    return frozenset(paths)


def _latest(files: Collection[FileStatus]) -> list[FileStatus]:
    """Return the newest base file of each file group."""
    newest: dict[str, tuple[str, FileStatus]] = {}
    for file in files:
        name = BaseFileName.parse(file.name)
        if name is not None and name.instant >= newest.get(name.file_id, ("", file))[0]:
            newest[name.file_id] = (name.instant, file)
    return [file for _, file in newest.values()]


def _bytes(size: int | None) -> str | None:
    return None if size is None else f"{size} bytes"
