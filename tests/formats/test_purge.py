"""After a purge no file of a table holds a deleted row."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.config.write import WriteConfig
from hudi_core.errors import ConcurrentWriterError, HistoryExpiredError, TableServiceError
from hudi_core.log_format.block import read_log_blocks
from hudi_core.metadata.hfile.reader import HFileReader
from hudi_core.model.commit import WriteOperation
from hudi_core.model.instant import Action
from hudi_core.services import purge
from hudi_core.services.opening import open_table
from hudi_core.txn.begin import begin
from hudi_core.txn.table_lock import table_lock
from tests.formats.service_tables import TAGGED, agree, bag, batch, two_writes
from tests.tables import FORMATS

_AVRO = b"Obj\x01"
_LOG = b"#HUDI#"
_PARQUET = b"PAR1"


def traces(root: Path, text: str) -> list[str]:
    """Files below a folder that hold a text, in whatever form they keep it."""
    return [
        str(file.relative_to(root))
        for file in sorted(root.rglob("*"))
        if file.is_file() and any(text in part for part in _parts(file))
    ]


def _parts(file: Path) -> Iterator[str]:
    data = file.read_bytes()
    yield data.decode("latin-1")
    if data.startswith(_PARQUET):
        yield _parquet(file)
    elif data.startswith(_AVRO):
        with file.open("rb") as stream:
            yield "".join(map(_shown, fastavro.reader(stream)))
    elif data.startswith(_LOG):
        for block in read_log_blocks(data, str(file)):
            content = bytes(block.content)
            yield content.decode("latin-1")
            if content.startswith(b"DATABLK*"):
                yield _hfile(content)
    elif file.suffix == ".hfile":
        yield _hfile(data)
    elif data[:2] == b"\x1f\x8b":
        yield gzip.decompress(data).decode("latin-1")
    else:
        try:
            yield zlib.decompress(data).decode("latin-1")
        except zlib.error:
            return


def _parquet(file: Path) -> str:
    with pq.ParquetFile(file) as opened:
        footer = opened.metadata
        statistics = [
            footer.row_group(group).column(column).statistics
            for group in range(footer.num_row_groups)
            for column in range(footer.num_columns)
        ]
        bounds = [(one.min, one.max) for one in statistics if one is not None and one.has_min_max]
        return _shown([opened.read().to_pylist(), footer.metadata, bounds])


def _hfile(data: bytes) -> str:
    reader = HFileReader.from_bytes(data, "traces")
    return "".join(
        f"{key.decode('latin-1')}{value.decode('latin-1')}" for key, value in reader.entries()
    )


def _shown(value: Any) -> str:
    return repr(value)


CANARY = "zz-gone-51c0"
INDEXED = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.table.cdc.enabled": "true",
}


def written(path: Path, table_format: str) -> hudi.Table:
    """A table that held a row, in several versions, and does so no more."""
    table = two_writes(path, table_format, **INDEXED)
    table.upsert(batch(3, "a", CANARY, "q"))
    table.upsert(batch(4, "b", CANARY))
    table.delete(batch(5, CANARY))
    table.upsert(batch(6, "y"))
    return table


@pytest.mark.parametrize("table_format", [*FORMATS, "iceberg,delta"])
def test_no_file_holds_a_deleted_row(path: Path, table_format: str) -> None:
    table = written(path, table_format)
    assert len(traces(path, CANARY)) > 5
    before = bag(table.to_arrow(), TAGGED.names)
    done = table.purge()
    assert done.files
    assert traces(path, CANARY) == []
    assert agree(path) == before
    assert hudi.Table.open(path).validate(keys=True).differences == ()
    table.upsert(batch(7, "a", "n"))
    agree(path)
    assert table.purge().instant is not None
    assert hudi.Table.open(path).validate().differences == ()


def test_only_what_went_before_a_time_is_erased(path: Path) -> None:
    table = written(path, "native")
    since = table.timeline.completed_writes()[-1]
    for ts in (7, 8):
        table.upsert(batch(ts, "y"))
    table.purge(since)
    assert traces(path, CANARY) == []
    assert any(f"'ts': {6}" in repr(row) for row in table.to_arrow(as_of=since).to_pylist())
    with pytest.raises(HistoryExpiredError):
        table.to_arrow(as_of=table.timeline.completed_writes()[0])


def test_a_preview_names_what_goes_and_changes_nothing(path: Path) -> None:
    table = written(path, "native")
    saved = table.savepoint()
    table.upsert(batch(7, "y"))
    with pytest.raises(TableServiceError, match=saved.instant.requested_time):
        table.purge(dry_run=True)
    before = sorted((one, one.stat().st_mtime_ns) for one in path.rglob("*") if one.is_file())
    planned = table.purge(savepoints=[saved.instant], dry_run=True)
    after = sorted((one, one.stat().st_mtime_ns) for one in path.rglob("*") if one.is_file())
    assert (after, planned.instant) == (before, None)
    assert planned.files == table.purge(savepoints=[saved.instant]).files


def test_a_savepoint_that_holds_it_is_named(path: Path, native: hudi.Table) -> None:
    native.upsert(batch(3, CANARY))
    saved = native.savepoint().instant
    native.delete(batch(4, CANARY))
    with pytest.raises(TableServiceError, match=saved.requested_time):
        native.purge()
    assert traces(path, CANARY)
    native.purge(savepoints=[saved])
    assert traces(path, CANARY) == []
    assert native.savepoints == ()


def test_nothing_is_erased_under_a_writer(path: Path) -> None:
    table = written(path, "native")
    opened, config = open_table(str(path), {}), WriteConfig.from_options({})
    running = begin(
        opened, table_lock(opened, config), config, Action.COMMIT, WriteOperation.UPSERT
    )
    with pytest.raises(ConcurrentWriterError):
        table.purge()
    assert traces(path, CANARY)
    running.abort()
    table.purge()
    assert traces(path, CANARY) == []


# --- tables with log files ------------------------------------------------------------------------

LOGGED = {
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
SEVERAL = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}


def logged(path: Path, **options: str) -> hudi.Table:
    """A table whose base files and logs hold a row that it has no more."""
    table = two_writes(path, **{**LOGGED, **options})
    table.upsert(batch(3, "a", CANARY, "q"))
    table.upsert(batch(4, "b", CANARY))
    table.delete(batch(5, CANARY))
    table.upsert(batch(6, "y"))
    return table


def erased(path: Path, expected: Any) -> None:
    """Refuse a table that is not right, or holds the row."""
    assert traces(path, CANARY) == []
    assert agree(path) == expected
    assert hudi.Table.open(path).validate(keys=True).differences == ()
    assert not any(one.log_files for one in hudi.Table.open(path).file_slices())


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("block", ["parquet", "avro"])
def test_a_row_that_logs_delete_leaves_base_files_and_logs(
    version: str, block: str, path: Path
) -> None:
    table = logged(
        path, **{"hoodie.write.table.version": version, "hoodie.logfile.data.block.format": block}
    )
    assert len(traces(path, CANARY)) > 5
    before = bag(table.to_arrow(), TAGGED.names)
    planned = table.purge(dry_run=True)
    done = table.purge()
    assert set(done.files) == set(planned.files)
    assert any(".log." in one for one in done.files)
    erased(path, before)
    table = hudi.Table.open(path)
    table.upsert(batch(7, "a", "n"))
    table.upsert(batch(8, CANARY, "a"))
    table.delete(batch(9, CANARY))
    before = bag(table.to_arrow(), TAGGED.names)
    assert table.purge().instant is not None
    erased(path, before)


def test_a_replaced_value_leaves_dictionaries_too(path: Path) -> None:
    """In a column that is stored as numbers of its values."""
    schema = pa.schema([("id", pa.string()), ("word", pa.string())])
    table = hudi.Table.create(path, schema, record_key="id", options=LOGGED)
    words = [CANARY if one % 2 else "stays" for one in range(2000)]
    table.insert(pa.table([[f"k{one}" for one in range(2000)], words], schema.names))
    table.update({"word": "'other'"}, f"word = '{CANARY}'")
    table.purge()
    [one] = hudi.Table.open(path).file_slices()
    assert one.base_file is not None
    with pq.ParquetFile(path / one.base_file.path, read_dictionary=["word"]) as opened:
        column = opened.read(["word"]).column("word")
        assert {value for each in column.chunks for value in each.dictionary.to_pylist()} == {
            "stays",
            "other",
        }
    assert traces(path, CANARY) == []


def test_rows_of_replaced_groups_leave_their_logs(path: Path) -> None:
    table = logged(path)
    table.upsert(batch(7, CANARY))
    table.cluster(sort_by="ts")
    table.upsert(batch(8, "a"))
    table.delete(batch(9, CANARY))
    table.delete_partitions(["oslo"])
    before = bag(table.to_arrow(), TAGGED.names)
    table.purge()
    erased(path, before)


@pytest.mark.parametrize("compacts", [False, True])
def test_what_logs_deleted_before_a_time_is_erased(compacts: bool, path: Path) -> None:
    """States that read the row's base file go with it: what has not been compacted by then."""
    table = logged(path)
    since = table.timeline.completed_writes()[-1]
    if compacts:
        table.compact()
    later = [table.upsert(batch(ts, "y")).instant for ts in (7, 8)]
    before = bag(table.to_arrow(), TAGGED.names)
    planned = table.purge(since, dry_run=True)
    done = table.purge(since)
    assert set(done.files) == set(planned.files)
    assert traces(path, CANARY) == []
    assert agree(path) == before
    assert hudi.Table.open(path).validate(keys=True).differences == ()
    with pytest.raises(HistoryExpiredError):
        table.to_arrow(as_of=since)
    if compacts:
        rows = table.to_arrow(as_of=later[0]).to_pylist()
        assert [one["ts"] for one in rows if one["id"] == "y"] == [7]
        # these logs are younger: what they replaced stays
        assert any(one.log_files for one in hudi.Table.open(path).file_slices())


