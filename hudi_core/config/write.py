"""The typed view of the options of one write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_core.config import index_keys, merge_keys, storage
from hudi_core.config import write_keys as keys
from hudi_core.config.commit_keys import commit_extras
from hudi_core.config.foreign import Kind, foreign_options
from hudi_core.config.kinds import (
    BulkInsertSortMode,
    ConcurrencyMode,
    IndexType,
    InsertDuplicates,
    LockKind,
    PartialUpdateMode,
)
from hudi_core.config.lock import LockConfig
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.schema import SchemaConfig
from hudi_core.errors import InvalidOptionError
from hudi_core.model.commit import WriteOperation
from hudi_core.model.extras import CommitExtras


@dataclass(frozen=True, slots=True)
class WriteConfig:
    """How rows are written.

    Attributes
    ----------
    operation
        What is done with the rows.
    partitions_to_delete
        Paths of the partitions that a deletion of partitions names.
    small_file_limit, max_file_size
        Bytes below which a base file takes in new rows, and bytes at which it is full.
    record_size_estimate, record_size_threshold
        Bytes of a row where no commit tells it; the share of ``small_file_limit`` that a commit
        must have written to tell it.
    insert_split_size, insert_auto_split
        Rows of a new file group; whether they follow from file and row size instead.
    compression_codec, compression_level
        Codec as pyarrow names it; its level, ``None`` for the codec's own default.
    row_group_bytes, page_bytes, dictionary_enabled
        Parquet: bytes of a row group and of a page before compression; dictionary encoding.
    combine_before_insert, combine_before_upsert, combine_before_delete
        Whether rows with one key are combined within the incoming data.
    validates_complex_keys
        Whether a table is refused whose complex keys of one field may be of two forms.
    insert_duplicates, partial_update_mode
        What insert does about keys the table holds, and upsert about columns the rows lack.
    bulk_insert_sort_mode, bulk_insert_sort_columns, bulk_insert_parallelism
        How bulk_insert arranges rows; by which columns it sorts, none for the record key; over how
        many tasks it spreads them, 0 to leave it to the engine.
    allow_duplicate_on_insert
        Whether an insert keeps a row whose key its file group holds already.
    index_type, moves_partition
        How keys find their file groups; with a global index, whether a row moves to the partition
        that it comes with, or stays where its key is stored.
    bloom_enabled, bloom_entries, bloom_fpp, bloom_max_entries
        Whether files carry a bloom filter; keys it is sized for (``None``: the file's rows), share
        of wrong hits, greatest number of keys.
    heartbeat_interval_ms, heartbeat_misses
        Milliseconds between heartbeats; how many may be missing before a writer counts as dead.
    schema
        How incoming columns meet those of the table.
    lock
        How the table's lock is taken.
    metadata
        What the metadata table holds.
    fsync
        Whether local timeline files are flushed to the disk.
    extras
        What the commit keeps beside its files.
    """

    operation: WriteOperation
    partitions_to_delete: tuple[str, ...]
    small_file_limit: int
    max_file_size: int
    record_size_estimate: int
    record_size_threshold: float
    insert_split_size: int
    insert_auto_split: bool
    compression_codec: str
    compression_level: int | None
    row_group_bytes: int
    page_bytes: int
    dictionary_enabled: bool
    combine_before_insert: bool
    combine_before_upsert: bool
    combine_before_delete: bool
    validates_complex_keys: bool
    insert_duplicates: InsertDuplicates
    partial_update_mode: PartialUpdateMode
    bulk_insert_sort_mode: BulkInsertSortMode
    bulk_insert_sort_columns: tuple[str, ...]
    bulk_insert_parallelism: int
    allow_duplicate_on_insert: bool
    index_type: IndexType
    moves_partition: bool
    bloom_enabled: bool
    bloom_entries: int | None
    bloom_fpp: float
    bloom_max_entries: int
    heartbeat_interval_ms: int
    heartbeat_misses: int
    schema: SchemaConfig
    lock: LockConfig
    metadata: MetadataConfig
    fsync: bool
    extras: CommitExtras = field(default_factory=CommitExtras)

    @property
    def concurrency_mode(self) -> ConcurrencyMode:
        return self.lock.concurrency_mode

    @property
    def lock_provider(self) -> LockKind | None:
        return self.lock.provider

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> WriteConfig:
        """Return the view of a user's options; what is not given has its default.

        Raises
        ------
        InvalidOptionError
            A value that cannot be used, or asks for what this release does not do.
        """
        foreign_options().refuse(options, Kind.REFUSED_IN_WRITES)
        for key in keys.REFUSALS:
            key.read(options)
        index_keys.BUCKET_ENGINE.read(options)
        codec = keys.COMPRESSION_CODEC.read(options)
        index_type = index_keys.INDEX_TYPE.read(options)
        moves = index_keys.SIMPLE_MOVES
        if index_type is IndexType.GLOBAL_BLOOM:
            moves = index_keys.BLOOM_MOVES
        elif index_type.is_record_index:
            moves = index_keys.RECORD_MOVES
        return cls(
            operation=keys.OPERATION.read(options),
            partitions_to_delete=keys.PARTITIONS_TO_DELETE.read(options),
            small_file_limit=keys.SMALL_FILE_LIMIT.read(options),
            max_file_size=keys.MAX_FILE_SIZE.read(options),
            record_size_estimate=keys.RECORD_SIZE_ESTIMATE.read(options),
            record_size_threshold=keys.RECORD_SIZE_THRESHOLD.read(options),
            insert_split_size=keys.INSERT_SPLIT_SIZE.read(options),
            insert_auto_split=keys.INSERT_AUTO_SPLIT.read(options),
            compression_codec=codec,
            compression_level=keys.ZSTD_LEVEL.read(options) if codec == "zstd" else None,
            row_group_bytes=keys.ROW_GROUP_BYTES.read(options),
            page_bytes=keys.PAGE_BYTES.read(options),
            dictionary_enabled=keys.DICTIONARY.read(options),
            combine_before_insert=keys.COMBINE_BEFORE_INSERT.read(options),
            combine_before_upsert=keys.COMBINE_BEFORE_UPSERT.read(options),
            combine_before_delete=keys.COMBINE_BEFORE_DELETE.read(options),
            validates_complex_keys=keys.COMPLEX_VALIDATION.read(options),
            insert_duplicates=_insert_duplicates(options),
            partial_update_mode=merge_keys.PARTIAL_UPDATE_MODE.read(options),
            bulk_insert_sort_mode=keys.BULK_INSERT_SORT_MODE.read(options),
            bulk_insert_sort_columns=keys.BULK_INSERT_SORT_COLUMNS.read(options),
            bulk_insert_parallelism=keys.BULK_INSERT_PARALLELISM.read(options),
            allow_duplicate_on_insert=keys.ALLOW_DUPLICATE_ON_INSERT.read(options),
            index_type=index_type,
            moves_partition=moves.read(options),
            bloom_enabled=keys.BLOOM_ENABLED.read(options),
            bloom_entries=keys.BLOOM_ENTRIES.read(options),
            bloom_fpp=keys.BLOOM_FPP.read(options),
            bloom_max_entries=keys.BLOOM_MAX_ENTRIES.read(options),
            heartbeat_interval_ms=keys.HEARTBEAT_INTERVAL_MS.read(options),
            heartbeat_misses=keys.HEARTBEAT_MISSES.read(options),
            schema=SchemaConfig.from_options(options),
            lock=LockConfig.from_options(options),
            metadata=MetadataConfig.from_options(options),
            fsync=storage.FSYNC.read(options),
            extras=commit_extras(options),
        )


def _insert_duplicates(options: Mapping[str, str]) -> InsertDuplicates:
    policy, drops = keys.INSERT_DUP_POLICY, keys.INSERT_DROP_DUPLICATES
    if not drops.read(options):
        return policy.read(options)
    if policy.is_given(options) and policy.read(options) is not InsertDuplicates.DROP:
        raise InvalidOptionError(
            drops.key,
            "true",
            f"{policy.key}={policy.read(options)} says otherwise",
            f"Give only {policy.key}.",
        )
    return InsertDuplicates.DROP
