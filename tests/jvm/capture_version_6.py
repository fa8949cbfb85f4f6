"""Write down a table of version 6 of Apache Hudi, and what its own upgrades make of it.

``python -m tests.jvm.capture_version_6`` writes ``tests/version_6.zip``.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Final

import pyarrow as pa

from tests.jvm.engines import HUDI, Engine
from tests.version_6 import DATES, FILE, TABLE, Left

OPTIONS: Final = {
    "hoodie.table.name": "old",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.write.table.version": "6",
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.bloom.index.filter.dynamic.max.entries": "100",
}
_BUSY: Final = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "3",
}
"""Has the table cleaned, clustered and archived."""
COMMITS: Final = 9


def two_cities(keys: range | list[int], ts: int) -> pa.Table:
    """Return rows of two partitions."""
    return pa.table(
        {
            "id": list(keys),
            "city": ["AB"[key % 2] for key in keys],
            "v": [ts + key / 10 for key in keys],
            "ts": [ts] * len(keys),
        }
    )


def make(engine: Engine, path: Path) -> None:
    """Make the table: a history that is archived in part, a savepoint, and commits after it."""

    def save(keys: range | list[int], ts: int, operation: str) -> None:
        named = {"hoodie.datasource.write.operation": operation}
        engine.save(two_cities(keys, ts), path, {**OPTIONS, **_BUSY, **named})

    for number in range(COMMITS):
        save(range(number, number + 4), number, "upsert" if number else "insert")
    save([1, 3], 50, "insert_overwrite")
    time = max(file.name for file in (path / ".hoodie").glob("*.replacecommit")).split(".")[0]
    engine.sql(f"call create_savepoint(path => '{path}', commit_time => '{time}')")
    save([2, 4, 60], 60, "upsert")


def upgrade_by_hudi(engine: Engine, path: Path, to: int) -> None:
    """Let Hudi upgrade a table."""
    name = f"upgraded_{abs(hash(path))}"
    engine.sql(f"create table {name} using hudi location 'file://{path}'")
    word = {8: "EIGHT", 9: "NINE"}[to]
    [[done]] = engine.sql(f"call upgrade_table(table => '{name}', to_version => '{word}')")
    assert done
    engine.sql(f"drop table {name}")


def main() -> None:
    """Capture the table."""
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(HUDI, Path(folder) / "engine")
        made = Path(folder) / TABLE
        left: dict[int, Left] = {}
        try:
            make(engine, made)
            for to in (8, 9):
                copy = Path(folder) / f"upgraded to {to}".replace(" ", "_")
                shutil.copytree(made, copy)
                upgrade_by_hudi(engine, copy, to)
                left[to] = Left.of(copy)
        finally:
            engine.stop()
        with zipfile.ZipFile(FILE, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            # of the metadata table only that it is there: no upgrade of ours reads it
            files = [
                file
                for file in sorted(made.rglob("*"))
                if file.is_file()
                and file.suffix != ".crc"
                and (".hoodie/metadata" not in str(file) or file.name == "hoodie.properties")
            ]
            for file in files:
                archive.write(file, f"{TABLE}/{file.relative_to(made)}")
            dates = {str(file.relative_to(made)): file.stat().st_mtime_ns for file in files}
            archive.writestr(DATES, json.dumps(dates))
            for to, one in left.items():
                archive.writestr(f"{to}.json", json.dumps(asdict(one)))


if __name__ == "__main__":
    main()
