"""The Avro schemas of what table services leave on the timeline.

Names, order and unions are those of Hudi 1.x; see :mod:`hudi_core.timeline.serde.schemas`.
"""

from __future__ import annotations

from typing import Final

from hudi_core.timeline.serde.schema_parts import (
    STRING,
    VERSION,
    array,
    mapping,
    optional,
    record,
    required,
    top_record,
)

_LAST_COMPLETED: Final = {"name": "lastCompletedCommitTimestamp", "type": STRING, "default": ""}

_ACTION_INSTANT: Final = record(
    "HoodieActionInstant",
    required("timestamp", STRING),
    required("action", STRING),
    required("state", STRING),
)

_CLEAN_FILE: Final = record(
    "HoodieCleanFileInfo",
    *optional(STRING, "filePath"),
    *optional("boolean", "isBootstrapBaseFile"),
)

CLEANER_PLAN: Final = top_record(
    "HoodieCleanerPlan",
    *optional(_ACTION_INSTANT, "earliestInstantToRetain"),
    _LAST_COMPLETED,
    required("policy", STRING),
    *optional(mapping(array(STRING)), "filesToBeDeletedPerPartition"),
    VERSION,
    *optional(mapping(array(_CLEAN_FILE)), "filePathsToBeDeletedPerPartition"),
    *optional(array(STRING), "partitionsToBeDeleted"),
    *optional(mapping(STRING), "extraMetadata"),
)

_CLEAN_PARTITION: Final = record(
    "HoodieCleanPartitionMetadata",
    required("partitionPath", STRING),
    required("policy", STRING),
    required("deletePathPatterns", array(STRING)),
    required("successDeleteFiles", array(STRING)),
    required("failedDeleteFiles", array(STRING)),
    *optional("boolean", "isPartitionDeleted"),
)

CLEAN: Final = top_record(
    "HoodieCleanMetadata",
    required("startCleanTime", STRING),
    required("timeTakenInMillis", "long"),
    required("totalFilesDeleted", "int"),
    required("earliestCommitToRetain", STRING),
    _LAST_COMPLETED,
    required("partitionMetadata", mapping(_CLEAN_PARTITION)),
    VERSION,
    # a record is defined where it comes first and named from then on
    *optional(mapping(_CLEAN_PARTITION["name"]), "bootstrapPartitionMetadata"),
    *optional(mapping(STRING), "extraMetadata"),
)

_COMPACTION_OPERATION: Final = record(
    "HoodieCompactionOperation",
    required("baseInstantTime", ["null", STRING]),
    *optional(array(STRING), "deltaFilePaths"),
    *optional(STRING, "dataFilePath"),
    required("fileId", ["null", STRING]),
    *optional(STRING, "partitionPath"),
    *optional(mapping("double"), "metrics"),
    *optional(STRING, "bootstrapFilePath"),
)

_COMPACTION_STRATEGY: Final = record(
    "HoodieCompactionStrategy",
    *optional(STRING, "compactorClassName"),
    *optional(mapping(STRING), "strategyParams"),
    VERSION,
)

COMPACTION_PLAN: Final = top_record(
    "HoodieCompactionPlan",
    *optional(array(_COMPACTION_OPERATION), "operations"),
    *optional(mapping(STRING), "extraMetadata"),
    VERSION,
    *optional(_COMPACTION_STRATEGY, "strategy"),
    {"name": "preserveHoodieMetadata", "type": ["boolean", "null"], "default": False},
    *optional(array(STRING), "missingSchedulePartitions"),
)

_SAVEPOINT_PARTITION: Final = record(
    "HoodieSavepointPartitionMetadata",
    required("partitionPath", STRING),
    required("savepointDataFile", array(STRING)),
)

SAVEPOINT: Final = top_record(
    "HoodieSavepointMetadata",
    required("savepointedBy", STRING),
    required("savepointedAt", "long"),
    required("comments", STRING),
    required("partitionMetadata", mapping(_SAVEPOINT_PARTITION)),
)

_INDEX_PARTITION: Final = record(
    "HoodieIndexPartitionInfo",
    VERSION,
    *optional(STRING, "metadataPartitionPath"),
    *optional(STRING, "indexUptoInstant"),
    *optional(mapping(STRING), "extraMetadata"),
)

INDEX_PLAN: Final = top_record(
    "HoodieIndexPlan",
    VERSION,
    *optional(array(_INDEX_PARTITION), "indexPartitionInfos"),
)

INDEX_COMMIT: Final = top_record(
    "HoodieIndexCommitMetadata",
    VERSION,
    *optional(STRING, "operationType"),
    *optional(array(_INDEX_PARTITION), "indexPartitionInfos"),
)
