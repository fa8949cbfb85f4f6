"""What the summary of a snapshot counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyiceberg.manifest import DataFile
from pyiceberg.table.snapshots import Operation

_DELETES = ("total-delete-files", "total-position-deletes", "total-equality-deletes")


def change_summary(
    added: Sequence[DataFile],
    removed: Sequence[DataFile],
    before: Mapping[str, str],
    same_rows: bool = False,
) -> tuple[Operation, dict[str, str]]:
    """Return the operation of a snapshot and its counts."""
    counted = {
        "added-data-files": len(added),
        "added-records": sum(one.record_count for one in added),
        "added-files-size": sum(one.file_size_in_bytes for one in added),
        "deleted-data-files": len(removed),
        "deleted-records": sum(one.record_count for one in removed),
        "removed-files-size": sum(one.file_size_in_bytes for one in removed),
        "changed-partition-count": len(
            {(one.spec_id, repr(one.partition)) for one in (*added, *removed)}
        ),
    }
    totals = {
        "total-data-files": counted["added-data-files"] - counted["deleted-data-files"],
        "total-records": counted["added-records"] - counted["deleted-records"],
        "total-files-size": counted["added-files-size"] - counted["removed-files-size"],
        **dict.fromkeys(_DELETES, 0),
    }
    counts = {key: str(number) for key, number in counted.items() if number}
    counts |= {key: str(int(before.get(key, "0")) + change) for key, change in totals.items()}
    return _operation(added, removed, same_rows), counts


def _operation(
    added: Sequence[DataFile], removed: Sequence[DataFile], same_rows: bool
) -> Operation:
    if same_rows:
        return Operation.REPLACE
    if not removed:
        return Operation.APPEND
    return Operation.OVERWRITE if added else Operation.DELETE
