"""Checksum files that Hadoop's local file system leaves beside what Java writes.

Hadoop reads a file without a checksum, and refuses one that is not as its checksum says.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from hudi_core.cli import app
from hudi_core.errors import AlreadyExistsError
from hudi_core.metadata.index_definitions import DEFAULT_PATH
from hudi_core.services.differences import Source
from hudi_core.storage.hadoop_checksums import checked_path, checksum_path, stale_checksums
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import (
    BACKUP_PATH,
    PROPERTIES_PATH,
    update_properties,
    write_new,
)
from tests.tables import new_table
from tests.unit.mortal_disk import Killed, MortalDisk

PART = 512
PROPERTIES = {"hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE"}


def checksum(data: bytes) -> bytes:
    """Return what Hadoop's ``ChecksumFileSystem`` writes beside a file."""
    parts = [data[place : place + PART] for place in range(0, len(data), PART)]
    return (
        b"crc\0"
        + struct.pack(">i", PART)
        + b"".join(struct.pack(">I", zlib.crc32(part)) for part in parts)
    )


def beside(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")


def by_java(file: Path, data: bytes) -> None:
    """Write a file as Java does."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    beside(file).write_bytes(checksum(data))


def is_readable_by_java(file: Path) -> bool:
    return not beside(file).exists() or beside(file).read_bytes() == checksum(file.read_bytes())


def put(storage: PosixStorage) -> None:
    storage.put("f/file", b"new" * 400)


def compare_and_set(storage: PosixStorage) -> None:
    storage.compare_and_set("f/file", b"new" * 400, storage.version("f/file")[1])


def delete_and_put(storage: PosixStorage) -> None:
    storage.delete("f/file")
    storage.put_if_absent("f/file", b"new" * 400)


CHANGES = (put, compare_and_set, delete_and_put)


@pytest.mark.parametrize("change", CHANGES)
def test_no_death_leaves_a_file_that_java_refuses(
    tmp_path: Path, change: Callable[[PosixStorage], None]
) -> None:
    disk = MortalDisk()
    by_java(tmp_path / "whole" / "f" / "file", b"old" * 400)
    change(PosixStorage(str(tmp_path / "whole"), disk=disk))
    assert not beside(tmp_path / "whole" / "f" / "file").exists()
    assert disk.steps.count("remove") >= 1
    for step in range(len(disk.steps)):
        for mode in ("before", "after"):
            file = tmp_path / f"{step}-{mode}" / "f" / "file"
            by_java(file, b"old" * 400)
            with pytest.raises(Killed):
                change(PosixStorage(str(file.parent.parent), disk=MortalDisk(step, mode)))
            if file.exists():
                assert is_readable_by_java(file), (step, mode)
            # and whoever comes next finds a name that may be used
            PosixStorage(str(file.parent.parent)).put("f/file", b"later")
            assert is_readable_by_java(file)


def test_the_checksum_goes_to_the_disk_before_the_file_changes(tmp_path: Path) -> None:
    """A power failure may keep the later of two changes that nothing was flushed between."""
    by_java(tmp_path / "f" / "file", b"old")
    disk = MortalDisk()
    PosixStorage(str(tmp_path), disk=disk).put("f/file", b"new")
    assert disk.steps == ["write_new", "remove", "sync_folder", "replace", "sync_folder"]


def test_what_a_file_that_is_gone_has_left_is_not_taken_for_the_next_one(tmp_path: Path) -> None:
    by_java(tmp_path / "file", b"old")
    storage = PosixStorage(str(tmp_path))
    (tmp_path / "file").unlink()
    storage.put_if_absent("file", b"new")
    assert not beside(tmp_path / "file").exists()
    by_java(tmp_path / "other", b"old")
    with pytest.raises(AlreadyExistsError):
        storage.put_if_absent("other", b"new")
    assert beside(tmp_path / "other").exists()
    (tmp_path / "other").unlink()
    storage.link("file", "other")
    assert not beside(tmp_path / "other").exists()


def test_a_change_of_properties_dies_at_any_step(tmp_path: Path) -> None:
    def prepare(root: Path) -> Path:
        write_new(PosixStorage(str(root)), PROPERTIES)
        file = root / PROPERTIES_PATH
        by_java(file, file.read_bytes())
        # what a change by Java left that died after it had deleted its backup's file
        beside(root / BACKUP_PATH).write_bytes(checksum(b"older"))
        return file

    disk = MortalDisk()
    prepare(tmp_path / "whole")
    update_properties(PosixStorage(str(tmp_path / "whole"), disk=disk), {"a": "b"})
    for step in range(len(disk.steps)):
        root = tmp_path / str(step)
        file = prepare(root)
        with pytest.raises(Killed):
            update_properties(PosixStorage(str(root), disk=MortalDisk(step)), {"a": "b"})
        whole = [path for path in (file, root / BACKUP_PATH) if path.exists()]
        assert whole
        assert all(map(is_readable_by_java, whole)), step


@pytest.mark.parametrize(
    ("path", "checksums"),
    [("a/b", "a/.b.crc"), ("b", ".b.crc"), ("a/.b", "a/..b.crc"), ("a/b.crc", "a/.b.crc.crc")],
)
def test_names(path: str, checksums: str) -> None:
    assert checksum_path(path) == checksums
    assert checked_path(checksums) == path


@pytest.mark.parametrize("path", ["a/b", "a/b.crc", "a/.crc", "a/..crc", "a/.b"])
def test_names_of_other_files(path: str) -> None:
    found = checked_path(path)
    assert found is None or checksum_path(found) == path


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        (b"", b""),
        (b"x" * PART, b"x" * PART + b"y"),
        (b"x" * (3 * PART + 1), b"x" * (3 * PART) + b"y"),
    ],
)
def test_checksums_that_are_wrong_are_found(tmp_path: Path, data: bytes, wrong: bytes) -> None:
    storage = PosixStorage(str(tmp_path))
    by_java(tmp_path / "deep" / "file", data)
    assert stale_checksums(storage, "") == ()
    (tmp_path / "deep" / "file").write_bytes(wrong)
    assert stale_checksums(storage, "") == (() if data == wrong else ("deep/.file.crc",))
    (tmp_path / "deep" / "file").unlink()
    assert stale_checksums(storage, "deep") == ()


@pytest.mark.parametrize("told", [b"", b"crc", b"crc\0\0\0\0\0", b"other" * 4, b"crc\0\xff\0\0\0"])
def test_what_is_no_checksum_is_wrong(tmp_path: Path, told: bytes) -> None:
    by_java(tmp_path / "file", b"data")
    beside(tmp_path / "file").write_bytes(told)
    assert stale_checksums(PosixStorage(str(tmp_path)), "") == (".file.crc",)


def test_a_table_that_java_and_an_earlier_release_wrote(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", pa.int64())])
    rows = pa.table({"id": [1], "x": [1]}, schema)
    path = tmp_path / "t"
    table = new_table(path, schema, {"hoodie.fs.fsync": "false"})
    for name in (PROPERTIES_PATH, DEFAULT_PATH):
        by_java(path / name, (path / name).read_bytes())
    assert table.validate().is_valid
    # this release
    table.alter(add_columns={"y": pa.int64()})
    table.upsert(rows.append_column("y", pa.array([1])))
    assert table.validate().is_valid
    assert is_readable_by_java(path / PROPERTIES_PATH)
    assert is_readable_by_java(path / DEFAULT_PATH)
    # the one before
    beside(path / PROPERTIES_PATH).write_bytes(checksum(b"as it was"))
    [found] = table.validate().differences
    assert (found.source, found.subject) == (Source.CHECKSUM, ".hoodie/.hoodie.properties.crc")
    planned = table.repair(dry_run=True)
    assert (planned.checksums, planned.metadata_table, planned.left) == (True, False, ())
    assert not table.validate().is_valid
    done = CliRunner().invoke(app, ["table", "repair", str(path)])
    assert done.exit_code == 0, done.output
    assert "Removed the checksum files that are wrong." in done.output
    assert table.validate().is_valid
    assert table.to_arrow().num_rows == 1
