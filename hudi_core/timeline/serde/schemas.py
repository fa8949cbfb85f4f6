"""The Avro schemas instant files are written with.

Names, order and unions are those of ``hudi-format`` section 3; readers written in Java resolve by
them. The attribute ``avro.java.string`` makes generic Java readers return ``String`` and means
nothing elsewhere.
"""

from __future__ import annotations

from typing import Final

from hudi_core.timeline.serde.schema_parts import (
    NAMESPACE,
    STRING,
    VERSION,
    array,
    list_of,
    mapping,
    optional,
    record,
    required,
    top_record,
)

_RUNTIME_STATS: Final = record(
    "HoodieRuntimeStats",
    *optional("long", "totalScanTime", "totalCreateTime", "totalUpsertTime"),
)

_WRITE_STAT: Final = record(
    "HoodieWriteStat",
    *optional(STRING, "fileId", "path", "prevCommit"),
    *optional("long", "numWrites", "numDeletes", "numUpdateWrites"),
    *optional("long", "totalWriteBytes", "totalWriteErrors"),
    *optional(STRING, "partitionPath"),
    *optional("long", "totalLogRecords", "totalLogFiles", "totalUpdatedRecordsCompacted"),
    *optional("long", "numInserts", "totalLogBlocks", "totalCorruptLogBlock"),
    *optional("long", "totalRollbackBlocks", "fileSizeInBytes"),
    *optional("int", "logVersion"),
    *optional("long", "logOffset"),
    *optional(STRING, "baseFile"),
    *optional(array(STRING), "logFiles"),
    *optional(mapping("long"), "cdcStats"),
    *optional(STRING, "prevBaseFile"),
    *optional("long", "minEventTime", "maxEventTime"),
    *optional(_RUNTIME_STATS, "runtimeStats"),
    *optional("long", "totalLogFilesCompacted", "totalLogReadTimeMs", "totalLogSizeCompacted"),
    *optional(STRING, "tempPath"),
    *optional("long", "numUpdates"),
)

_COMMIT_FIELDS: Final = (
    *optional(mapping(array(_WRITE_STAT)), "partitionToWriteStats"),
    *optional("boolean", "compacted"),
    *optional(mapping(STRING), "extraMetadata"),
    VERSION,
    *optional(STRING, "operationType"),
)

COMMIT: Final = top_record("HoodieCommitMetadata", *_COMMIT_FIELDS)

REPLACE_COMMIT: Final = top_record(
    "HoodieReplaceCommitMetadata",
    *_COMMIT_FIELDS,
    *optional(mapping(array(STRING)), "partitionToReplaceFileIds"),
)

_SLICE: Final = record(
    "HoodieSliceInfo",
    *optional(STRING, "dataFilePath"),
    *optional(array(STRING), "deltaFilePaths"),
    *optional(STRING, "fileId", "partitionPath", "bootstrapFilePath"),
    VERSION,
)

_CLUSTERING_GROUP: Final = record(
    "HoodieClusteringGroup",
    *optional(array(_SLICE), "slices"),
    *optional(mapping("double"), "metrics"),
    {"name": "numOutputFileGroups", "type": ["int", "null"], "default": 1},
    *optional(mapping(STRING), "extraMetadata"),
    VERSION,
)

_CLUSTERING_STRATEGY: Final = record(
    "HoodieClusteringStrategy",
    *optional(STRING, "strategyClassName"),
    *optional(mapping(STRING), "strategyParams"),
    VERSION,
)

_CLUSTERING_PLAN: Final = record(
    "HoodieClusteringPlan",
    *optional(array(_CLUSTERING_GROUP), "inputGroups"),
    *optional(_CLUSTERING_STRATEGY, "strategy"),
    *optional(mapping(STRING), "extraMetadata"),
    VERSION,
    *optional("boolean", "preserveHoodieMetadata"),
    *optional(array(STRING), "missingSchedulePartitions"),
)

REQUESTED_REPLACE: Final = top_record(
    "HoodieRequestedReplaceMetadata",
    *optional(STRING, "operationType"),
    *optional(_CLUSTERING_PLAN, "clusteringPlan"),
    *optional(mapping(STRING), "extraMetadata"),
    VERSION,
)

_INSTANT_INFO: Final = record(
    "HoodieInstantInfo", required("commitTime", STRING), required("action", STRING)
)

_ROLLBACK_REQUEST: Final = record(
    "HoodieRollbackRequest",
    required("partitionPath", STRING),
    *optional(STRING, "fileId", "latestBaseInstant"),
    list_of("filesToBeDeleted", STRING),
    *optional(mapping("long"), "logBlocksToBeDeleted"),
)

ROLLBACK_PLAN: Final = top_record(
    "HoodieRollbackPlan",
    *optional(_INSTANT_INFO, "instantToRollback"),
    *optional(array(_ROLLBACK_REQUEST), "RollbackRequests"),
    VERSION,
)

_ROLLBACK_PARTITION: Final = record(
    "HoodieRollbackPartitionMetadata",
    required("partitionPath", STRING),
    required("successDeleteFiles", array(STRING)),
    required("failedDeleteFiles", array(STRING)),
    *optional(mapping("long"), "rollbackLogFiles", "logFilesFromFailedCommit"),
)

_ROLLBACK: Final = record(
    "HoodieRollbackMetadata",
    required("startRollbackTime", STRING),
    required("timeTakenInMillis", "long"),
    required("totalFilesDeleted", "int"),
    required("commitsRollback", array(STRING)),
    required("partitionMetadata", mapping(_ROLLBACK_PARTITION)),
    VERSION,
    list_of("instantsRollback", _INSTANT_INFO),
)

ROLLBACK: Final = {**_ROLLBACK, "namespace": NAMESPACE}

RESTORE_PLAN: Final = top_record(
    "HoodieRestorePlan",
    list_of("instantsToRollback", _INSTANT_INFO),
    {"name": "version", "type": ["int", "null"], "default": 2},
    *optional(STRING, "savepointToRestoreTimestamp"),
)

RESTORE: Final = top_record(
    "HoodieRestoreMetadata",
    required("startRestoreTime", STRING),
    required("timeTakenInMillis", "long"),
    required("instantsToRollback", array(STRING)),
    required("hoodieRestoreMetadata", mapping(array(["null", _ROLLBACK]))),
    VERSION,
    # a record is defined where it comes first and named from then on
    list_of("restoreInstantInfo", _INSTANT_INFO["name"]),
)
