"""What is changed in one part of a table behind the others' backs is found, and nothing else."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable
from deltalake.transaction import AddAction
from pyiceberg.table import StaticTable
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli.app import app
from hudi_core.cli.exit_codes import ExitCode
from hudi_core.plugin.host import FormatHost
from hudi_core.services.differences import Source, TableValidation
from tests.formats.dying_writers import death_in
from tests.formats.service_tables import FORMATS, batch, new_table
from tests.hudi_tables import PLAIN, TRIPS, TXNS

ALL = ("native", *FORMATS)


@pytest.fixture(params=ALL)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> hudi.Table:
    return new_table(tmp_path / "t", request.param)


@pytest.fixture(params=FORMATS)
def published(request: pytest.FixtureRequest, tmp_path: Path) -> hudi.Table:
    return new_table(tmp_path / "t", request.param)


def live(table: hudi.Table) -> list[Path]:
    """The files of the present state, by partition."""
    slices = table.file_slices()
    return [Path(table.path) / one.base_file.path for one in slices if one.base_file is not None]


def said(report: TableValidation, source: Source) -> str:
    assert not report.is_valid
    return "\n".join(map(str, report.of(source)))


# --- sound tables --------------------------------------------------------------------------------


def test_a_sound_table_has_no_difference(table: hudi.Table) -> None:
    report = table.validate()
    assert report.differences == ()
    assert (report.files, report.rows, report.table_format) == (2, 4, table.format)
    assert report.checked["instants"] == 2
    assert report.checked["footers"] == 2
    assert report.checked["records of files"] > 2
    if table.format in FORMATS:
        assert report.checked["files of the format"] == 2


def test_writes_that_complete_meanwhile_are_no_difference(table: hudi.Table) -> None:
    left = [batch(3, "a", "new"), batch(4, "x")]

    def write(*_: int) -> None:
        if left:
            hudi.Table.open(table.path).upsert(left.pop())

    report = table.validate(progress=write)
    assert not left
    assert report.differences == ()
    assert (report.files, report.rows) == (2, 4)
    assert table.validate().differences == ()


@pytest.mark.parametrize("writes", [1, 100])
def test_timeline_and_format_are_those_of_one_moment(
    published: hudi.Table, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    factory = FormatHost.get_metadata_factory
    count = [writes]

    def late(self: FormatHost) -> Any:
        if count[0]:
            count[0], left = 0, count[0] - 1
            hudi.Table.open(published.path).upsert(batch(3, "a", f"new{left}"))
            count[0] = left
        return factory(self)

    monkeypatch.setattr(FormatHost, "get_metadata_factory", late)
    report = published.validate()
    assert report.differences == ()
    assert any("all the time" in why for why in report.skipped.values()) == (writes > 1)


def test_a_table_stays_sound_whatever_is_done_to_it(table: hudi.Table) -> None:
    table.delete(batch(3, "x", "y"))  # leaves a file without rows
    assert table.validate().differences == ()
    table.insert_overwrite(batch(4, "c"))
    assert table.validate().differences == ()
    last = table.upsert(batch(5, "c", "z"))
    table.rollback(last.instant)
    assert table.validate().differences == ()
    table.alter(add_columns={"note": pa.string()})
    table.delete_partitions(["rome"])
    report = table.validate()
    assert report.differences == ()
    assert report.orphans == ()


@pytest.mark.parametrize("name", [PLAIN, TXNS, TRIPS])
def test_tables_of_apache_hudi_are_sound(real_tables: Callable[[str], Path], name: str) -> None:
    table = hudi.Table.open(str(real_tables(name)))
    assert table.validate().differences == ()


def test_nothing_is_changed_by_looking(table: hudi.Table) -> None:
    before = {str(one): one.stat().st_mtime_ns for one in Path(table.path).rglob("*")}
    table.validate()
    assert {str(one): one.stat().st_mtime_ns for one in Path(table.path).rglob("*")} == before


# --- storage -------------------------------------------------------------------------------------


def test_a_file_that_is_gone_is_named(table: hudi.Table) -> None:
    gone = live(table)[0]
    gone.unlink()
    report = table.validate()
    assert gone.name in said(report, Source.STORAGE)
    assert gone.name in said(report, Source.METADATA_TABLE)
    if table.format in FORMATS:
        assert gone.name in said(report, Source.FORMAT)


def test_a_file_of_another_size_is_named(table: hudi.Table) -> None:
    file = live(table)[0]
    file.write_bytes(file.read_bytes() + b"x")
    report = table.validate(footers=False)
    assert file.name in said(report, Source.STORAGE)
    assert report.rows is None
    if table.format in FORMATS:
        assert "bytes" in said(report, Source.FORMAT)


def test_a_file_whose_rows_were_lost_is_named(table: hudi.Table) -> None:
    file = live(table)[0]
    pq.write_table(pq.read_table(file).slice(0, 1), file)
    report = table.validate()
    assert "2 rows, as its commit says" in said(report, Source.STORAGE) or (
        "rows, as its commit says" in said(report, Source.STORAGE)
    )
    if table.format in FORMATS:
        assert "rows" in said(report, Source.FORMAT)


def test_a_damaged_file_is_named(table: hudi.Table) -> None:
    file = live(table)[0]
    file.write_bytes(b"PAR1" + b"\0" * (file.stat().st_size - 8) + b"PAR1")
    assert file.name in said(table.validate(), Source.STORAGE)


# --- orphans -------------------------------------------------------------------------------------


def test_what_another_engine_left_is_listed_and_is_no_difference(table: hudi.Table) -> None:
    left = ["data/00000-1-3f.parquet"]
    left += {
        "native": [],
        "delta": ["_delta_log/00000000000000000009.json#1"],
        "iceberg": ["metadata/3f-m0.avro", "metadata/snap-1-1-3f.avro"],
    }[table.format]
    for one in left:
        path = Path(table.path, one)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"left")
    report = table.validate()
    assert report.orphans == tuple(left)
    assert report.is_valid
    shown = CliRunner().invoke(app, ["table", "validate", table.path])
    assert shown.exit_code == ExitCode.OK
    assert left[0] in shown.output


def test_statistics_of_partitions_are_not_left_over(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", "iceberg")
    table.insert(batch(1, "a"))
    current = StaticTable.from_metadata(table.path)
    metadata = Path(current.metadata_location.removeprefix("file://"))
    found = json.loads(metadata.read_text())
    for kind in ("statistics", "partition-statistics"):
        one: dict[str, Any] = {"statistics-path": f"{metadata.parent.as_uri()}/{kind}.stats"}
        one |= {"snapshot-id": found["current-snapshot-id"], "file-size-in-bytes": 4}
        if kind == "statistics":
            one |= {"file-footer-size-in-bytes": 4, "blob-metadata": []}
        found[kind] = [one]
        (metadata.parent / f"{kind}.stats").write_bytes(b"PFA1")
    metadata.write_text(json.dumps(found))
    assert table.validate().orphans == ()


# --- the format ----------------------------------------------------------------------------------


def test_a_footer_whose_statistics_are_no_text_is_named(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", "native")
    path = live(table)[0]
    data = path.read_bytes()
    time = table.timeline.completed_writes()[0].requested_time.encode()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    bounds = data.index(time, footer)  # the bounds of the column of commit times
    path.write_bytes(data[:bounds] + b"\xff" * 8 + data[bounds + 8 :])
    report = hudi.Table.open(table.path).validate()
    assert path.name in said(report, Source.STORAGE)


def test_missing_metadata_of_the_format_is_told(published: hudi.Table) -> None:
    path = Path(published.path)
    folder = path / ("metadata" if published.format == "iceberg" else "_delta_log")
    folder.rename(path.parent / "gone")
    text = said(published.validate(), Source.FORMAT)
    assert "hudi table repair" in text


def test_a_file_that_the_format_names_and_the_table_lacks_is_told(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", "delta")
    source = live(table)[0]
    stranger = tmp_path / "t/stranger.parquet"
    stranger.write_bytes(source.read_bytes())
    log = DeltaTable(table.path)
    add = AddAction("stranger.parquet", stranger.stat().st_size, {"city": "rome"}, 0, True, "{}")
    log.create_write_transaction(
        [add],
        "append",
        log.schema(),
        ["city"],
        commit_properties=CommitProperties(custom_metadata={"hudi.step": "of a test"}),
    )
    text = said(table.validate(), Source.FORMAT)
    assert "stranger.parquet" in text
    assert "none of the table's present files" in text


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"numRecords": 7}, "7 rows"),
        ({"numRecords": 2, "maxValues": {"ts": 1}, "minValues": {"ts": 1}}, "column ts"),
        ({"numRecords": 2, "nullCount": {"ts": 1}}, "1 nulls"),
    ],
)
def test_wrong_statistics_of_a_delta_log_are_told(
    tmp_path: Path, wrong: dict[str, Any], told: str
) -> None:
    table = new_table(tmp_path / "t", "delta")
    entry = Path(table.path) / "_delta_log/00000000000000000002.json"
    lines = [json.loads(line) for line in entry.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["stats"] = json.dumps(wrong)
    entry.write_text("\n".join(map(json.dumps, lines)))
    assert told in said(table.validate(), Source.FORMAT)
    assert table.validate(footers=False).is_valid


def test_a_foreign_commit_is_told(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", "delta")
    log = DeltaTable(table.path)
    log.delete("id = 'a'")
    assert "not made by a Hudi writer" in said(table.validate(), Source.FORMAT)


@pytest.mark.parametrize("is_indexed", [True, False])
@pytest.mark.parametrize("group", ["new", "own"])
def test_a_file_that_no_commit_names_is_told(tmp_path: Path, group: str, is_indexed: bool) -> None:
    """Of a group of its own, readers without a metadata table would take it for rows."""
    flag = {"hoodie.metadata.enable": str(is_indexed).lower()}
    table = new_table(tmp_path / "t", "native", **flag)
    newest = max(live(table), key=lambda one: one.name.split("_")[2])
    older = next(one for one in newest.parent.iterdir() if one.suffix == ".parquet")
    name = newest.name
    if group == "new":
        name = f"{uuid.UUID(int=7)}-0_{name.partition('_')[2]}"
    else:
        name = name.replace(name.split("_")[1], "7-7-7")
    (newest.parent / name).write_bytes(older.read_bytes())
    told = said(table.validate(footers=False), Source.STORAGE)
    assert name in told
    assert ("not named" in told) == (group == "new")
    (newest.parent / name).unlink()
    assert table.validate().is_valid


def test_a_pending_publication_is_told(published: hudi.Table) -> None:
    with death_in("hudi_core.plugin.host.FormatHost.complete_write"):
        published.upsert(batch(6, "a"))
    (one,) = published.validate().differences
    assert one.is_pending
    assert "not recorded" in str(one)
    published.upsert(batch(7, "a"))
    assert published.validate().is_valid


# --- the metadata table --------------------------------------------------------------------------


def test_a_damaged_metadata_table_is_told(table: hudi.Table) -> None:
    folder = Path(table.path) / ".hoodie/metadata/files"
    for one in folder.iterdir():
        if one.suffix == ".hfile" or ".log." in one.name:
            one.write_bytes(b"\0" * 100)
    assert said(table.validate(), Source.METADATA_TABLE)


def test_a_table_without_a_metadata_table_says_so(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", **{"hoodie.metadata.enable": "false"})
    report = table.validate()
    assert report.is_valid
    assert report.skipped["metadata table"] == "there is none"


# --- the command ---------------------------------------------------------------------------------


def test_the_command_tells_by_its_exit_code(published: hudi.Table) -> None:
    run = CliRunner().invoke
    sound = run(app, ["table", "validate", published.path])
    assert sound.exit_code == 0
    assert "is sound: 2 files, 4 rows" in sound.stdout

    gone = live(published)[0]
    gone.unlink()
    broken = run(app, ["table", "validate", published.path, "--json"])
    assert broken.exit_code == ExitCode.VALIDATION_FAILED
    document = json.loads(broken.stdout)
    assert document["valid"] is False
    assert any(gone.name in one["subject"] for one in document["differences"])
    wide = {"COLUMNS": "1000"}  # paths of tests are longer than the lines of a pipe
    shown = run(app, ["table", "validate", published.path, "--quick"], env=wide)
    assert shown.exit_code == ExitCode.VALIDATION_FAILED
    assert gone.name in shown.stdout
    assert "differences" in shown.stdout


def test_the_statistics_of_iceberg_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path / "t", "iceberg")
    assert len(StaticTable.from_metadata(table.path).inspect.files()) == 2
    monkeypatch.setattr("iceberg_format.stats._lower", lambda kind, value: b"\x09" + b"\0" * 7)
    table.upsert(batch(3, "a"))
    monkeypatch.undo()
    assert "column ts" in said(hudi.Table.open(table.path).validate(), Source.FORMAT)
