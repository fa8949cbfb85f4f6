"""Tables on S3: every operation, read by hudi-rs too; several writers, and what the table is told.

The service is one of this process, see ``conftest.py``.
"""

from __future__ import annotations

import json
import logging
import threading
import traceback
from itertools import product
from typing import Any

import hudi as hudi_rs
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable

import hudi_core as hudi
from hudi_core.config.write import WriteConfig
from hudi_core.errors import (
    CommitConflictError,
    ConcurrentWriterError,
    NotATableError,
    SchemaError,
    UnsafeStoreError,
)
from hudi_core.model.commit import WriteOperation
from hudi_core.model.instant import Action
from hudi_core.services.opening import open_table
from hudi_core.storage.object_store import ObjectStorage
from hudi_core.txn.begin import begin
from hudi_core.txn.table_lock import table_lock
from tests import tables
from tests.foreign import by_hudi_rs
from tests.forked_commands import ForkedCommands
from tests.samples import sampled

Row = dict[str, Any]
TAGGED = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("amount", pa.decimal128(12, 2)),
        ("tags", pa.list_(pa.string())),
    ]
)
LOCK_CLASS = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"
SEVERAL = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
LOCK_FILE = ".hoodie/.locks/table_lock.json"


def tagged_rows(numbers: range, ts: int) -> pa.Table:
    made = [
        {
            "id": f"k{n:03d}",
            "city": ("rome", "são paulo")[n % 2],
            "ts": ts,
            "amount": None if n % 5 == 0 else n + ts,
            "tags": [None, [], ["a", None]][n % 3],
        }
        for n in numbers
    ]
    return pa.Table.from_pylist(made, TAGGED)


def s3_table(s3: Any, path: str, **options: str) -> hudi.Table:
    return tables.new_table(path, TAGGED, {**s3.given, **options})


def theirs(s3: Any, path: str, options: Any = None) -> list[Row]:
    return ordered(by_hudi_rs(path, options, s3.rust))


def ordered(found: Any) -> list[Row]:
    return sorted(found, key=lambda row: str(row["_hoodie_record_key"]))


def plain(found: list[Row]) -> list[Row]:
    return [{name: row[name] for name in TAGGED.names} for row in found]


@pytest.mark.parametrize(
    ("version", "scheme"), sampled(list(product(["8", "9"], ["s3", "s3a"])), 3)
)
def test_every_operation_and_query(s3: Any, scheme: str, version: str) -> None:
    path = s3.new_root()
    uri = path.replace("s3://", f"{scheme}://")
    table = s3_table(s3, uri, **{"hoodie.write.table.version": version})
    held: dict[str, Row] = {}
    states = []
    steps: list[tuple[str, pa.Table]] = [
        ("bulk_insert", tagged_rows(range(10), 1)),
        ("insert", tagged_rows(range(10, 14), 1)),
        ("upsert", tagged_rows(range(8, 16), 2)),
        ("upsert", tagged_rows(range(2), 0)),  # older than what is stored: nothing changes
        ("delete", tagged_rows(range(3), 0)),
    ]
    for operation, batch in steps:
        result = getattr(table, operation)(batch)
        for row in batch.to_pylist():
            if operation == "delete":
                held.pop(row["id"], None)
            elif row["id"] not in held or row["ts"] >= held[row["id"]]["ts"]:
                held[row["id"]] = row
        states.append((result.instant, sorted(held.values(), key=lambda row: str(row["id"]))))

    again = hudi.Table.open(uri, s3.given)
    found = ordered(again.to_arrow().to_pylist())
    assert plain(found) == states[-1][1]
    assert found == theirs(s3, path)
    for instant, state in states:
        past = ordered(again.to_arrow(as_of=instant.requested_time).to_pylist())
        options = hudi_rs.HudiReadOptions().with_as_of_timestamp(instant.requested_time)
        assert plain(past) == state
        assert past == theirs(s3, path, options)
    begin_, end = states[0][0].completion_time, states[2][0].completion_time
    changes = hudi_rs.HudiReadOptions().with_query_type(hudi_rs.HudiQueryType.Incremental)
    changes = changes.with_start_timestamp(begin_).with_end_timestamp(end)
    changed = ordered(again.incremental(begin_, end).to_pylist())
    assert len(changed) == 8
    assert changed == theirs(s3, path, changes)

    again.rollback(states[-1][0])
    back = ordered(hudi.Table.open(uri, s3.given).to_arrow().to_pylist())
    assert plain(back) == states[-2][1]
    assert back == theirs(s3, path)
    again.cluster(sort_by="amount", schedule_only=True)
    assert [one.outputs for one in again.run_clusterings()] == [2]
    clustered = ordered(again.to_arrow().to_pylist())
    assert plain(clustered) == states[-2][1]
    assert clustered == theirs(s3, path)
    left = {path for path in s3.paths(path) if "/.temp/" in path or "/.heartbeat/" in path}
    assert left == set()


