"""Results of the library as JSON objects, by tables of their keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final

_CALL: Final = "path dry_run=@dry_run"
_INSTANT: Final = "instant=requested_time action state completion_time archived=@archived"
_COUNTS: Final = "inserted=commit.inserted updated=commit.updated deleted=commit.deleted"
RESULTS: Final[Mapping[str, str]] = {
    "Adoption": f"{_CALL} from=source format=table_format files rows bytes=size partitions "
    "rewritten=is_rewritten keeps_history obstacles",
    "ArchiveResult": f"{_CALL} archived=instants active",
    "CleanResult": f"{_CALL} policy earliest_retained clean=instant files partitions",
    "Conversion": f"{_CALL} from=before to=after changed=is_made files bytes=size partitions "
    "instants pending version=receipt.version location=receipt.location",
    "DropResult": f"{_CALL} name format=table_format files bytes=size",
    "Expiry": f"{_CALL} strategy days partitions commit=commit.instant",
    "IngestResult": "path source name dry_run=@dry_run commits=batches late changed",
    "KeyRewrite": f"{_CALL} before after changed=@changed rows files bytes=size new_bytes=new_size "
    "instants",
    "MetadataRepair": f"{_CALL} resumed=is_resumed partitions *rebuilt",
    "PurgeResult": f"{_CALL} clean=instant files metadata_files",
    "Repair": "path format=table_format dry_run=@dry_run foreign taken_in found rebuilt=@rebuilt "
    "rewritten checksums_removed=checksums left",
    "RestoreResult": f"{_CALL} to restore=instant undone",
    "RollbackPreview": f"{_CALL} target=@instant files=paths",
    "StorageConversion": f"{_CALL} from=before to=after changed=is_made files bytes=size copied "
    "deleted pending",
    "SyncResult": f"{_CALL} tool address last_commit creates_database entries",
    "TableValidation": "path format=table_format valid=is_valid files rows differences checked "
    "skipped orphans repeated_keys",
    "Table": "path name=config.name format type=config.table_type mode=@mode "
    "version=config.version record_key=config.record_key_fields "
    "partition_by=config.partition_fields "
    "hive_style=config.hive_style key_generator=config.keygen_name ordering_field=@ordering_field "
    "merge_mode=config.merge_mode timezone=config.timezone zone=config.zone writes=@writes "
    "pending=@pending latest_write=@latest_write partitions=@partitions file_groups=@file_groups "
    "bytes=@bytes log_files=@log_files log_bytes=@log_bytes "
    "logs_since=@logs_since columns=@columns slices=@slices",
    "TypeConversion": f"{_CALL} from=before to=after changed=is_made slices logs log_bytes pending",
    "Upgrade": f"{_CALL} from=before to=after changed=@changed resumed=is_resumed "
    "properties=@properties timeline=@timeline archives pending=@pending slices logs "
    "metadata_partitions=partitions",
}
"""Keys by the class of a result, each with where its value is found.

``key`` is an attribute, ``key=a.b`` one of an attribute, and ``key=`` the result itself;
``key=@word`` is what the call says. ``*a`` has the keys of an attribute instead of its own, where
it is not ``None``, and ``*`` those of the result's class. Of a sequence, an attribute is that of
each item, and ``#`` their number.
"""
_PARTS: Final[Mapping[str, str]] = {
    "Clustering": "instant completed=result.instant.completion_time files logs bytes=size "
    "new_files new_bytes=result.bytes_written groups",
    "Compaction": "instant completed=result.instant.completion_time slices logs log_bytes "
    "new_files=result.files new_bytes=result.bytes_written",
    "Difference": "source subject expected found",
    "ForeignChanges": "format=table_format commits version hudi_version added_files=added.# "
    "added_rows removed_files=removed.# removed_rows deleted_rows changes_rows problem",
    "IngestedBatch": f"commit=commit.instant files bytes=size {_COUNTS}",
    "Instant": _INSTANT,
    "InstantStates": "*instant archived=is_archived format_state=in_format format_version=version "
    "seen_as=seen.state explanation",
    "FileStatus": "name size",
    "MetadataStats": "partitionCount=partition_count lastCompactionTimestamp=last_compaction "
    "isInSync=is_in_sync logFileCount=total.log_files totalBaseFileSizeInBytes=total.base_bytes "
    "totalLogFileSizeInBytes=total.log_bytes baseFileCount=total.base_files partitions",
    "PartitionSize": "baseFileCount=base_files logFileCount=log_files "
    "totalBaseFileSizeInBytes=base_bytes totalLogFileSizeInBytes=log_bytes",
    "Placement": "strategy paths",
    "FileSlice": "partition=partition_path file_group=file_id base_instant logs=log_files.# "
    "bytes=total_size",
    "PlannedGroup": "partition=partition_path files=files.path bytes=size new_files=outputs",
    "Rebuilt": "files records differences not_compared=unreadable orphans lost_indexes=gone",
    "RepeatedKey": "key files=paths",
    "RepeatedKeys": "keys rows examples",
    "Savepoint": "commit=instant.requested_time completion_time=instant.completion_time created "
    "user comment files",
    "Stage": f"stage=id operation {_COUNTS} created expires",
    "SyncedEntry": "database name change columns partitions_added=added partitions_changed=changed "
    "partitions_dropped=dropped compared_all_partitions=compares_all",
    "TakeIn": "rows inserted updated deleted instant",
}
"""The same of values within results."""

Words = Callable[[str], Any]
"""What a call says, by its name."""


def no_words(_: str) -> bool:
    """The words of a call that says nothing: every answer is no."""
    return False


def document_of(value: Any, words: Words = no_words, keys: str = "") -> dict[str, Any]:
    """A result as JSON; ``keys`` where :data:`RESULTS` lacks its class."""
    found: dict[str, Any] = {}
    for entry in RESULTS.get(type(value).__name__, keys).split():
        key, equals, path = entry.partition("=")
        if key.startswith("*"):
            part = _at(value, key[1:])
            found |= {} if part is None else plain(part, words)
        elif path.startswith("@"):
            found[key] = plain(words(path[1:]), words)
        else:
            found[key] = plain(_at(value, path if equals else key), words)
    return found


def _at(value: Any, path: str) -> Any:
    for step in filter(None, path.split(".")):
        if value is None:
            return None
        if step == "#":
            value = len(value)
        elif isinstance(value, list | tuple):
            value = [getattr(one, step) for one in value]
        else:
            value = getattr(value, step)
    return value


def plain(value: Any, words: Words = no_words) -> Any:
    """A value as JSON has it, by default its string."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: plain(each, words) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, words) for each in value]
    keys = _PARTS.get(type(value).__name__)
    return str(value) if keys is None else document_of(value, words, keys)
