"""Names for authors of table formats, observers and extensions to import.

They import nothing else of the project. The bases of the small extension points are imported at
first use: what a key generator needs on an executor is not what a lock needs.

These names are the promise: a plugin that uses only them keeps working within a major version.
:mod:`hudi_core.hookspecs` is the text to read first.
"""

from typing import TYPE_CHECKING, Final

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
    ExtensionCallError,
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
    UnknownExtensionError,
    UnsafePathError,
    UnsupportedCapabilityError,
    UnsupportedTableError,
)
from hudi_core.extension.foreign import Raised, attempt
from hudi_core.hookspecs import TableFormatHooks, hookimpl
from hudi_core.lazy import lazy_names
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
from hudi_core.model.registration import NumberedFiles, Registration
from hudi_core.model.stats import ColumnStats, FileStats, Scalar
from hudi_core.model.timeline_zone import TimelineZone
from hudi_core.plugin.fenced import Lineage, fence, pending_publications
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

if TYPE_CHECKING:
    from hudi_core.config.extension_points import load_extension
    from hudi_core.index.base import Candidates, Matches, join_keys
    from hudi_core.index.named import BaseIndex
    from hudi_core.keygen.base import KeyColumn, KeyColumns
    from hudi_core.keygen.named import BaseKeyGenerator
    from hudi_core.model.conflict_strategy import BaseConflictStrategy
    from hudi_core.rows.merger import BaseRecordMerger
    from hudi_core.txn.locks.base import BaseLockProvider
    from hudi_core.txn.locks.place import LockPlace

_HOMES: Final = {
    "BaseConflictStrategy": "hudi_core.model.conflict_strategy",
    "BaseIndex": "hudi_core.index.named",
    "BaseKeyGenerator": "hudi_core.keygen.named",
    "BaseLockProvider": "hudi_core.txn.locks.base",
    "BaseRecordMerger": "hudi_core.rows.merger",
    "Candidates": "hudi_core.index.base",
    "KeyColumn": "hudi_core.keygen.base",
    "KeyColumns": "hudi_core.keygen.base",
    "LockPlace": "hudi_core.txn.locks.place",
    "Matches": "hudi_core.index.base",
    "join_keys": "hudi_core.index.base",
    "load_extension": "hudi_core.config.extension_points",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)

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
    "BaseConflictStrategy",
    "BaseFile",
    "BaseFileName",
    "BaseIndex",
    "BaseKeyGenerator",
    "BaseLockProvider",
    "BasePath",
    "BaseRecordMerger",
    "Candidates",
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
    "ExtensionCallError",
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
    "KeyColumn",
    "KeyColumns",
    "Lineage",
    "LockError",
    "LockPlace",
    "LockProvider",
    "LogFile",
    "LogFileName",
    "Matches",
    "MetaClientView",
    "MetadataFactory",
    "NamedFile",
    "NumberedFiles",
    "PartitionPath",
    "PartitionTransform",
    "PathNotFoundError",
    "PluginError",
    "PreconditionFailedError",
    "Publication",
    "PublishedInstants",
    "Raised",
    "Registration",
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
    "UnknownExtensionError",
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
    "join_keys",
    "leaves",
    "load_extension",
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
