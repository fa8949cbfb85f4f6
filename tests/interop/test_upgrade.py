"""Tables of version 6 that Apache Hudi made, brought to versions 8 and 9; and these to each other.

hudi-rs reads before and after, and what Hudi's own upgrades leave is at hand, see
:mod:`tests.version_6`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hudi as hudi_rs
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli import app
from hudi_core.errors import (
    ConcurrentWriterError,
    InvalidOptionError,
    TableServiceError,
    TimelineError,
    UnsupportedTableError,
)
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.table import StoredPartitions
from hudi_core.model.instant import Action, State
from hudi_core.services.upgrade import MARK
from hudi_core.txn.heartbeat import heartbeat_path
from tests.formats.dying_writers import Died, MortalStorage, death_in
from tests.hudi_tables import VERSION_6, RealTables, Source
from tests.samples import IS_WHOLE
from tests.tables import new_table
from tests.version_6 import UTC, Left, unpack

Rows = list[tuple[Any, ...]]
OPTIONS = {"hoodie.fs.fsync": "false", **UTC}
COLUMNS = ("_hoodie_commit_time", "id", "city", "v", "ts")


def opened(path: Path, options: dict[str, str] | None = None) -> hudi.Table:
    return hudi.Table.open(str(path), OPTIONS if options is None else options)


def agreed_rows(path: Path) -> Rows:
    """Rows that both readers return alike."""
    own = sorted_rows(opened(path).to_arrow(COLUMNS).to_pylist())
    assert sorted_rows(
        [row for one in hudi_rs.HudiTable(str(path)).read() for row in one.to_pylist()]
    ) == (own)
    return own


def sorted_rows(found: list[dict[str, Any]]) -> Rows:
    return sorted(tuple(row[name] for name in COLUMNS) for row in found)


def files_of(path: Path) -> dict[str, int]:
    return {
        str(file.relative_to(path)): file.stat().st_mtime_ns
        for file in path.rglob("*")
        if file.is_file() and ".locks" not in file.parts
    }


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("version_6"))


@pytest.fixture
def path(captured: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(captured, tmp_path / "table"))


@pytest.mark.parametrize("to", [8, 9])
def test_a_table_is_what_the_upgrade_of_hudi_makes_of_it(path: Path, to: int) -> None:
    before = agreed_rows(path)
    table = opened(path)
    # readers of version 6 go by requested times, later ones by completion times
    begin = str(int(table.timeline.completed_writes()[-1].requested_time) - 1)
    changes = sorted_rows(table.incremental(begin).to_pylist())
    archives = {str(one.relative_to(path)) for one in path.rglob(".commits_*")}
    plan = table.upgrade(to, dry_run=True)
    done = table.upgrade(to)

    assert done == plan
    assert Left.of(path) == Left.by_hudi(to)
    assert agreed_rows(path) == before
    found = opened(path)
    assert (found.config.version, found.config.initial_version) == (to, 6)
    assert sorted_rows(found.incremental(begin).to_pylist()) == changes
    assert len(changes) == 3
    assert found.validate(keys=True).is_valid
    assert StoredPartitions.of(found.config).complete == ("column_stats", "files")
    assert len(found.savepoints) == 1
    # nothing of the former layout is left
    assert not list((path / ".hoodie").glob("[0-9]*"))
    assert not list((path / ".hoodie").rglob(".commits_*"))
    assert not (path / MARK).exists()
    assert len(plan.renamed) == len(list((path / ".hoodie/timeline").glob("[0-9]*")))
    assert set(plan.archives) == archives
    assert not table.upgrade(to).is_needed


def test_it_is_written_and_served_afterwards(path: Path) -> None:
    before = {row[1]: row[2:] for row in agreed_rows(path)}
    table = opened(path)
    table.upgrade(8)
    changed = {2: ("A", 99.5, 99), 77: ("B", 7.5, 99)}
    data = [dict(zip(COLUMNS[1:], (key, *row), strict=True)) for key, row in changed.items()]
    done = table.upsert(pa.Table.from_pylist(data, table.schema))
    assert (done.updated, done.inserted) == (1, 1)
    assert {row[1]: row[2:] for row in agreed_rows(path)} == before | changed
    kept = table.savepoints[0].instant
    table.restore(kept)
    assert table.history().num_rows > 16
    table.delete_savepoint(kept)
    table.clean(options={"hoodie.cleaner.commits.retained": "1"})
    table.archive(options={"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
    assert opened(path).validate(keys=True).is_valid


@pytest.mark.parametrize("name", VERSION_6)
def test_tables_of_older_releases(name: str, real_tables: RealTables, hudi_tables: Source) -> None:
    path = real_tables(name)
    options = {"hoodie.table.timeline.local.zone": hudi_tables.zone}

    def seen() -> tuple[list[Any], list[Any]]:
        own = opened(path, options).to_arrow().to_pylist()
        others = [row for one in hudi_rs.HudiTable(str(path)).read() for row in one.to_pylist()]
        key = "_hoodie_record_key"
        return sorted(own, key=lambda row: row[key]), sorted(others, key=lambda row: row[key])

    before = seen()
    for to in (8, 9, 8):
        opened(path, options).upgrade(to)
        assert seen() == before
        assert opened(path, options).validate(keys=True).is_valid
    # the table has been unpacked since: dates say nothing
    times = [(one.requested_time, one.completion_time) for one in opened(path).timeline.instants]
    assert all(int(done or 0) - int(begun) == 1 for begun, done in times)
    table = opened(path, options)
    again = table.to_arrow(table.schema.names).slice(0, 1)
    assert table.upsert(again).updated == 1
    assert len(seen()[0]) == len(before[0])


def is_rebuilding(table: hudi.Table) -> bool:
    return StoredPartitions.of(table.config).is_rebuilding


# --- deaths ---------------------------------------------------------------------------------------


def deaths(captured: Path, folder: Path, to: int, apart: int) -> Iterator[tuple[Path, int]]:
    """Yield a copy of the table for each change in which an upgrade of it died."""
    for number in range(1, 1000, apart):
        path = Path(shutil.copytree(captured, folder / f"{to}-{number}"))
        with pytest.MonkeyPatch.context() as patched:
            storage = MortalStorage(patched, is_done=bool(number % 2))
            storage.left = number
            try:
                opened(path).upgrade(to)
            except Died:
                pass
            else:
                assert number > 50
                return
        yield path, number
        shutil.rmtree(path)


@pytest.mark.parametrize(("to", "again", "apart"), [(8, 8, 9), (9, 9, 17), (8, 9, 23), (9, 8, 29)])
def test_an_upgrade_that_died_anywhere_is_whole_and_ends(
    captured: Path, tmp_path: Path, to: int, again: int, apart: int
) -> None:
    expected, by_hudi = agreed_rows(captured), Left.by_hudi(again)
    seen = set()
    for path, number in deaths(captured, tmp_path, to, 1 if IS_WHOLE else apart):
        assert agreed_rows(path) == expected, number
        table = opened(path)
        seen.add(table.config.version)
        plan = table.upgrade(again, dry_run=True)
        # else it died before the first copy, or after all was done
        assert plan.is_resumed == ((path / MARK).exists() or is_rebuilding(table)), number
        table.upgrade(again)
        assert agreed_rows(path) == expected, number
        left = Left.of(path)
        assert (left.instants, left.history) == (by_hudi.instants, by_hudi.history), number
        if to == again:
            assert left.properties == by_hudi.properties, number
        assert opened(path).validate().is_valid, number
        assert not (path / MARK).exists()
        assert not opened(path).upgrade(again, dry_run=True).is_needed
    assert seen == {6, to}


def test_a_table_written_after_a_death_is_ended_all_the_same(path: Path) -> None:
    with death_in("hudi_core.services.upgrade._change_version"):
        opened(path).upgrade(8)
    assert opened(path).config.version == 6
    assert (path / MARK).exists()
    # its writer goes on as version 6: a commit is undone, its files are gone
    last = opened(path).timeline.completed_writes()[-1].requested_time
    for file in [*(path / ".hoodie").glob(f"{last}*"), *path.rglob(f"*_{last}.parquet")]:
        file.unlink()
    expected = agreed_rows(path)
    opened(path).upgrade(8)
    assert agreed_rows(path) == expected
    assert not list((path / ".hoodie/timeline").glob(f"{last}*"))
    assert opened(path).validate().is_valid


# --- what is pending ------------------------------------------------------------------------------


def test_a_dead_write_is_rolled_back(path: Path) -> None:
    last = opened(path).timeline.completed_writes()[-1]
    (path / ".hoodie" / f"{last.requested_time}.commit").unlink()
    expected = agreed_rows(path)
    done = opened(path).upgrade(8)
    assert [one.requested_time for one in done.pending] == [last.requested_time]
    assert agreed_rows(path) == expected
    table = opened(path)
    assert [one.action for one in table.timeline.instants][-1] is Action.ROLLBACK
    assert not list(path.glob(f"*/*_{last.requested_time}.parquet"))
    assert table.validate().is_valid


def test_what_the_archive_has_is_not_pending(path: Path) -> None:
    archived = Left.by_hudi(8).history
    time = next(key.split()[0] for key in sorted(archived) if key.endswith(" commit"))
    (path / ".hoodie" / f"{time}.inflight").write_bytes(b"")
    expected = agreed_rows(path)
    done = opened(path).upgrade(8)
    assert done.pending == ()
    assert agreed_rows(path) == expected
    assert Left.of(path).history == archived
    assert not list((path / ".hoodie/timeline").glob(f"{time}*"))


def test_a_live_writer_is_not_disturbed(path: Path) -> None:
    last = opened(path).timeline.completed_writes()[-1].requested_time
    (path / ".hoodie" / f"{last}.commit").unlink()
    beat = path / heartbeat_path(last)
    beat.parent.mkdir(parents=True, exist_ok=True)
    beat.write_bytes(b"")
    before = files_of(path)
    with pytest.raises(ConcurrentWriterError, match=last):
        opened(path).upgrade(8)
    assert files_of(path) == before


# --- refusals -------------------------------------------------------------------------------------


def properties(path: Path, **changes: str) -> None:
    file = path / ".hoodie/hoodie.properties"
    lines = [f"{name.replace('__', '.')}={text}\n" for name, text in changes.items()]
    kept = [
        line
        for line in file.read_text().splitlines(keepends=True)
        if line.partition("=")[0] not in {one.partition("=")[0] for one in lines}
    ]
    file.write_text("".join([*kept, *lines]))


def refused(path: Path, to: int, error: type[Exception], words: str, **options: str) -> None:
    before = files_of(path)
    given = OPTIONS | {name.replace("__", "."): text for name, text in options.items()}
    for dry_run in (True, False):
        with pytest.raises(error, match=words):
            opened(path, given).upgrade(to, dry_run=dry_run)
    assert files_of(path) == before


def test_what_cannot_be_done_is_refused_before_anything_changes(path: Path) -> None:
    refused(path, 7, InvalidOptionError, "version 6, 8 or 9")
    refused(*(path, 8, TimelineError, "UTC[+-]"), hoodie__table__timeline__local__zone="Asia/Tokyo")
    half = path / ".hoodie/timeline"
    half.mkdir()
    (half / "20260101000000000_20260101000000001.commit").write_bytes(b"{}")
    refused(path, 8, TableServiceError, "another program's upgrade")
    shutil.rmtree(half)
    (path / ".hoodie/20300101000000000.indexing.requested").write_bytes(b"")
    refused(path, 8, UnsupportedTableError, "indexing")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("hoodie__compaction__payload__class", "com.acme.Ours", "com.acme.Ours"),
        ("hoodie__table__metadata__partitions", "files,expr_index_ts", "expr_index_ts"),
        ("hoodie__table__keygenerator__type", "CUSTOM", "partitionpath.field"),
    ],
)
def test_tables_that_are_refused(path: Path, name: str, text: str, words: str) -> None:
    properties(path, **{name: text})
    refused(path, 8, UnsupportedTableError, words)


def test_what_the_fields_of_a_custom_generator_are_is_asked_for(path: Path) -> None:
    properties(path, hoodie__table__keygenerator__type="CUSTOM")
    expected = agreed_rows(path)
    fields = {"hoodie.datasource.write.partitionpath.field": "city:SIMPLE"}
    opened(path).upgrade(9, options=fields)
    table = opened(path)
    assert table.config.partition_types == ("SIMPLE",)
    assert sorted_rows(table.to_arrow(COLUMNS).to_pylist()) == expected


def test_the_way_keys_are_spelled_is_found_out(path: Path) -> None:
    word = "hoodie.table.complex.keygen.encoding"
    properties(path, hoodie__table__keygenerator__type="COMPLEX")
    done = opened(path).upgrade(8)
    assert done.properties[word] == (None, "VALUE_ONLY")
    # version 9 has it as well, and so has version 8 again
    for to in (9, 8):
        opened(path).upgrade(to)
        assert opened(path).config.raw[word] == "VALUE_ONLY"


# --- between 8 and 9 ------------------------------------------------------------------------------


@pytest.mark.parametrize("format_name", ["native", "iceberg", "delta"])
def test_up_to_9_and_down_to_8(tmp_path: Path, format_name: str) -> None:
    data = pa.table({"id": [1, 2, 3], "city": ["A", "B", "A"], "v": [1.5, 2.5, 3.5], "ts": [1] * 3})
    options = {"hoodie.fs.fsync": "false", "hoodie.metadata.record.index.enable": "true"}
    table = new_table(tmp_path / "t", data.schema, options, format=format_name)
    table.insert(data)
    for to, form in ((9, "V2"), (8, "V1")):
        done = table.upgrade(to)
        assert "record_index" in done.partitions
        assert table.config.version == to
        assert table.validate(keys=True).is_valid
        assert table.upsert(data).updated == 3
        client = table._session.opened.client
        raw = read_definitions(client.storage, client.config).raw
        assert raw["column_stats"].get("version", "V1") == form
        assert table.count() == 3
        assert [one.state for one in table.timeline.instants] == [State.COMPLETED] * len(
            table.timeline.instants
        )


def test_on_an_object_store(captured: Path, s3: Any) -> None:
    root = s3.new_root()
    for file in captured.rglob("*"):
        if file.is_file():
            name = f"{root.removeprefix('s3://')}/{file.relative_to(captured)}"
            with s3.filesystem.open_output_stream(name) as stream:
                stream.write(file.read_bytes())
    options = {**s3.given, **UTC}
    expected = sorted_rows(opened(captured).to_arrow(COLUMNS).to_pylist())
    hudi.Table.open(root, options).upgrade(9)
    table = hudi.Table.open(root, options)
    assert sorted_rows(table.to_arrow(COLUMNS).to_pylist()) == expected
    assert table.validate().is_valid
    # objects have been copied, and so have no dates that count
    done = [(one.requested_time, one.completion_time) for one in table.timeline.instants]
    assert all(int(end or 0) - int(begin) <= 2 for begin, end in done)
    names = [name.rpartition("/.hoodie/")[2] for name in s3.paths(root)]
    assert not [name for name in names if name[:1].isdigit() or ".commits_" in name]


def test_command(path: Path) -> None:
    run = CliRunner().invoke
    zone = ["-o", "hoodie.table.timeline.local.zone=UTC"]
    before = files_of(path)
    shown = run(app, ["table", "upgrade", str(path), "--to", "9", "--dry-run", *zone])
    assert shown.exit_code == 0, shown.output
    assert "Nothing was changed" in shown.output
    assert "hoodie.table.version" in shown.output
    assert files_of(path) == before
    done = run(app, ["table", "upgrade", str(path), "--to", "9", "--json", *zone])
    document = json.loads(done.stdout)
    assert (document["from"], document["to"], document["changed"]) == (6, 9, True)
    assert document["properties"]["hoodie.table.version"] == {"before": "6", "after": "9"}
    assert document["metadata_partitions"] == ["column_stats", "files"]
    again = run(app, ["table", "upgrade", str(path), "--to", "9"])
    assert "already: nothing to do" in " ".join(again.stdout.split())
    assert run(app, ["table", "upgrade", str(path), "--to", "7"]).exit_code == 2
