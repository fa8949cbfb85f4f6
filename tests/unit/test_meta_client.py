"""The meta client: folders, bodies and the schema of one table."""

from __future__ import annotations

import inspect
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.config.kinds import TableType
from hudi_core.config.placement import Placement
from hudi_core.config.table import TableConfig
from hudi_core.errors import SchemaError, UnknownExtensionError, UnsupportedTableError
from hudi_core.meta_client import TableMetaClient, run_in_threads
from hudi_core.model.client import MetaClientView
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata
from hudi_core.model.files import BasePath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.serde import encode

CONFIG = TableConfig(name="t", record_key_fields=("id",))


def schema_of(*names: str) -> TableSchema:
    return TableSchema.create(pa.schema([(name, pa.string()) for name in names]))


def open_client(path: Path, config: TableConfig = CONFIG, **more: Any) -> TableMetaClient:
    storage = PosixStorage(str(path), fsync=False)
    return TableMetaClient(BasePath(str(path)), storage, config, StorageOptions(), **more)


def write(
    client: TableMetaClient,
    requested: str,
    completed: str,
    schema: TableSchema | None,
    action: Action = Action.COMMIT,
) -> Instant:
    extra = {"schema": schema.to_avro("t")} if schema else {"schema": ""}
    kind = ReplaceCommitMetadata if action is Action.REPLACECOMMIT else CommitMetadata
    instant = Instant(InstantTime(f"202601010000{requested}"), action, State.INFLIGHT)
    return client.active.complete(
        instant, InstantTime(f"202601010000{completed}"), encode(kind(extra_metadata=extra))
    )


def test_it_is_what_hooks_are_typed_against(tmp_path: Path) -> None:
    client: MetaClientView = open_client(tmp_path)
    assert client.config.table_format == "native"


def test_folders_of_layout_2(tmp_path: Path) -> None:
    client = open_client(tmp_path)
    assert client.active.folder == ".hoodie/timeline"
    assert client.archived.folder == ".hoodie/timeline/history"
    moved = open_client(tmp_path, replace(CONFIG, timeline_path="line", history_path="old"))
    assert moved.active.folder == ".hoodie/line"
    assert moved.archived.folder == ".hoodie/line/old"


def test_folders_of_layout_1(tmp_path: Path) -> None:
    client = open_client(tmp_path, replace(CONFIG, version=6, layout_version=1))
    assert client.active.folder == ".hoodie"
    assert client.active.layout_version == client.archived.layout_version == 1
    assert client.archived.folder == ".hoodie/archived"


def test_the_timeline_is_read_anew(tmp_path: Path) -> None:
    client = open_client(tmp_path)
    assert client.timeline().instants == ()
    instant = write(client, "00001", "00002", schema_of("id"))
    assert client.timeline().instants == (instant,)
    assert client.read_commit(instant).schema_json == schema_of("id").to_avro("t")
    assert client.read_instant(instant).startswith(b"Obj\x01")


def test_the_schema_is_that_of_the_last_completed_write(tmp_path: Path) -> None:
    config = replace(CONFIG, create_schema=schema_of("id").to_avro("t"))
    client = open_client(tmp_path, config)
    assert client.schema.names == ["id"]
    write(client, "00001", "00090", schema_of("id", "late"))
    write(client, "00002", "00003", schema_of("id", "early"))
    assert client.schema.names == ["id", "late"]
    # a write that keeps none, and pending ones, do not count
    write(client, "00004", "00095", None, Action.REPLACECOMMIT)
    client.active.create_requested(
        Instant(InstantTime("20260101000000005"), Action.COMMIT, State.REQUESTED)
    )
    assert client.schema.names == ["id", "late"]


def test_the_schema_of_another_timeline(tmp_path: Path) -> None:
    client = open_client(tmp_path)
    write(client, "00001", "00002", schema_of("id"))
    write(client, "00003", "00004", schema_of("id", "new"))
    past = client.timeline().as_of(InstantTime("20260101000000002"))
    assert client.schema_at(past).names == ["id"]


def test_field_ids_that_another_writer_dropped_come_from_the_properties(tmp_path: Path) -> None:
    text = '{"type":"record","name":"r","fields":[{"name":"id","type":"string"}]}'
    client = open_client(
        tmp_path, replace(CONFIG, create_schema=text, field_ids={"id": 41}, last_column_id=77)
    )
    assert client.schema.field_ids()["id"] == 41
    assert client.schema.last_column_id == 77


def test_no_schema_anywhere(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="has no schema"):
        _ = open_client(tmp_path).schema


def test_format_options_are_stored_or_given(tmp_path: Path) -> None:
    stored = {
        "hoodie.table.format": "iceberg",
        "hoodie.table.format.iceberg.location": "s3://b/t",
        "hoodie.table.format.iceberg.catalog": "stored",
        "hoodie.table.format.delta.location": "elsewhere",
    }
    config = replace(CONFIG, table_format="iceberg", raw=stored)
    given = {"hoodie.table.format.iceberg.catalog": "given", "hoodie.table.name": "t"}
    client = open_client(tmp_path, config, options=given)
    assert client.format_options == {"location": "s3://b/t", "catalog": "given"}
    assert "given" not in repr(client)


def test_files_lie_where_the_table_says(tmp_path: Path) -> None:
    client = open_client(tmp_path)
    assert client.files.uri("p=1/f.parquet") == f"{tmp_path}/p=1/f.parquet"
    assert client.data is client.storage
    assert client.root is client.storage
    strange = replace(CONFIG, placement=Placement("far", ("s3://data",)))
    with pytest.raises(UnknownExtensionError):
        _ = open_client(tmp_path, strange).files


def test_tables_that_must_not_be_written(tmp_path: Path) -> None:
    open_client(tmp_path).require_writable()
    config = replace(CONFIG, table_type=TableType.MERGE_ON_READ)
    with pytest.raises(UnsupportedTableError, match=str(tmp_path)):
        open_client(tmp_path, config).require_writable()


def test_small_work_is_done_in_order_without_an_engine(tmp_path: Path) -> None:
    assert list(open_client(tmp_path).run_map(str, [3, 1, 2])) == ["3", "1", "2"]


def test_it_is_a_value(tmp_path: Path) -> None:
    client = open_client(tmp_path)
    with pytest.raises(AttributeError):
        client.base_path = BasePath("/elsewhere")  # type: ignore[misc]
    assert "storage_options" in inspect.signature(TableMetaClient).parameters


# --- work that is shared out
# ----------------------------------------------------------------------------------------------


def test_requests_are_made_at_the_same_time_and_answered_in_order() -> None:
    together = threading.Barrier(3, timeout=30)

    def ask(number: int) -> int:
        together.wait()  # each waits for the others: one after the other they would never answer
        return number * 2

    assert list(run_in_threads(ask, [1, 2, 3])) == [2, 4, 6]
    assert list(run_in_threads(str, [])) == []
    with pytest.raises(ZeroDivisionError):
        list(run_in_threads(lambda number: 1 // number, [1, 0]))
