"""Spark tasks that are run again after they had done all their work leave no trace of it.

Every task of every stage fails once at its very end, when its file is written, and runs again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.model.files import BaseFileName
from tests.foreign import by_hudi_rs
from tests.samples import taken

SCRIPT = Path(__file__).with_name("retrying_session.py")
ROWS = 200
KEYLESS_ROWS = 60

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("retries")
    operations = taken(request, "test_attempts_make_the_same_keys", "operation")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), *operations],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ["fresh", "updated", "shifting"])
def test_an_instant_has_one_file_per_group(name: str, written: tuple[Path, dict[str, Any]]) -> None:
    folder, report = written
    instant, paths = report["keyed"][name]["instant"], report["keyed"][name]["paths"]
    stages = {task.split("-")[0] for task in report["keyed"][name]["failures"]}
    assert stages == ({"0"} if name == "fresh" else {"0", "1", "2"})

    table = folder / name
    names = [BaseFileName.parse(file.name) for file in table.rglob("*.parquet")]
    groups = Counter(name.file_id for name in names if name and name.instant == instant)
    assert groups
    assert set(groups.values()) == {1}
    on_disk = {str(file.relative_to(table)) for file in table.rglob(f"*_{instant}.parquet")}
    assert sorted(on_disk) == paths


@pytest.mark.parametrize("name", ["fresh", "updated", "shifting"])
def test_lost_attempts_stay_on_record_until_the_next_write(
    name: str, written: tuple[Path, dict[str, Any]]
) -> None:
    folder, report = written
    table, paths = folder / name, report["keyed"][name]["paths"]
    left = {file.name for file in temporary_files(table)} - {".sealed"}
    assert left, "an attempt may be at work yet: what it is about to leave must be known"
    marked = {name.partition(".marker.")[0] for name in left}
    lost = marked - {Path(path).name for path in paths}
    assert lost
    assert not [file for file in table.rglob("*.parquet") if file.name in lost]

    hudi.Table.open(str(table)).delete(pa.table({"id": ["nobody"], "part": ["p0"]}))
    assert not temporary_files(table)


def temporary_files(table: Path) -> list[Path]:
    return [file for file in (table / ".hoodie/.temp").rglob("*") if file.is_file()]


def test_inserted_rows_are_there_once(written: tuple[Path, dict[str, Any]]) -> None:
    folder, report = written
    rows = by_hudi_rs(folder / "fresh")
    assert report["keyed"]["fresh"]["counts"] == [ROWS, 0, 0]
    assert sorted(row["id"] for row in rows) == sorted(f"k{number}" for number in range(ROWS))
    numbers = [row["_hoodie_commit_seqno"] for row in rows]
    assert len(set(numbers)) == ROWS


def test_updated_rows_are_there_once(written: tuple[Path, dict[str, Any]]) -> None:
    folder, report = written
    rows = by_hudi_rs(folder / "updated")
    assert report["keyed"]["updated"]["counts"] == [0, ROWS, 0]
    assert sorted((row["id"], row["twin"]) for row in rows) == sorted(
        (f"k{number}", "new" if number < ROWS else "old") for number in range(2 * ROWS)
    )


def test_rows_that_are_others_at_every_computation_stay_whole(
    written: tuple[Path, dict[str, Any]],
) -> None:
    folder, report = written
    rows = by_hudi_rs(folder / "shifting")
    new = [row for row in rows if not row["id"].startswith("k")]
    assert report["keyed"]["shifting"]["counts"] == [ROWS, 0, 0]
    assert len(rows) == 3 * ROWS
    assert len({row["id"] for row in rows}) == 3 * ROWS
    assert all(row["id"] == row["twin"] == row["_hoodie_record_key"] for row in new)
    assert Counter(row["part"] for row in new) == Counter(f"p{n % 2}" for n in range(ROWS))
    assert {row["_hoodie_commit_time"] for row in new} == {report["keyed"]["shifting"]["instant"]}


@pytest.mark.parametrize("operation", ["bulk_insert", "insert", "insert_overwrite"])
def test_attempts_make_the_same_keys(operation: str, written: tuple[Path, dict[str, Any]]) -> None:
    folder, report = written
    tasks = report["keyless"][operation]
    assert len(tasks) == 2
    for first, second in tasks.values():
        assert first == second
        assert first
    found = by_hudi_rs(folder / f"keyless_{operation}")
    keys = {row["_hoodie_record_key"] for row in found}
    assert (
        len(keys)
        == len(found)
        == (KEYLESS_ROWS if operation == "insert_overwrite" else 2 * KEYLESS_ROWS)
    )
    assert {key for attempts in tasks.values() for key in attempts[0]} <= keys
    times = 1 if operation == "insert_overwrite" else 2
    assert Counter(row["n"] for row in found) == Counter(
        n % 7 for n in range(KEYLESS_ROWS) for _ in range(times)
    )
