"""Files of a Delta log that are not opened, and those that dead writers have left."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import hudi_core as hudi
from delta_format.handles import forget_handles
from hudi_core.errors import CorruptMetadataError, HudiError, UnsafePathError
from hudi_core.services.differences import Source
from tests.formats.test_delta_paths import declare
from tests.formats.two_steps import FAST, batch, new_table
from tests.unit.refusals import files
from tests.unit.test_storage_posix import beside, by_java, checksum, is_readable_by_java

USES: dict[str, Callable[[str], object]] = {
    "read": lambda path: hudi.Table.open(path).to_arrow(),
    "incremental": lambda path: hudi.Table.open(path).incremental(),
    "insert": lambda path: hudi.Table.open(path, FAST).insert(batch(2, "a")),
    "delete": lambda path: hudi.Table.open(path, FAST).delete(batch(2, "b")),
    "alter": lambda path: hudi.Table.open(path, FAST).alter(add_columns={"more": pa.int64()}),
    "validate": lambda path: hudi.Table.open(path).validate(),
    "repair": lambda path: hudi.Table.open(path, FAST).repair(),
    "away": lambda path: hudi.Table.open(path, FAST).convert("native"),
}


@pytest.mark.parametrize("what", ["folder", "version"])
def test_a_link_out_of_the_table_is_not_opened(tmp_path: Path, what: str) -> None:
    table = new_table(tmp_path / "t", "delta")
    log = Path(table.path, "_delta_log")
    linked = log if what == "folder" else log / f"{1:020}.json"
    outside = tmp_path / "outside"
    linked.rename(outside)
    linked.symlink_to(outside)
    before = files(tmp_path)
    for name, use in USES.items():
        with pytest.raises(HudiError, match="a symbolic link leads it") as caught:
            use(table.path)
        assert isinstance(caught.value, UnsafePathError), name
    assert files(tmp_path) == before


def test_a_linked_log_makes_no_table(tmp_path: Path) -> None:
    found = tmp_path / "found"
    write_deltalake(found, batch(1, "a"))
    (found / "_delta_log").rename(tmp_path / "outside")
    (found / "_delta_log").symlink_to(tmp_path / "outside")
    native = new_table(tmp_path / "native", "native")
    Path(native.path, "_delta_log").symlink_to(tmp_path / "outside")
    outside = files(tmp_path / "outside")
    with pytest.raises(UnsafePathError, match="a symbolic link leads it"):
        hudi.Table.adopt(str(found), record_key="id")
    with pytest.raises(UnsafePathError, match="a symbolic link leads it"):
        native.convert("delta")
    assert files(tmp_path / "outside") == outside
    assert hudi.Table.open(native.path).format == "native"


@pytest.mark.parametrize("name", ["next", "old", "checkpoint"])
def test_a_file_that_is_too_large_is_not_opened(tmp_path: Path, name: str) -> None:
    """It has holes: whoever reads it as a whole has no memory left."""
    table = new_table(tmp_path / "t", "delta")
    names = {
        "next": f"{DeltaTable(table.path).version() + 1:020}.json",
        "old": f"{0:020}.json",
        "checkpoint": f"{0:020}.checkpoint.parquet",
    }
    path = Path(table.path, "_delta_log", names[name])
    with path.open("ab") as file:
        file.truncate(8 << 30)
    # this process has had the log open before; a new one has not
    for one in ("read", "insert") if name == "next" else ():
        with pytest.raises(CorruptMetadataError, match=f"{names[name]}.*are more than"):
            USES[one](table.path)
    forget_handles()
    with pytest.raises(CorruptMetadataError, match=f"{names[name]}.*are more than"):
        USES["read"](table.path)
    [found] = hudi.Table.open(table.path).validate().differences
    assert (found.source, str(path) in str(found.found)) == (Source.FORMAT, True)
    assert hudi.Table.open(table.path, FAST).repair().left == ()
    assert not path.exists() or path.stat().st_size < 1 << 20
    assert hudi.Table.open(table.path).to_arrow().num_rows == 3


def test_what_dead_writers_left_goes_with_a_checkpoint(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", "delta")
    log = Path(table.path, "_delta_log")
    old = [f"{1:020}.json#1", f"{3:020}.checkpoint.parquet#12", "_last_checkpoint#1"]
    kept = [f"{2:020}.json#1", "notes#", "a#b"]
    for name in [*old, *kept]:
        (log / name).write_text("{")
    two_days_ago = time.time() - 2 * 86_400
    for name in [*old, *kept[1:]]:
        os.utime(log / name, (two_days_ago, two_days_ago))
    # what Delta-Spark leaves beside a log is in use
    (log / "_last_vacuum_info").write_text("{}")
    (log / f".{0:020}.json.crc").write_text("")
    assert table.validate().orphans == tuple(f"_delta_log/{name}" for name in sorted([*old, *kept]))
    while DeltaTable(table.path).version() < 9:
        assert all((log / name).exists() for name in old)
        table.upsert(batch(2, "a"))
    assert list(log.glob("*.checkpoint.parquet"))
    assert not any((log / name).exists() for name in old)
    assert all((log / name).exists() for name in kept)


def with_checkpoints_every(table: hudi.Table, versions: str) -> hudi.Table:
    """A table whose owner has set how often its log gets a checkpoint."""
    every = {"delta.checkpointInterval": versions}
    declare(Path(table.path), lambda found: found["configuration"].update(every), "metaData")
    return hudi.Table.open(table.path, FAST)


def test_checksums_of_a_log_do_not_stay_when_they_are_wrong(tmp_path: Path) -> None:
    table = with_checkpoints_every(new_table(tmp_path / "t", "delta"), "1")
    table.upsert(batch(2, "a"))
    last = tmp_path / "t/_delta_log/_last_checkpoint"
    by_java(last, last.read_bytes())
    assert table.validate().is_valid
    table.upsert(batch(2, "b"))
    assert is_readable_by_java(last)
    # a release before this one
    beside(last).write_bytes(checksum(b"as it was"))
    [found] = table.validate().differences
    assert found.source is Source.CHECKSUM
    assert found.subject == "_delta_log/._last_checkpoint.crc"
    assert table.repair().left == ()
    assert is_readable_by_java(last)


@pytest.mark.parametrize("versions", ["0", "-1", "often"])
def test_a_number_of_versions_that_is_none_is_not_gone_by(
    tmp_path: Path, versions: str, own_messages: Callable[[], list[str]]
) -> None:
    table = with_checkpoints_every(new_table(tmp_path / "t", "delta"), versions)
    table.upsert(batch(2, "a"))
    assert DeltaTable(table.path).to_pyarrow_table().num_rows == table.count()
    assert own_messages() == []
    assert not (tmp_path / "t/_delta_log/_last_checkpoint").exists()