def test_save_modes(s3: Any) -> None:
    path = s3.new_root()
    options = {
        **s3.given,
        "hoodie.table.name": "modes",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
    }
    assert hudi.write(tagged_rows(range(4), 1), path, "errorifexists", options) is not None
    assert hudi.write(tagged_rows(range(9), 1), path, "ignore", options) is None
    with pytest.raises(NotATableError, match="holds a table already"):
        hudi.write(tagged_rows(range(9), 1), path, "errorifexists", options)
    hudi.write(tagged_rows(range(2), 1), path, "overwrite", options)
    assert hudi.read(None, path, s3.given).num_rows == 2
    assert len(hudi.Table.open(path, s3.given).timeline.completed_writes()) == 1


def test_a_stage(s3: Any) -> None:
    path = s3.new_root()
    table = s3_table(s3, path)
    table.insert(tagged_rows(range(10), 1))
    staged = table.stage(tagged_rows(range(5, 15), 2))
    before = theirs(s3, path)
    assert len(before) == table.count() == 10
    [found] = hudi.Table.open(path, s3.given).stages()
    would_be = found.to_arrow().select(TAGGED.names).sort_by("id")
    assert (found.id, found.count()) == (staged.id, 15)
    found.publish(validators=[lambda rows, commit: rows.count_rows() == 15])
    assert table.to_arrow(TAGGED.names).sort_by("id") == would_be
    assert len(theirs(s3, path)) == 15
    table.stage(tagged_rows(range(3), 3)).drop()
    assert table.stages() == ()


def test_a_second_live_writer_is_seen_and_refused(s3: Any) -> None:
    path = s3.new_root()
    table = s3_table(s3, path)
    opened = open_table(path, s3.given)
    config = WriteConfig.from_options(s3.given)
    first = begin(opened, table_lock(opened, config), config, Action.COMMIT, WriteOperation.UPSERT)
    with pytest.raises(ConcurrentWriterError) as caught:
        table.insert(tagged_rows(range(3), 1))
    assert caught.value.instant == first.instant.requested_time
    first.abort()
    assert table.insert(tagged_rows(range(3), 1)).inserted == 3


def test_several_writers_share_a_lock_in_the_store(s3: Any) -> None:
    path = s3.new_root()
    s3_table(s3, path).insert(tagged_rows(range(4), 1))
    mine = hudi.Table.open(path, {**s3.given, **SEVERAL, "hoodie.write.lock.provider": LOCK_CLASS})
    opened = open_table(path, {**s3.given, **SEVERAL})
    config = WriteConfig.from_options({**s3.given, **SEVERAL})
    lock = table_lock(opened, config)
    assert lock.excludes_processes
    theirs_ = begin(opened, lock, config, Action.COMMIT, WriteOperation.UPSERT)
    result = mine.upsert(tagged_rows(range(2), 2))
    assert result.updated == 2
    with pytest.raises(CommitConflictError) as caught:
        theirs_.commit(result.metadata, result.statuses)
    assert caught.value.facts["other"] == result.instant.requested_time
    theirs_.abort()
    [held] = [data for name, data in s3.objects(path).items() if name.endswith(LOCK_FILE)]
    assert json.loads(held)["expired"] is True
    assert mine.to_arrow().num_rows == 4


WRITER = """
import json, sys, warnings
warnings.simplefilter("error")
import pyarrow as pa
import hudi_core as hudi
path, options, name = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
table = hudi.Table.open(path, options)
for n in range(3):
    rows = pa.table({"id": [f"{name}{n}"], "city": [name], "ts": [n]})
    full = pa.Table.from_pylist(rows.to_pylist(), table.schema)
    assert table.upsert(full).inserted == 1
"""


def test_processes_that_write_at_once_lose_nothing(s3: Any, commands: ForkedCommands) -> None:
    path = s3.new_root()
    s3_table(s3, path)
    options = json.dumps({**s3.given, **SEVERAL, "hoodie.write.lock.provider": "storage"})
    writers = [commands.start(WRITER, path, options, name) for name in ("a", "b", "c")]
    assert [commands.wait(writer) for writer in writers] == [0, 0, 0]
    table = hudi.Table.open(path, s3.given)
    assert len(table.timeline.completed_writes()) == 9
    found = sorted(table.to_arrow(columns=["id"]).column("id").to_pylist())
    assert found == sorted(f"{name}{n}" for name in "abc" for n in range(3))
    assert len(theirs(s3, path)) == 9


