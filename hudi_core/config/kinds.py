"""Closed sets of option values, and Hudi's Java class names.

Properties and options may name Java classes. Nothing is ever imported by such a name: the fixed
registries below say what each known name means, and every other name is refused or kept apart.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from hudi_core.model.format import Granularity


class TableType(StrEnum):
    """How updates are stored."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class MergeOnReadMode(StrEnum):
    """Where a MERGE_ON_READ table puts new versions of rows."""

    LOGS = "logs"
    SPLIT = "split"


class CleanPolicy(StrEnum):
    """Retention policy of a clean, by Hudi's name."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"


class MergeMode(StrEnum):
    """Which of two versions of a row wins."""

    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    CUSTOM = "CUSTOM"


class KeyGeneratorType(StrEnum):
    """How record keys and partition paths are made from columns.

    ``USER_PROVIDED`` means every generator outside the registry; tables that use one are read,
    never written.
    """

    SIMPLE = "SIMPLE"
    COMPLEX = "COMPLEX"
    NON_PARTITION = "NON_PARTITION"
    TIMESTAMP = "TIMESTAMP"
    CUSTOM = "CUSTOM"
    USER_PROVIDED = "USER_PROVIDED"


class IndexType(StrEnum):
    """How incoming keys find the file groups that hold them."""

    SIMPLE = "SIMPLE"
    GLOBAL_SIMPLE = "GLOBAL_SIMPLE"
    BLOOM = "BLOOM"
    GLOBAL_BLOOM = "GLOBAL_BLOOM"
    BUCKET = "BUCKET"
    RECORD_INDEX = "RECORD_INDEX"
    GLOBAL_RECORD_LEVEL_INDEX = "GLOBAL_RECORD_LEVEL_INDEX"
    RECORD_LEVEL_INDEX = "RECORD_LEVEL_INDEX"

    @property
    def is_global(self) -> bool:
        """Whether a key is unique in the table, not just its partition."""
        return self in (
            IndexType.GLOBAL_SIMPLE,
            IndexType.GLOBAL_BLOOM,
            IndexType.RECORD_INDEX,
            IndexType.GLOBAL_RECORD_LEVEL_INDEX,
        )

    @property
    def asks_filters(self) -> bool:
        """Whether bloom filters of files rule them out."""
        return self in (IndexType.BLOOM, IndexType.GLOBAL_BLOOM)

    @property
    def is_record_index(self) -> bool:
        """Whether the metadata table locates keys."""
        return self in (
            IndexType.RECORD_INDEX,
            IndexType.GLOBAL_RECORD_LEVEL_INDEX,
            IndexType.RECORD_LEVEL_INDEX,
        )


class BulkInsertSortMode(StrEnum):
    """How bulk_insert arranges rows before it writes them."""

    NONE = "NONE"
    PARTITION_SORT = "PARTITION_SORT"
    GLOBAL_SORT = "GLOBAL_SORT"
    PARTITION_PATH_REPARTITION = "PARTITION_PATH_REPARTITION"
    PARTITION_PATH_REPARTITION_AND_SORT = "PARTITION_PATH_REPARTITION_AND_SORT"


class LogBlockFormat(StrEnum):
    """What the rows of a log file are."""

    PARQUET = "parquet"
    AVRO = "avro"


class InsertDuplicates(StrEnum):
    """What insert does about rows whose keys the table holds already."""

    NONE = "none"
    DROP = "drop"
    FAIL = "fail"


class PartialUpdateMode(StrEnum):
    """Which values of a row come from its other version.

    ``KEEP_VALUES`` is for columns that the incoming rows lack, and belongs to a write. The other
    two are for values that a row has, and belong to a table: nulls, and the strings of columns that
    the source did not send.
    """

    NONE = "NONE"
    KEEP_VALUES = "KEEP_VALUES"
    IGNORE_DEFAULTS = "IGNORE_DEFAULTS"
    FILL_UNAVAILABLE = "FILL_UNAVAILABLE"


class ConcurrencyMode(StrEnum):
    """How many writers a table may have at a time."""

    SINGLE_WRITER = "SINGLE_WRITER"
    OPTIMISTIC_CONCURRENCY_CONTROL = "OPTIMISTIC_CONCURRENCY_CONTROL"


class LockKind(StrEnum):
    """The locks that are built in."""

    IN_PROCESS = "in_process"
    FILE_SYSTEM = "file_system"
    LOCK_FILE = "lock_file"
    STORAGE = "storage"
    ZOOKEEPER = "zookeeper"
    ZOOKEEPER_IMPLICIT = "zookeeper_implicit"
    DYNAMODB = "dynamodb"
    DYNAMODB_IMPLICIT = "dynamodb_implicit"
    HIVE_METASTORE = "hive_metastore"


class QueryType(StrEnum):
    """What a read returns."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"


