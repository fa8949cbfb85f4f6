"""What the summary of a snapshot counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table.snapshots import Operation, Snapshot

from iceberg_format.manifest_files import vector_place


def change_summary(
    added: Sequence[DataFile],
    removed: Sequence[DataFile],
    before: Mapping[str, str],
    same_rows: bool = False,
) -> tuple[Operation, dict[str, str]]:
    """Return the operation of a snapshot and its counts.

    Files are of data or of deleted rows.
    """
    came, went = _counts(added), _counts(removed)
    changed = {(one.spec_id, repr(one.partition)) for one in (*added, *removed)}
    counts = {
        **{f"added-{key}": str(number) for key, number in came.items() if number},
        # data files are said to be deleted, other files to be removed
        **{
            f"{'deleted' if key in _DATA else 'removed'}-{key}": str(number)
            for key, number in went.items()
            if number
        },
    }
    if changed:
        counts["changed-partition-count"] = str(len(changed))
    for key in _TOTALS:
        total = int(before.get(f"total-{key}", "0")) + came.get(key, 0) - went.get(key, 0)
        counts[f"total-{key}"] = str(total)
    return _operation(came, went, same_rows), counts


_DATA = ("data-files", "records")
_TOTALS = (
    *(*_DATA, "files-size"),
    *("delete-files", "position-deletes", "equality-deletes"),
)


def _counts(files: Sequence[DataFile]) -> dict[str, int]:
    data = [one for one in files if one.content is DataFileContent.DATA]
    deletions = [one for one in files if one.content is not DataFileContent.DATA]
    vectors = sum(one.file_format is FileFormat.PUFFIN for one in deletions)
    return {
        "data-files": len(data),
        "records": sum(one.record_count for one in data),
        "files-size": sum(map(_size, files)),
        "delete-files": len(deletions),
        "position-delete-files": len(deletions) - vectors,
        "dvs": vectors,
        "position-deletes": sum(one.record_count for one in deletions),
    }


def _size(file: DataFile) -> int:
    """Bytes of a file, or of the vector in it."""
    place = vector_place(file)
    return file.file_size_in_bytes if place is None else place[1]


def _operation(came: Mapping[str, int], went: Mapping[str, int], same_rows: bool) -> Operation:
    if same_rows:
        return Operation.REPLACE
    if came["data-files"]:
        is_more = not went["data-files"] and not came["delete-files"]
        return Operation.APPEND if is_more else Operation.OVERWRITE
    is_less = went["data-files"] or came["delete-files"]
    return Operation.DELETE if is_less else Operation.APPEND


def has_deletions(snapshot: Snapshot) -> bool:
    """Whether rows of a snapshot's data files are deleted by position."""
    found = snapshot.summary.additional_properties if snapshot.summary else {}
    return found.get("total-delete-files", "0") != "0"
