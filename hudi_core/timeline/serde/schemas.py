"""The Avro schemas instant files are written with.

Names, order and unions are those of ``hudi-format`` section 3; readers written in Java resolve by
them. The attribute ``avro.java.string`` makes generic Java readers return ``String`` and means
nothing elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

AvroType: TypeAlias = str | dict[str, Any] | list[Any]

NAMESPACE: Final = "org.apache.hudi.avro.model"
STRING: Final[AvroType] = {"type": "string", "avro.java.string": "String"}
VERSION: Final[Mapping[str, Any]] = {"name": "version", "type": ["int", "null"], "default": 1}
"""Field of most records: the version of their content, 1 where nothing is written."""


def _array(items: AvroType) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _map(values: AvroType) -> dict[str, Any]:
    return {"type": "map", "values": values, "avro.java.string": "String"}


def _record(name: str, *fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [dict(field) for field in fields]}


def _top_record(name: str, *fields: Mapping[str, Any]) -> dict[str, Any]:
    return {**_record(name, *fields), "namespace": NAMESPACE}


def _required(name: str, kind: AvroType) -> dict[str, Any]:
    return {"name": name, "type": kind}


def _list(name: str, items: AvroType) -> dict[str, Any]:
    """Return a field that holds an array, empty where nothing is written."""
    return {"name": name, "type": _array(items), "default": []}


def _optional(kind: AvroType, *names: str) -> tuple[dict[str, Any], ...]:
    """Return one field per name that holds null or ``kind``, null where nothing is written."""
    return tuple({"name": name, "type": ["null", kind], "default": None} for name in names)


_RUNTIME_STATS: Final = _record(
    "HoodieRuntimeStats",
    *_optional("long", "totalScanTime", "totalCreateTime", "totalUpsertTime"),
)

_WRITE_STAT: Final = _record(
    "HoodieWriteStat",
    *_optional(STRING, "fileId", "path", "prevCommit"),
    *_optional("long", "numWrites", "numDeletes", "numUpdateWrites"),
    *_optional("long", "totalWriteBytes", "totalWriteErrors"),
    *_optional(STRING, "partitionPath"),
    *_optional("long", "totalLogRecords", "totalLogFiles", "totalUpdatedRecordsCompacted"),
    *_optional("long", "numInserts", "totalLogBlocks", "totalCorruptLogBlock"),
    *_optional("long", "totalRollbackBlocks", "fileSizeInBytes"),
    *_optional("int", "logVersion"),
    *_optional("long", "logOffset"),
    *_optional(STRING, "baseFile"),
    *_optional(_array(STRING), "logFiles"),
    *_optional(_map("long"), "cdcStats"),
    *_optional(STRING, "prevBaseFile"),
    *_optional("long", "minEventTime", "maxEventTime"),
    *_optional(_RUNTIME_STATS, "runtimeStats"),
    *_optional("long", "totalLogFilesCompacted", "totalLogReadTimeMs", "totalLogSizeCompacted"),
    *_optional(STRING, "tempPath"),
    *_optional("long", "numUpdates"),
)

_COMMIT_FIELDS: Final = (
    *_optional(_map(_array(_WRITE_STAT)), "partitionToWriteStats"),
    *_optional("boolean", "compacted"),
    *_optional(_map(STRING), "extraMetadata"),
    VERSION,
    *_optional(STRING, "operationType"),
)

COMMIT: Final = _top_record("HoodieCommitMetadata", *_COMMIT_FIELDS)

REPLACE_COMMIT: Final = _top_record(
    "HoodieReplaceCommitMetadata",
    *_COMMIT_FIELDS,
    *_optional(_map(_array(STRING)), "partitionToReplaceFileIds"),
)

_SLICE: Final = _record(
    "HoodieSliceInfo",
    *_optional(STRING, "dataFilePath"),
    *_optional(_array(STRING), "deltaFilePaths"),
    *_optional(STRING, "fileId", "partitionPath", "bootstrapFilePath"),
    VERSION,
)

_CLUSTERING_GROUP: Final = _record(
    "HoodieClusteringGroup",
    *_optional(_array(_SLICE), "slices"),
    *_optional(_map("double"), "metrics"),
    {"name": "numOutputFileGroups", "type": ["int", "null"], "default": 1},
    *_optional(_map(STRING), "extraMetadata"),
    VERSION,
)

_CLUSTERING_STRATEGY: Final = _record(
    "HoodieClusteringStrategy",
    *_optional(STRING, "strategyClassName"),
    *_optional(_map(STRING), "strategyParams"),
    VERSION,
)

_CLUSTERING_PLAN: Final = _record(
    "HoodieClusteringPlan",
    *_optional(_array(_CLUSTERING_GROUP), "inputGroups"),
    *_optional(_CLUSTERING_STRATEGY, "strategy"),
    *_optional(_map(STRING), "extraMetadata"),
    VERSION,
    *_optional("boolean", "preserveHoodieMetadata"),
    *_optional(_array(STRING), "missingSchedulePartitions"),
)

REQUESTED_REPLACE: Final = _top_record(
    "HoodieRequestedReplaceMetadata",
    *_optional(STRING, "operationType"),
    *_optional(_CLUSTERING_PLAN, "clusteringPlan"),
    *_optional(_map(STRING), "extraMetadata"),
    VERSION,
)

_INSTANT_INFO: Final = _record(
    "HoodieInstantInfo", _required("commitTime", STRING), _required("action", STRING)
)

_ROLLBACK_REQUEST: Final = _record(
    "HoodieRollbackRequest",
    _required("partitionPath", STRING),
    *_optional(STRING, "fileId", "latestBaseInstant"),
    _list("filesToBeDeleted", STRING),
    *_optional(_map("long"), "logBlocksToBeDeleted"),
)

ROLLBACK_PLAN: Final = _top_record(
    "HoodieRollbackPlan",
    *_optional(_INSTANT_INFO, "instantToRollback"),
    *_optional(_array(_ROLLBACK_REQUEST), "RollbackRequests"),
    VERSION,
)

_ROLLBACK_PARTITION: Final = _record(
    "HoodieRollbackPartitionMetadata",
    _required("partitionPath", STRING),
    _required("successDeleteFiles", _array(STRING)),
    _required("failedDeleteFiles", _array(STRING)),
    *_optional(_map("long"), "rollbackLogFiles", "logFilesFromFailedCommit"),
)

ROLLBACK: Final = _top_record(
    "HoodieRollbackMetadata",
    _required("startRollbackTime", STRING),
    _required("timeTakenInMillis", "long"),
    _required("totalFilesDeleted", "int"),
    _required("commitsRollback", _array(STRING)),
    _required("partitionMetadata", _map(_ROLLBACK_PARTITION)),
    VERSION,
    _list("instantsRollback", _INSTANT_INFO),
)
