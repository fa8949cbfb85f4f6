"""Tables that the scenes of the crash rig begin with."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from deltalake import DeltaTable

import hudi_core as hudi
from tests import tables
from tests.clock_set_back import clock_set_back
from tests.crash.kinds import LOGGED, STORED, creation_options, data_root
from tests.crash.rows import BASE, FIRST, NEW, SECOND, as_table
from tests.operators import operator
from tests.tables import SCHEMA
from tests.version_6 import to_version_6

SEVERAL: Final = "iceberg,delta"
"""Two formats in one commit."""
ALL_FORMATS: Final = (*tables.FORMATS, SEVERAL)
CANARY: Final = "canary-9c1e77d04b52"
"""A secret that must not be found again, in no file and no message."""
OPTIONS: Final = {
    "hoodie.fs.fsync": "false",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "fs.s3a.access.key": "crash-rig",
    "fs.s3a.secret.key": CANARY,
}

FEW_BLOCKS: Final = {"hoodie.log.compaction.blocks.threshold": "2"}
"""Has a log compaction merge what few commits leave."""
RETAINED: Final = {"hoodie.cleaner.commits.retained": "1"}
"""Has a clean delete what the last commits do not need."""


def create(path: Path, format_name: str) -> None:
    """Make the table that every scene begins with."""
    create_of(STORED, path, format_name)


def create_of(kind: str, path: Path, format_name: str) -> None:
    """Make the same table of another kind."""
    table = crashing_table(str(path), format_name, {**OPTIONS, **creation_options(kind, path)})
    table.insert(as_table(FIRST))
    table.upsert(as_table(SECOND))


def crashing_table(path: str, format_name: str, options: Mapping[str, str]) -> hudi.Table:
    """Make a table without rows."""
    return tables.new_table(path, SCHEMA, options, format=format_name, name="crashing")


def create_old(path: Path, format_name: str, kind: str = STORED) -> None:
    """Make a table with versions to clean and instants to archive.

    A Delta log has versions to delete.
    """
    create_of(kind, path, format_name)
    if format_name.endswith("delta"):
        DeltaTable(str(data_root(path))).create_checkpoint()
    kept = {**OPTIONS, "hoodie.metadata.compact.max.delta.commits": "1"}
    for _ in range(2):
        hudi.Table.open(str(path), kept).upsert(as_table(SECOND))
    hudi.Table.open(str(path), kept).clean(options=RETAINED)
    hudi.Table.open(str(path), kept).upsert(as_table(SECOND))


def create_logged_old(path: Path, format_name: str, kind: str = LOGGED) -> None:
    """Make a table with a file group to clean that has a log, and instants to archive."""
    create_of(kind, path, format_name)
    kept = {**OPTIONS, "hoodie.metadata.compact.max.delta.commits": "1"}
    same = as_table({key: row for key, row in BASE.items() if row[0] == "x"})
    hudi.Table.open(str(path), kept).insert_overwrite(same)
    for _ in range(2):
        hudi.Table.open(str(path), kept).upsert(as_table(SECOND))


def create_staged(path: Path, format_name: str, kind: str = STORED) -> None:
    """Make a table with a stage, whose rows would be there twice."""
    create_of(kind, path, format_name)
    hudi.Table.open(str(path), OPTIONS).stage(as_table(NEW), "bulk_insert")


def create_expired(path: Path, format_name: str, kind: str = STORED) -> None:
    """Make a table one of whose partitions has expired."""
    with clock_set_back(30):
        create_of(kind, path, format_name)
    hudi.Table.open(str(path), OPTIONS).upsert(as_table({"d": ("y", 0)}))


def create_saved(path: Path, format_name: str, kind: str = STORED) -> None:
    """Make a table with a savepoint."""
    create_of(kind, path, format_name)
    hudi.Table.open(str(path), OPTIONS).savepoint()


def create_version_6(path: Path, format_name: str) -> None:
    """Make a table of version 6, whose metadata table nobody reads any more."""
    create(path, format_name)
    to_version_6(path)


def create_compacted(path: Path, format_name: str) -> None:
    """Make a table whose indexes cannot go back behind its last commits."""
    create(path, format_name)
    often = {**OPTIONS, "hoodie.metadata.compact.max.delta.commits": "1"}
    for _ in range(2):
        hudi.Table.open(str(path), often).upsert(as_table(SECOND))


def create_scheduled(path: Path, format_name: str, kind: str = STORED) -> None:
    """Make a table with a scheduled clustering."""
    create_of(kind, path, format_name)
    hudi.Table.open(str(path), OPTIONS).cluster(sort_by="ts", schedule_only=True)


def create_logs(path: Path, format_name: str) -> None:
    """Make a table whose file slices have several logs."""
    create_of(LOGGED, path, format_name)
    hudi.Table.open(str(path), OPTIONS).upsert(as_table(SECOND))


def create_log_compaction(path: Path, format_name: str) -> None:
    """Make a table with a scheduled log compaction."""
    create_logs(path, format_name)
    planned = hudi.Table.open(str(path), OPTIONS).compact(
        log_compaction=True, schedule_only=True, options=FEW_BLOCKS
    )
    assert planned.logs > 1


def create_compaction(path: Path, format_name: str, kind: str = LOGGED) -> None:
    """Make a table with a scheduled compaction."""
    create_of(kind, path, format_name)
    hudi.Table.open(str(path), OPTIONS).compact(schedule_only=True)


def create_merged(path: Path, format_name: str) -> None:
    """Make a table whose logs a compaction has merged."""
    create_of(LOGGED, path, format_name)
    hudi.Table.open(str(path), OPTIONS).compact()


def create_merged_old(path: Path, format_name: str) -> None:
    """Make a table with merged slices to clean, and with instants to archive."""
    create_merged(path, format_name)
    kept = {**OPTIONS, "hoodie.metadata.compact.max.delta.commits": "1"}
    for _ in range(2):
        hudi.Table.open(str(path), kept).upsert(as_table(SECOND))
        hudi.Table.open(str(path), kept).compact()
    hudi.Table.open(str(path), kept).upsert(as_table(SECOND))


def no_table(path: Path, format_name: str) -> None:
    path.mkdir()


def create_broken(lose: Callable[[Path], None], path: Path, format_name: str) -> None:
    create(path, format_name)
    if lose is lose_metadata_table:
        operator(str(path), OPTIONS).index("secondary_index_ts", "ts")
    lose(path)


def lose_format(path: Path) -> None:
    """Take the format's metadata away."""
    for name in ("metadata", "_delta_log"):
        shutil.rmtree(path / name, ignore_errors=True)


def lose_metadata_table(path: Path) -> None:
    """Damage what lists the table's files."""
    for file in (path / ".hoodie/metadata/files").iterdir():
        file.write_bytes(b"\0" * 64)