class MergeType(StrEnum):
    """What a read makes of log files."""

    COMBINED = "payload_combine"
    SKIPPED = "skip_merge"


class ChangeLogging(StrEnum):
    """What a log of changes holds of each."""

    OP_KEY_ONLY = "OP_KEY_ONLY"
    DATA_BEFORE = "DATA_BEFORE"
    DATA_BEFORE_AFTER = "DATA_BEFORE_AFTER"


class IncrementalFormat(StrEnum):
    """What an incremental read returns of a changed row."""

    LATEST_STATE = "latest_state"
    CDC = "cdc"


SIMPLE_FIELD: Final = "SIMPLE"
TIMESTAMP_FIELD: Final = "TIMESTAMP"
FIELD_TYPES: Final = (SIMPLE_FIELD, TIMESTAMP_FIELD)
"""What a partition field of a CUSTOM key generator may be."""

_MODEL: Final = "org.apache.hudi.common.model."


class PayloadKind(StrEnum):
    """Hudi's payload classes whose merging is built in, by their Java names."""

    DEFAULT = _MODEL + "DefaultHoodieRecordPayload"
    EVENT_TIME = _MODEL + "EventTimeAvroPayload"
    LATEST = _MODEL + "OverwriteWithLatestAvroPayload"
    NON_DEFAULTS = _MODEL + "OverwriteNonDefaultsWithLatestAvroPayload"
    PARTIAL_UPDATE = _MODEL + "PartialUpdateAvroPayload"
    AWS_DMS = _MODEL + "AWSDmsAvroPayload"
    POSTGRES_DEBEZIUM = _MODEL + "debezium.PostgresDebeziumAvroPayload"
    MYSQL_DEBEZIUM = _MODEL + "debezium.MySqlDebeziumAvroPayload"

    @property
    def short_name(self) -> str:
        """The class without its package."""
        return self.value.rpartition(".")[2]


MERGE_STRATEGY_IDS: Final = {
    MergeMode.EVENT_TIME_ORDERING: "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    MergeMode.COMMIT_TIME_ORDERING: "ce9acb64-bde0-424c-9b91-f6ebba25356d",
}
"""Hudi's merge strategy ids (``hudi-format`` section 2); every other id is ``CUSTOM``."""
PAYLOAD_STRATEGY_ID: Final = "00000000-0000-0000-0000-000000000000"
"""Hudi's id of the strategy that merges by the payload class."""
BUILT_IN_MERGERS: Final = frozenset(
    {
        "org.apache.hudi.DefaultSparkRecordMerger",
        "org.apache.hudi.HoodieSparkRecordMerger",
        "org.apache.hudi.OverwriteWithLatestSparkRecordMerger",
        _MODEL + "HoodieAvroRecordMerger",
        _MODEL + "OverwriteWithLatestMerger",
    }
)
"""Hudi's own implementations of its merge modes."""

_LOCK: Final = "org.apache.hudi.client.transaction.lock."
_AWS_LOCK: Final = "org.apache.hudi.aws.transaction.lock."
_HIVE_LOCK: Final = "org.apache.hudi.hive.transaction.lock."
LOCK_CLASSES: Final = {
    _LOCK + "InProcessLockProvider": LockKind.IN_PROCESS,
    _LOCK + "FileSystemBasedLockProvider": LockKind.LOCK_FILE,
    _LOCK + "StorageBasedLockProvider": LockKind.STORAGE,
    _LOCK + "ZookeeperBasedLockProvider": LockKind.ZOOKEEPER,
    _LOCK + "ZookeeperBasedImplicitBasePathLockProvider": LockKind.ZOOKEEPER_IMPLICIT,
    _AWS_LOCK + "DynamoDBBasedLockProvider": LockKind.DYNAMODB,
    _AWS_LOCK + "DynamoDBBasedImplicitPartitionKeyLockProvider": LockKind.DYNAMODB_IMPLICIT,
    _HIVE_LOCK + "HiveMetastoreBasedLockProvider": LockKind.HIVE_METASTORE,
}
"""What Hudi's lock provider classes mean."""

_TRANSACTION: Final = "org.apache.hudi.client.transaction."
CONFLICT_CLASSES: Final = {
    _TRANSACTION + "SimpleConcurrentFileWritesConflictResolutionStrategy": Granularity.FILE_GROUP,
    _TRANSACTION
    + "BucketIndexConcurrentFileWritesConflictResolutionStrategy": Granularity.FILE_GROUP,
}
"""What Hudi's conflict resolution strategy classes mean; buckets are always looked at."""