def test_a_scheduled_compaction_is_run_first(path: Path) -> None:
    table = logged(path)
    table.compact(schedule_only=True)
    table.upsert(batch(7, "a"))
    before = bag(table.to_arrow(), TAGGED.names)
    table.purge()
    erased(path, before)


def test_a_scheduled_clustering_of_logs_is_named(path: Path) -> None:
    table = logged(path)
    planned = table.cluster(schedule_only=True, options={ONE_FILE: "true"})
    before = everything(path)
    for dry_run in (True, False):
        with pytest.raises(TableServiceError, match=str(planned.instant)):
            table.purge(dry_run=dry_run)
    assert everything(path) == before
    table.run_clusterings()
    rows = bag(table.to_arrow(), TAGGED.names)
    table.purge()
    erased(path, rows)


ONE_FILE = "hoodie.clustering.plan.strategy.single.group.clustering.enabled"


def everything(path: Path) -> dict[str, bytes]:
    files = (one for one in path.rglob("*") if one.is_file() and ".locks" not in one.parts)
    return {str(one): one.read_bytes() for one in files}


def test_what_keeps_rows_refuses_before_logs_are_merged(path: Path) -> None:
    table = logged(path)
    saved = table.savepoint()
    before = [str(one) for one in table.timeline.instants]
    with pytest.raises(TableServiceError, match=saved.instant.requested_time):
        table.purge()
    assert [str(one) for one in hudi.Table.open(path).timeline.instants] == before
    table.purge(savepoints=[saved.instant])
    assert traces(path, CANARY) == []
    stage = table.stage(batch(7, "a"))
    before = [str(one) for one in table.timeline.instants]
    with pytest.raises(TableServiceError, match="Stages"):
        table.purge()
    assert [str(one) for one in hudi.Table.open(path).timeline.instants] == before
    stage.drop()


def test_a_log_that_comes_after_the_compaction_refuses(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = logged(path)
    compact = purge._compacted

    def slow(*given: Any) -> Any:
        found = compact(*given)
        hudi.Table.open(path, LOGGED).upsert(batch(7, "a"))
        return found

    monkeypatch.setattr(purge, "_compacted", slow)
    with pytest.raises(ConcurrentWriterError):
        table.purge()
    monkeypatch.undo()
    before = bag(hudi.Table.open(path).to_arrow(), TAGGED.names)
    table.purge()
    erased(path, before)
