"""The one tree of errors.

Every error carries its facts as attributes, builds its message from them, and ends with a sentence
that says what to do. ``retryable`` is whether the same call may succeed when it is made again
unchanged.
"""

from hudi_core.errors.base import (
    HudiError,
    MetaSyncWarning,
    PluginContractWarning,
    UnknownOptionWarning,
)
from hudi_core.errors.commit import (
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    CommitValidationError,
    ConcurrentWriterError,
    ForeignCommitError,
    IncompleteCommitError,
    PendingClusteringError,
    StageConflictError,
    UnpublishedCommitsError,
)
from hudi_core.errors.config import (
    ConfigError,
    InvalidOptionError,
    OptionConflictError,
    StoragePathTakenError,
    UnfinishedMoveError,
    UnsupportedTableError,
)
from hudi_core.errors.damage import (
    CorruptMetadataError,
    ForeignMetadataError,
    LostCompletionError,
    MissingMetadataError,
    NotATableError,
)
from hudi_core.errors.metastore import (
    MetastoreEntryError,
    MetastoreError,
    MetastoreRefusalError,
    MetaSyncError,
)
from hudi_core.errors.plugins import (
    CommandConflictError,
    CommandLoadError,
    ExtensionCallError,
    PluginConflictError,
    PluginContractError,
    PluginError,
    PluginHookError,
    PluginLoadError,
    TableClosedError,
    UnknownExtensionError,
    UnknownTableFormatError,
    UnsupportedCapabilityError,
)
from hudi_core.errors.resources import (
    ForkedProcessError,
    LockError,
    OutdatedScanError,
    RefusedCallError,
    ResourceLimitError,
    ScanClosedError,
    TaskFailedError,
)
from hudi_core.errors.schema import (
    DuplicateRecordKeyError,
    ExpressionLimitError,
    KeyCollisionError,
    MergeCardinalityError,
    PartitionValueError,
    RecordKeyError,
    SchemaError,
    UnknownPartitionError,
)
from hudi_core.errors.services import (
    TableServiceError,
    UnknownStageError,
)
from hudi_core.errors.storage import (
    AlreadyExistsError,
    DataFileError,
    IncompleteListingError,
    MisplacedFileError,
    PathNotFoundError,
    PreconditionFailedError,
    SourceFileError,
    StorageError,
    UnsafePathError,
    UnsafeStoreError,
)
from hudi_core.errors.timeline import (
    HistoryExpiredError,
    InstantNotFoundError,
    InvalidInstantTimeError,
    TimelineError,
    TimeOutOfRangeError,
)

__all__ = [
    "AlreadyExistsError",
    "CommandConflictError",
    "CommandLoadError",
    "CommitConflictError",
    "CommitError",
    "CommitStateUnknownError",
    "CommitValidationError",
    "ConcurrentWriterError",
    "ConfigError",
    "CorruptMetadataError",
    "DataFileError",
    "DuplicateRecordKeyError",
    "ExpressionLimitError",
    "ExtensionCallError",
    "ForeignCommitError",
    "ForeignMetadataError",
    "ForkedProcessError",
    "HistoryExpiredError",
    "HudiError",
    "IncompleteCommitError",
    "IncompleteListingError",
    "InstantNotFoundError",
    "InvalidInstantTimeError",
    "InvalidOptionError",
    "KeyCollisionError",
    "LockError",
    "LostCompletionError",
    "MergeCardinalityError",
    "MetaSyncError",
    "MetaSyncWarning",
    "MetastoreEntryError",
    "MetastoreError",
    "MetastoreRefusalError",
    "MisplacedFileError",
    "MissingMetadataError",
    "NotATableError",
    "OptionConflictError",
    "OutdatedScanError",
    "PartitionValueError",
    "PathNotFoundError",
    "PendingClusteringError",
    "PluginConflictError",
    "PluginContractError",
    "PluginContractWarning",
    "PluginError",
    "PluginHookError",
    "PluginLoadError",
    "PreconditionFailedError",
    "RecordKeyError",
    "RefusedCallError",
    "ResourceLimitError",
    "ScanClosedError",
    "SchemaError",
    "SourceFileError",
    "StageConflictError",
    "StorageError",
    "StoragePathTakenError",
    "TableClosedError",
    "TableServiceError",
    "TaskFailedError",
    "TimeOutOfRangeError",
    "TimelineError",
    "UnfinishedMoveError",
    "UnknownExtensionError",
    "UnknownOptionWarning",
    "UnknownPartitionError",
    "UnknownStageError",
    "UnknownTableFormatError",
    "UnpublishedCommitsError",
    "UnsafePathError",
    "UnsafeStoreError",
    "UnsupportedCapabilityError",
    "UnsupportedTableError",
]

for _name in __all__:
    # messages and pickles name what users import
    globals()[_name].__module__ = __name__
