"""Validations of merge-on-read tables of Apache Hudi: right ones are, and damage is named."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import hudi_core as hudi
from hudi_core.services.mending.differences import Source
from tests.cli_runs import run_json
from tests.hudi_tables import (
    LOGS_6,
    LOGS_9,
    MERGE_ON_READ,
    OWN,
    OWN_LOGS,
    PARQUET_LOGS,
    ROLLBACK,
    TRIPS,
)
from tests.interop.test_merge_on_read import shared, unzip

FARE: Final = struct.pack("<d", 1.5)
"""Of the one row in the log of :data:`TRIPS`, where Avro has it."""


def log_of(path: Path) -> Path:
    """Return a log that readers see."""
    slices = hudi.Table.open(path).file_slices()
    return path / next(log.status.path for one in slices for log in one.log_files)


def base_of(path: Path) -> Path:
    """Return the base file of a slice with logs."""
    slices = hudi.Table.open(path).file_slices()
    return path / next(
        one.base_file.path for one in slices if one.log_files and one.base_file is not None
    )


def said(path: Path, source: str, name: str) -> list[tuple[str | None, str | None]]:
    """What a validation finds of a file, as expected and found."""
    report = hudi.Table.open(path).validate()
    return [(one.expected, one.found) for one in report.of(Source(source)) if name in one.subject]


def listed(path: Path, name: str, code: int = 4) -> list[tuple[str | None, str | None]]:
    """The same of a validation of the metadata table alone."""
    report = run_json("metadata", "validate", path, code=code)
    assert report["valid"] is (code == 0)
    found = [one for one in report["findings"] if name in one["subject"]]
    return [(one["expected"], one["listed"]) for one in found]


@pytest.mark.parametrize("name", [*MERGE_ON_READ, *OWN_LOGS])
def test_tables_of_hudis_are_valid(name: str, tmp_path: Path) -> None:
    path = OWN.unpack(name, tmp_path / "t")
    report = hudi.Table.open(path).validate(keys=True)
    assert report.differences == ()
    slices = hudi.Table.open(path).file_slices()
    assert report.checked.get("log files", 0) == sum(len(one.log_files) for one in slices)
    assert report.files == sum(len(one.files) for one in slices)
    assert report.checked["files of keys"] == len(slices)
    assert not any(one.startswith("records of ") for one in report.skipped)
    if name in (TRIPS, ROLLBACK):
        assert listed(path, "", code=0) == []


def test_those_of_another_judge_are_valid(tmp_path: Path) -> None:
    for archive in shared("mor"):
        found = hudi.Table.open(unzip(archive, tmp_path / archive.stem)).validate(keys=True)
        assert found.differences == (), archive.stem


def test_bytes_that_are_no_block(tmp_path: Path) -> None:
    path = OWN.unpack(LOGS_9, tmp_path / "t")
    log = log_of(path)
    content = log.read_bytes()
    log.write_bytes(b"#HUDX#" + content[6:])
    [(expected, found)] = said(path, "storage", log.name)
    assert expected == "blocks to its end"
    assert found == f"{len(content)} bytes from 0 on are no block"
    assert hudi.Table.open(path).validate(footers=False).differences == ()


def shortened(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-9])


@pytest.mark.parametrize("name", [LOGS_9, LOGS_6, PARQUET_LOGS, TRIPS])
def test_a_log_that_was_cut(name: str, tmp_path: Path) -> None:
    path = OWN.unpack(name, tmp_path / "t")
    log = log_of(path)
    size = log.stat().st_size
    shortened(log)
    found = said(path, "storage", log.name)
    assert (f"{size} bytes, as its commit says", f"{size - 9} bytes") in found
    # a writer of version 6 may have died while it appended
    assert any("no block" in str(one) for one in found) is (name != LOGS_6)
    if name == TRIPS:
        assert (f"{size - 9} bytes", f"{size} bytes") in listed(path, log.name)


@pytest.mark.parametrize("name", [LOGS_9, LOGS_6, PARQUET_LOGS, TRIPS])
def test_a_log_that_is_lost(name: str, tmp_path: Path) -> None:
    path = OWN.unpack(name, tmp_path / "t")
    log = log_of(path)
    size = log.stat().st_size
    log.unlink()
    assert said(path, "storage", log.name) == [("stored, as its commit says", "it is not there")]
    if name == TRIPS:
        assert (None, f"{size} bytes") in listed(path, log.name)
        assert said(path, "metadata table", log.name)


def test_logs_of_older_slices_may_be_gone(tmp_path: Path) -> None:
    path = OWN.unpack(TRIPS, tmp_path / "t")
    present = {log_of(path)}
    older = [one for one in path.rglob("city=*/.*.log.*") if one not in present]
    assert older
    for one in older:
        one.unlink()
    assert hudi.Table.open(path).validate().of(Source.STORAGE) == ()


def test_a_log_that_no_write_names(tmp_path: Path) -> None:
    path = OWN.unpack(TRIPS, tmp_path / "t")
    log = log_of(path)
    other = log.with_name(log.name.replace(".log.1_", ".log.2_"))
    shutil.copy(log, other)
    time = other.name.split("_")[1].partition(".")[0]
    assert said(path, "storage", other.name) == [
        (f"named by the write {time}, or later", "stored, not named")
    ]
    # like a base file of a lost attempt at a task, it is none that the metadata table should name
    assert listed(path, other.name, code=0) == []


@pytest.mark.parametrize("name", [LOGS_9, LOGS_6, PARQUET_LOGS, TRIPS])
def test_a_base_file_that_is_lost(name: str, tmp_path: Path) -> None:
    path = OWN.unpack(name, tmp_path / "t")
    base = base_of(path)
    base.unlink()
    found = said(path, "storage", base.name)
    assert found[0][0] == "stored, as its commit says"
    # its logs are there, and are not said to be lost
    assert all(".log." not in one.subject for one in hudi.Table.open(path).validate().differences)


def test_a_lost_base_file_that_only_logs_name(tmp_path: Path) -> None:
    """The commit that wrote it is not on the active timeline any more."""
    path = OWN.unpack(LOGS_6, tmp_path / "t")
    base = base_of(path)
    base.unlink()
    first = hudi.Table.open(path).timeline.instants[0].requested_time
    for one in (path / ".hoodie").glob(f"{first}*"):
        one.unlink()
    found = said(path, "storage", base.name)
    assert found == [("stored, as the commits of its logs say", "it is not there")]


def with_value(path: Path, value: float) -> None:
    """Change the fare of the one row in the log."""
    log = log_of(path)
    content = log.read_bytes()
    assert content.count(FARE) == 1
    log.write_bytes(content.replace(FARE, struct.pack("<d", value)))


def test_ranges_that_leave_out_a_value_of_a_log(tmp_path: Path) -> None:
    path = OWN.unpack(TRIPS, tmp_path / "t")
    name = log_of(path).name
    with_value(path, 1e6)
    found = listed(path, f"column fare of {name}")
    assert found == [
        ("1000000.0 to 1000000.0, 1 values, 0 of them null", "1.5 to 1.5, 1 values, 0 of them null")
    ]
    # the range of the partition is one of logs, too
    [(expected, stated)] = listed(path, "column fare of city=rome")
    assert "to 1000000.0" in str(expected)
    assert "to 1000000.0" not in str(stated)
    assert said(path, "metadata table", f"column fare of {name}")


def changed_rider(path: Path) -> None:
    log = log_of(path)
    content = log.read_bytes()
    assert content.count(b"rider-C") == 1
    log.write_bytes(content.replace(b"rider-C", b"rider-Q"))


def test_indexes_of_keys_are_compared_with_merged_rows(tmp_path: Path) -> None:
    path = OWN.unpack(TRIPS, tmp_path / "t")
    changed_rider(path)
    key = next(row for row in hudi.Table.open(path).to_arrow().to_pylist() if row["fare"] == 1.5)
    found = listed(path, f"record key {key['_hoodie_record_key']!r}")
    assert set(found) == {("value 'rider-Q'", None), (None, "value 'rider-C'")}


def test_keys_of_the_record_index_are_those_of_merged_rows(tmp_path: Path) -> None:
    path = OWN.unpack(TRIPS, tmp_path / "t")
    log = log_of(path)
    rows = {row["fare"]: row for row in hudi.Table.open(path).to_arrow().to_pylist()}
    key = rows[1.5]["_hoodie_record_key"].encode()
    content = log.read_bytes()
    other = b"0" * len(key)
    log.write_bytes(content.replace(key, other))
    assert listed(path, f"record key {other.decode()!r}")[0][0] is not None


Damage = Callable[[Path], Any]


@pytest.mark.parametrize("damage", [shortened, Path.unlink], ids=["cut", "lost"])
def test_the_other_commands_say_what_they_cannot_compare(damage: Damage, tmp_path: Path) -> None:
    path = OWN.unpack(TRIPS, tmp_path / "t")
    damage(log_of(path))
    report = run_json("table", "validate", path, "--keys", code=4)
    assert report["valid"] is False
    assert {one["source"] for one in report["differences"]} >= {"storage", "metadata table"}
