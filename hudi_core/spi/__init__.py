"""Names for authors of table formats, observers and extensions to import.

They import nothing else of the project, but :mod:`hudi_core.spi.files`, functions over data files
and their statistics, and in tests :mod:`hudi_core.spi.testing`. The bases of the small extension
points are imported at first use: what a key generator needs on an executor is not what a lock
needs.

These names are the promise: a plugin that uses only them keeps working within a major contract.
:mod:`hudi_core.hookspecs` is the text to read first.
"""

from typing import TYPE_CHECKING, Any, Final

from hudi_core.config.format_option import FormatOption
from hudi_core.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    CommitValidationError,
    ConcurrentWriterError,
    ConfigError,
    CorruptMetadataError,
    DataFileError,
    ExtensionCallError,
    ForeignCommitError,
    ForeignMetadataError,
    ForkedProcessError,
    HudiError,
    IncompleteCommitError,
    IncompleteListingError,
    InstantNotFoundError,
    InvalidInstantTimeError,
    InvalidOptionError,
    LockError,
    LostCompletionError,
    MisplacedFileError,
    MissingMetadataError,
    NotATableError,
    OptionConflictError,
    PartitionValueError,
    PathNotFoundError,
    PluginContractError,
    PluginContractWarning,
    PluginError,
    PluginHookError,
    PreconditionFailedError,
    SchemaError,
    StorageError,
    TableClosedError,
    TableServiceError,
    UnfinishedMoveError,
    UnknownExtensionError,
    UnsafePathError,
    UnsafeStoreError,
    UnsupportedCapabilityError,
    UnsupportedTableError,
)
from hudi_core.extension.guard import Raised, attempt, require_same_process
from hudi_core.hookspecs import HOOKS, SPI_VERSION, TableFormat, hookimpl
from hudi_core.hookspecs.recording import Completion, RecordingFormat, passed_on
from hudi_core.lazy import lazy_names
from hudi_core.model.actions import (
    CleanerPlan,
    CleanFileInfo,
    CleanMetadata,
    InstantInfo,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    SavepointMetadata,
    SavepointPartitionMetadata,
)
from hudi_core.model.capability import Capability, FormatCapabilities
from hudi_core.model.client import (
    DataPlaces,
    FileSystemViewManager,
    MetaClientView,
    SliceView,
    StoreAccess,
    TableSettings,
)
from hudi_core.model.commit import (
    CommitMetadata,
    ReplaceCommitMetadata,
    WriteOperation,
    WriteStat,
    WriteStatus,
)
from hudi_core.model.conflicts import TouchConflicts, outgoing_groups, touched_groups, written_files
from hudi_core.model.extra_metadata import TAKES_IN_KEY, TakenIn
from hudi_core.model.file_columns import FileColumns
from hudi_core.model.file_index import FileIndex, NamedFile, StatedColumn
from hudi_core.model.files import (
    BaseFile,
    BaseFileName,
    FileGroup,
    FileGroupId,
    FileId,
    FileSlice,
    FileStatus,
    LogFile,
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
    NumberedFiles,
    Publication,
    PublishedInstants,
    Registration,
    TimelineFactory,
    instant_keys,
)
from hudi_core.model.found_table import FoundFile, FoundTable
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant, State
from hudi_core.model.instant_time import (
    EARLIEST,
    InstantTime,
    TimelineZone,
    parse_instant_time,
    to_datetime,
    to_epoch_millis,
)
from hudi_core.model.partition_transform import PartitionTransform
from hudi_core.model.protocols import LockProvider, Storage, TimelineView
from hudi_core.model.ranges import ValueRanges
from hudi_core.model.stats import ColumnStats, FileStats, Scalar
from hudi_core.plugin.fenced import Lineage, fence, warn_of_foreign_commits
from hudi_core.plugin.versions import former_name
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.strategies import StorageStrategy
from hudi_core.txn.locks.in_process import HeldLock, InProcessLock
from hudi_core.txn.locks.renewal import Renewal

if TYPE_CHECKING:
    from hudi_core.config.extension_points import load_extension
    from hudi_core.index.base import Candidates, Matches, join_keys
    from hudi_core.index.named import BaseIndex
    from hudi_core.keygen.base import KeyColumn, KeyColumns
    from hudi_core.keygen.named import BaseKeyGenerator
    from hudi_core.model.conflicts import BaseConflictStrategy
    from hudi_core.rows.merger import BaseRecordMerger
    from hudi_core.txn.locks.base import BaseLockProvider
    from hudi_core.txn.locks.place import LockPlace