def test_a_store_that_ignores_conditions_has_one_writer_only(careless_s3: Any) -> None:
    path = careless_s3.new_root()
    table = s3_table(careless_s3, path)
    assert table.insert(tagged_rows(range(3), 1)).inserted == 3
    before = careless_s3.objects(path)
    for provider in ({}, {"hoodie.write.lock.provider": "in_process"}):
        with pytest.raises(UnsafeStoreError, match="SINGLE_WRITER") as caught:
            table.insert(tagged_rows(range(3, 5), 1), options={**SEVERAL, **provider})
        assert caught.value.root == path
    with pytest.raises(UnsafeStoreError):
        table.insert(tagged_rows(range(3, 5), 1), options={"hoodie.write.lock.provider": "storage"})
    assert careless_s3.objects(path) == before
    assert table.insert(tagged_rows(range(3, 5), 1)).inserted == 2


def test_secrets_reach_neither_the_table_nor_logs_nor_errors(
    s3: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    canaries = {
        "fs.s3a.access.key": "canary-access-5d1",
        "fs.s3a.secret.key": "canary-secret-7e2",
        "fs.s3a.session.token": "canary-token-9f3",
    }
    options = {**s3.given, **canaries}
    path = s3.new_root()
    several = {**SEVERAL, "hoodie.write.lock.provider": "storage"}
    table = tables.new_table(path, TAGGED, {**options, **several}, ordering_field=None)
    results = [table.insert(tagged_rows(range(5), 1)), table.upsert(tagged_rows(range(3), 2))]
    table.rollback(results[-1].instant)
    told = [
        repr(results),
        repr(table),
        repr(table.config),
        repr(table._session.opened),
        caplog.text,
    ]
    told.append(repr(WriteConfig.from_options(options)))
    with pytest.raises(SchemaError) as unfit:
        table.insert(pa.table({"id": ["a"], "strange": [1]}))
    with pytest.raises(NotATableError) as missing:
        hudi.Table.open(f"{path}-not", options)
    told += ["".join(traceback.format_exception(error.value)) for error in (unfit, missing)]
    stored = s3.objects(path)
    assert len(stored) > 8
    for canary in canaries.values():
        assert not [name for name, data in stored.items() if canary.encode() in data]
        assert not [text for text in told if canary in text]


def test_partitions_are_listed_at_the_same_time(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = s3.new_root()
    table = s3_table(s3, path)
    table.bulk_insert(tagged_rows(range(4), 1))
    together = threading.Barrier(2, timeout=30)
    whole = ObjectStorage.list

    def waiting(storage: ObjectStorage, prefix: str = "", *rest: Any, **named: Any) -> Any:
        if not prefix.startswith(".hoodie"):
            together.wait()
        return whole(storage, prefix, *rest, **named)

    monkeypatch.setattr(ObjectStorage, "list", waiting)
    assert table.to_arrow().num_rows == 4


@pytest.mark.parametrize(
    ("table_format", "version"), [("native", ""), ("iceberg,delta", "2"), ("iceberg,delta", "3")]
)
def test_split_tables(s3_process: Any, table_format: str, version: str) -> None:
    """Rows are deleted by position in each format, and its readers see it."""
    path = s3_process.new_root()
    options = {"hoodie.compact.inline": "false"}
    if table_format == "native":
        options |= {"hoodie.table.merge-on-read.mode": "split"}
    else:
        options |= {"hoodie.table.format.iceberg.format-version": version}
    table = tables.new_table(
        path,
        tables.SCHEMA,
        {**s3_process.given, **options},
        format=table_format,
        table_type="MERGE_ON_READ",
        partition_by=None,
    )
    table.insert(tables.rows(*"abcdef", part="p", ts=1))
    table.upsert(tables.rows("a", "g", part="p", ts=2))
    table.delete(tables.rows("b", part="p"))
    held = [("a", 2), ("c", 1), ("d", 1), ("e", 1), ("f", 1), ("g", 2)]
    assert _seen_alike(s3_process, path, table_format) == held
    table.compact()
    assert _seen_alike(s3_process, path, table_format) == held
    table.upsert(tables.rows("c", part="p", ts=3))
    held[1] = ("c", 3)
    assert _seen_alike(s3_process, path, table_format) == held
    assert hudi.Table.open(path, s3_process.given).validate(keys=True).is_valid


def _seen_alike(s3: Any, path: str, table_format: str) -> list[tuple[str, int]]:
    """Rows that all readers of a table see."""
    found = {
        "ours": hudi.Table.open(path, s3.given).to_arrow().to_pylist(),
        "hudi-rs": by_hudi_rs(path, None, s3.rust),
    }
    if table_format != "native":
        iceberg = StaticTable.from_metadata(path, s3.pyiceberg)
        found["pyiceberg"] = iceberg.scan().to_arrow().to_pylist()
        query = QueryBuilder().register("t", DeltaTable(path, storage_options=s3.rust))
        found["delta-rs"] = pa.table(query.execute("select * from t").read_all()).to_pylist()
    held = {name: sorted((row["id"], row["ts"]) for row in rows) for name, rows in found.items()}
    for name, rows in held.items():
        assert rows == held["ours"], name
    return held["ours"]
