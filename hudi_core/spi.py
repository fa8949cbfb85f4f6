"""Names for authors of a table format or an observer to import.

They import nothing else of the project.

These names are the promise: a plugin that uses only them keeps working within a major version.
:mod:`hudi_core.hookspecs` is the text to read first.
"""

from hudi_core.base_file.footer import Footer, read_footer, read_statistics
from hudi_core.base_file.footer_statistics import footer_statistics
from hudi_core.config.format_option import FormatOption
from hudi_core.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    ConfigError,
    CorruptMetadataError,
    HudiError,
    IncompleteCommitError,
    InstantNotFoundError,
    InvalidOptionError,
    LockError,
    PathNotFoundError,
    PluginError,
    PreconditionFailedError,
    SchemaError,
    StorageError,
    TableServiceError,
    UnfinishedMoveError,
    UnsafePathError,
    UnsupportedCapabilityError,
    UnsupportedTableError,
)
from hudi_core.hookspecs import TableFormatHooks, hookimpl
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.lister import table_lister
from hudi_core.model.actions import (
    ActionInstant,
    CleanerPlan,
    CleanFileInfo,
    CleanMetadata,
    CleanPartitionMetadata,
    InstantInfo,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPartitionMetadata,
    SavepointMetadata,
    SavepointPartitionMetadata,
)
from hudi_core.model.capability import SCHEMA_EVOLUTION, Capability, FormatCapabilities
from hudi_core.model.client import (
    DataPlaces,
    FileSystemViewManager,
    MetaClientView,
    RunMap,
    SliceView,
    TableSettings,
)
from hudi_core.model.commit import (
    NO_PREVIOUS_COMMIT,
    CommitMetadata,
    ReplaceCommitMetadata,
    WriteOperation,
    WriteStat,
    WriteStatus,
)
from hudi_core.model.conflicts import TouchConflicts, outgoing_groups, touched_groups
from hudi_core.model.file_columns import FileColumns
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import (
    BaseFile,
    BaseFileName,
    BasePath,
    FileGroup,
    FileGroupId,
    FileId,
    FileSlice,
    FileStatus,
    LogFile,
    LogFileName,
    PartitionPath,
)
from hudi_core.model.format import (
    ACTION_KEY,
    COMPLETION_TIME_KEY,
    INSTANT_KEY,
    OPERATION_KEY,
    PARENT_KEY,
    WATERMARK_KEY,
    ConflictResolutionStrategy,
    FormatCommit,
    Granularity,
    MetadataFactory,
    Publication,
    PublishedInstants,
    TimelineFactory,
)
from hudi_core.model.found_table import FoundFile, FoundTable
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant, State
from hudi_core.model.instant_time import (
    EARLIEST,
    InstantTime,
    parse_instant_time,
    to_datetime,
    to_epoch_millis,
)
from hudi_core.model.named_files import NamedFile, StatedColumn
from hudi_core.model.partition_transform import PartitionTransform
from hudi_core.model.protocols import LockProvider, Storage, TimelineView
from hudi_core.model.ranges import ValueRanges
from hudi_core.model.stats import ColumnStats, FileStats, Scalar
from hudi_core.model.timeline_zone import TimelineZone
from hudi_core.plugin.fenced import Lineage, fence, pending_publications
from hudi_core.plugin.foreign import Raised, attempt
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FORMAT_GROUP, OBSERVER_GROUP
from hudi_core.schema.arrow_types import field_id, leaves
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.data_files import require_no_links
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.strategy import StorageStrategy
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.locks import InProcessLock
from hudi_core.view.storage_lister import StorageLister

__all__ = [
    "ACTION_KEY",
    "COMPLETION_TIME_KEY",
    "EARLIEST",
    "FORMAT_GROUP",
    "INSTANT_KEY",
    "NO_PREVIOUS_COMMIT",
    "OBSERVER_GROUP",
    "OPERATION_KEY",
    "PARENT_KEY",
    "SCHEMA_EVOLUTION",
    "WATERMARK_KEY",
    "WRITE_ACTIONS",
    "Action",
    "ActionInstant",
    "AlreadyExistsError",
    "BaseFile",
    "BaseFileName",
    "BasePath",
    "Capability",
    "CleanFileInfo",
    "CleanMetadata",
    "CleanPartitionMetadata",
    "CleanerPlan",
    "ColumnStats",
    "CommitConflictError",
    "CommitError",
    "CommitMetadata",
    "CommitStateUnknownError",
    "ConfigError",
    "ConflictResolutionStrategy",
    "CorruptMetadataError",
    "DataPlaces",
    "FileColumns",
    "FileGroup",
    "FileGroupId",
    "FileId",
    "FileIndex",
    "FileSlice",
    "FileStats",
    "FileStatus",
    "FileSystemViewManager",
    "Footer",
    "FormatCapabilities",
    "FormatCommit",
    "FormatHost",
    "FormatOption",
    "FoundFile",
    "FoundTable",
    "Granularity",
    "HudiError",
    "InProcessLock",
    "IncompleteCommitError",
    "Instant",
    "InstantInfo",
    "InstantNotFoundError",
    "InstantTime",
    "InvalidOptionError",
    "Lineage",
    "LockError",
    "LockProvider",
    "LogFile",
    "LogFileName",
    "MetaClientView",
    "MetadataFactory",
    "NamedFile",
    "PartitionPath",
    "PartitionTransform",
    "PathNotFoundError",
    "PluginError",
    "PreconditionFailedError",
    "Publication",
    "PublishedInstants",
    "Raised",
    "ReplaceCommitMetadata",
    "RestoreMetadata",
    "RestorePlan",
    "RollbackMetadata",
    "RollbackPartitionMetadata",
    "RunMap",
    "SavepointMetadata",
    "SavepointPartitionMetadata",
    "Scalar",
    "SchemaError",
    "SliceView",
    "State",
    "StatedColumn",
    "Storage",
    "StorageError",
    "StorageLister",
    "StorageOptions",
    "StorageStrategy",
    "TableFormatHooks",
    "TableMetaClient",
    "TableSchema",
    "TableServiceError",
    "TableSettings",
    "Timeline",
    "TimelineFactory",
    "TimelineView",
    "TimelineZone",
    "TouchConflicts",
    "UnfinishedMoveError",
    "UnsafePathError",
    "UnsupportedCapabilityError",
    "UnsupportedTableError",
    "ValueRanges",
    "WriteOperation",
    "WriteStat",
    "WriteStatus",
    "attempt",
    "fence",
    "field_id",
    "footer_statistics",
    "hookimpl",
    "leaves",
    "outgoing_groups",
    "parse_instant_time",
    "pending_publications",
    "read_footer",
    "read_statistics",
    "require_no_links",
    "table_lister",
    "to_datetime",
    "to_epoch_millis",
    "touched_groups",
]