_HOMES: Final = {
    "BaseConflictStrategy": "hudi_core.model.conflicts",
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

_find, __dir__ = lazy_names(__name__, _HOMES)


if not TYPE_CHECKING:  # type checkers know the names above, and no others

    def __getattr__(name: str) -> Any:
        found = None if name in _HOMES else former_name(name)
        return _find(name) if found is None else found


__all__ = [
    "ACTION_KEY",
    "COMPLETION_TIME_KEY",
    "EARLIEST",
    "HOOKS",
    "INSTANT_KEY",
    "OPERATION_KEY",
    "PARENT_KEY",
    "SPI_VERSION",
    "TAKES_IN_KEY",
    "WATERMARK_KEY",
    "WRITE_ACTIONS",
    "Action",
    "AlreadyExistsError",
    "BaseConflictStrategy",
    "BaseFile",
    "BaseFileName",
    "BaseIndex",
    "BaseKeyGenerator",
    "BaseLockProvider",
    "BaseRecordMerger",
    "Candidates",
    "Capability",
    "CleanFileInfo",
    "CleanMetadata",
    "CleanerPlan",
    "ColumnStats",
    "CommitConflictError",
    "CommitError",
    "CommitMetadata",
    "CommitStateUnknownError",
    "CommitValidationError",
    "Completion",
    "ConcurrentWriterError",
    "ConfigError",
    "ConflictResolutionStrategy",
    "CorruptMetadataError",
    "DataFileError",
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
    "ForeignCommitError",
    "ForeignMetadataError",
    "ForkedProcessError",
    "FormatCapabilities",
    "FormatCommit",
    "FormatOption",
    "FoundFile",
    "FoundTable",
    "Granularity",
    "HeldLock",
    "HudiError",
    "InProcessLock",
    "IncompleteCommitError",
    "IncompleteListingError",
    "Instant",
    "InstantInfo",
    "InstantNotFoundError",
    "InstantTime",
    "InvalidInstantTimeError",
    "InvalidOptionError",
    "KeyColumn",
    "KeyColumns",
    "Lineage",
    "LockError",
    "LockPlace",
    "LockProvider",
    "LogFile",
    "LostCompletionError",
    "Matches",
    "MetaClientView",
    "MetadataFactory",
    "MisplacedFileError",
    "MissingMetadataError",
    "NamedFile",
    "NotATableError",
    "NumberedFiles",
    "OptionConflictError",
    "PartitionPath",
    "PartitionTransform",
    "PartitionValueError",
    "PathNotFoundError",
    "PluginContractError",
    "PluginContractWarning",
    "PluginError",
    "PluginHookError",
    "PreconditionFailedError",
    "Publication",
    "PublishedInstants",
    "Raised",
    "RecordingFormat",
    "Registration",
    "Renewal",
    "ReplaceCommitMetadata",
    "RestoreMetadata",
    "RestorePlan",
    "RollbackMetadata",
    "SavepointMetadata",
    "SavepointPartitionMetadata",
    "Scalar",
    "SchemaError",
    "SliceView",
    "State",
    "StatedColumn",
    "Storage",
    "StorageError",
    "StorageStrategy",
    "StoreAccess",
    "TableClosedError",
    "TableFormat",
    "TableSchema",
    "TableServiceError",
    "TableSettings",
    "TakenIn",
    "TimelineFactory",
    "TimelineView",
    "TimelineZone",
    "TouchConflicts",
    "UnfinishedMoveError",
    "UnknownExtensionError",
    "UnsafePathError",
    "UnsafeStoreError",
    "UnsupportedCapabilityError",
    "UnsupportedTableError",
    "ValueRanges",
    "WriteOperation",
    "WriteStat",
    "WriteStatus",
    "attempt",
    "fence",
    "hookimpl",
    "instant_keys",
    "join_keys",
    "load_extension",
    "outgoing_groups",
    "parse_instant_time",
    "passed_on",
    "require_same_process",
    "to_datetime",
    "to_epoch_millis",
    "touched_groups",
    "warn_of_foreign_commits",
    "written_files",
]
