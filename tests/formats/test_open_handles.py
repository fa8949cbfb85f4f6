"""Tables that stay open while another handle changes where their files are and what they are."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import NotATableError, TableClosedError
from hudi_core.storage import properties_file
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import BACKUP_PATH, PROPERTIES_PATH
from tests.version_6 import to_version_6

FAST = {"hoodie.fs.fsync": "false"}
FORMATS = ("native", "iceberg", "delta")
SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("v", pa.float64())])
MOVE = """
import sys
import hudi_core as hudi

layout = {"hoodie.storage.strategy.class": "object_store", "hoodie.storage.path": sys.argv[2]}
hudi.Table.open(sys.argv[1]).convert_storage(layout)
"""


def rows(*ids: int, v: float = 1.0) -> pa.Table:
    return pa.table(
        {"id": ids, "city": [f"c{n % 2}" for n in ids], "v": [v] * len(ids)}, schema=SCHEMA
    )


def make(path: Path, format_name: str = "native", **options: str) -> hudi.Table:
    made = hudi.Table.create(
        path,
        SCHEMA,
        record_key="id",
        partition_by="city",
        format=format_name,
        options={**FAST, **options},
    )
    made.insert(rows(1, 2, 3, 4))
    return made


def layout(path: Path) -> dict[str, str]:
    return {
        "hoodie.storage.strategy.class": "object_store",
        "hoodie.storage.path": str(path.absolute()),
    }


def require_readable(table: hudi.Table, ids: list[int]) -> None:
    """All kinds of reads see these rows."""
    assert sorted(table.to_arrow("id")["id"].to_pylist()) == ids
    assert table.count() == len(ids)
    assert table.count([("v", ">", 0.0)]) == len(ids)
    assert sorted(table.scan().to_table(["id"])["id"].to_pylist()) == ids
    assert sorted(table.incremental()["id"].to_pylist()) == ids
    assert table.head(1).num_rows == 1
    assert table.schema.names == SCHEMA.names
    assert table.history().num_rows == len(table.timeline.instants)


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("is_used", [True, False], ids=["read before", "not read before"])
def test_a_move_of_the_files_is_seen_by_the_next_read(
    tmp_path: Path, format_name: str, is_used: bool
) -> None:
    made = make(tmp_path / "t", format_name)
    table = hudi.Table.open(made.path)
    stays = table.scan()
    if is_used:
        require_readable(table, [1, 2, 3, 4])
    made.convert_storage(layout(tmp_path / "elsewhere"))
    require_readable(table, [1, 2, 3, 4])
    assert stays.refreshed().count_rows() == 4
    made.upsert(rows(5))
    require_readable(table, [1, 2, 3, 4, 5])
    made.convert_storage({"hoodie.storage.strategy.class": "default"})
    require_readable(table, [1, 2, 3, 4, 5])
    table.upsert(rows(6))
    require_readable(made, [1, 2, 3, 4, 5, 6])


def test_a_move_by_another_process_is_seen(tmp_path: Path) -> None:
    table = hudi.Table.open(make(tmp_path / "t").path)
    assert table.count() == 4
    moved = str(tmp_path / "elsewhere")
    subprocess.run([sys.executable, "-c", MOVE, table.path, moved], check=True)
    require_readable(table, [1, 2, 3, 4])


@pytest.mark.parametrize("before", FORMATS)
@pytest.mark.parametrize("after", FORMATS)
def test_a_conversion_is_seen_whatever_the_table_was_created_as(
    tmp_path: Path, before: str, after: str
) -> None:
    if before == after:
        return
    table = make(tmp_path / "t", before)  # with the format among its options
    other = hudi.Table.open(table.path)
    require_readable(table, [1, 2, 3, 4])
    other.convert(after)
    other.upsert(rows(5))
    require_readable(table, [1, 2, 3, 4, 5])
    assert table.format == after
    table.upsert(rows(6))
    require_readable(other, [1, 2, 3, 4, 5, 6])


def test_a_table_that_was_created_in_a_layout_follows_a_move(tmp_path: Path) -> None:
    table = make(tmp_path / "t", **layout(tmp_path / "first"))
    hudi.Table.open(table.path).convert_storage(layout(tmp_path / "second"))
    require_readable(table, [1, 2, 3, 4])
    table.upsert(rows(5))
    require_readable(table, [1, 2, 3, 4, 5])


def keys_of(table: hudi.Table) -> list[Any]:
    found = table.to_arrow(["id", "_hoodie_record_key"]).sort_by("id")
    return list(found["_hoodie_record_key"].to_pylist())


@pytest.mark.parametrize("keep_files", [True, False])
@pytest.mark.parametrize("format_name", FORMATS)
def test_a_rewriting_of_keys_is_seen(tmp_path: Path, format_name: str, keep_files: bool) -> None:
    made = make(tmp_path / "t", format_name)
    table = hudi.Table.open(made.path)
    assert keys_of(table) == ["1", "2", "3", "4"]
    made.rewrite_keys(keep_files=keep_files)
    assert keys_of(table) == [None] * 4 == keys_of(hudi.Table.open(made.path))
    made.rewrite_keys(materialise=True)
    assert keys_of(table) == ["1", "2", "3", "4"] == keys_of(hudi.Table.open(made.path))


def test_keys_that_a_table_was_created_without_are_seen(tmp_path: Path) -> None:
    table = make(tmp_path / "t", **{"hoodie.recordkey.virtual.enabled": "true"})
    assert keys_of(table) == [None] * 4
    hudi.Table.open(table.path).rewrite_keys(materialise=True)
    assert keys_of(table) == ["1", "2", "3", "4"]


def test_an_upgrade_is_seen(tmp_path: Path) -> None:
    path = make(tmp_path / "t", **{"hoodie.metadata.enable": "false"}).path
    to_version_6(Path(path))
    zone = {**FAST, "hoodie.table.timeline.local.zone": "UTC"}
    table = hudi.Table.open(path, zone)
    require_readable(table, [1, 2, 3, 4])
    assert table.config.version == 6
    other = hudi.Table.open(path, zone)
    other.upgrade(8)
    other.upsert(rows(5))
    require_readable(table, [1, 2, 3, 4, 5])
    assert table.config.version == 8
    other.upgrade(9)
    require_readable(table, [1, 2, 3, 4, 5])


def test_a_table_that_was_dropped_is_none_and_one_that_took_its_place_is_read(
    tmp_path: Path,
) -> None:
    made = make(tmp_path / "t")
    table = hudi.Table.open(made.path)
    assert table.count() == 4
    made.drop()
    for read in (table.count, table.scan, lambda: table.schema):
        with pytest.raises(NotATableError):
            read()
    other = pa.table({"word": ["x"], "v": ["y"]})
    hudi.Table.create(
        tmp_path / "t", other.schema, record_key="word", options=layout(tmp_path / "elsewhere")
    ).insert(other)
    assert table.to_arrow(["word", "v"]).to_pylist() == other.to_pylist()
    assert table.schema.names == ["word", "v"]


def test_a_closed_table_is_not_opened_again(tmp_path: Path) -> None:
    made = make(tmp_path / "t")
    with hudi.Table.open(made.path) as table:
        assert table.count() == 4
    made.convert_storage(layout(tmp_path / "elsewhere"))
    with pytest.raises(TableClosedError):
        table.count()


@pytest.mark.parametrize("damage", [None, b"", b"hoodie.table.name=t"], ids=str)
def test_a_read_while_another_writer_replaces_the_properties_goes_on(
    tmp_path: Path, damage: bytes | None
) -> None:
    table = hudi.Table.open(make(tmp_path / "t").path)
    assert table.count() == 4
    file = Path(table.path, PROPERTIES_PATH)
    shutil.copy(file, Path(table.path, BACKUP_PATH))
    file.unlink()
    if damage is not None:
        file.write_bytes(damage)
    require_readable(table, [1, 2, 3, 4])


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str]]:
    """Count what a table's storage is asked for, but for its data files."""
    counted: Counter[tuple[str, str]] = Counter()

    def count(name: str) -> None:
        method = getattr(PosixStorage, name)

        def counting(storage: PosixStorage, path: str = "", *more: Any, **named: Any) -> Any:
            counted[name, path] += 1
            return method(storage, path, *more, **named)

        monkeypatch.setattr(PosixStorage, name, counting)

    for name in ("read", "read_range", "head", "version", "list", "list_names", "list_folders"):
        count(name)
    return counted


def test_a_read_of_what_is_known_asks_for_the_timeline_and_the_properties(
    tmp_path: Path, requests: Counter[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = hudi.Table.open(make(tmp_path / "t").path)
    first = table.file_slices()
    requests.clear()
    with monkeypatch.context() as patched:
        patched.delattr(properties_file, "parse_properties")  # their bytes are compared
        assert table.file_slices() == first
    assert requests == {("list_names", ".hoodie/timeline"): 1, ("read", PROPERTIES_PATH): 1}
