"""Tables that do not store their record keys do all that tables with stored keys do."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.errors import InvalidOptionError, RecordKeyError, UnsupportedTableError
from hudi_core.schema.table_schema import META_COLUMNS, RECORD_KEY
from tests.formats.service_tables import READERS, bag
from tests.formats.virtual_tables import (
    GENERATORS,
    INDEXES,
    LEVELS,
    SCHEMA,
    Step,
    equal,
    history,
    made,
)
from tests.samples import paired

ALL = ("native", "iceberg", "delta")
HELD = {
    "no meta columns": (),
    "no key column": tuple(name for name in META_COLUMNS if name != RECORD_KEY),
    "transition": META_COLUMNS,
}
"""The meta columns in the files."""


def compare(stored: hudi.Table, virtual: hudi.Table, seed: int, *, by_ts: bool = False) -> None:
    for step in history(seed, by_ts=by_ts):
        assert step.run(virtual) == step.run(stored), step.operation
        equal(virtual, stored)
    for table in (stored, virtual):
        found = hudi.Table.open(table.path).validate(keys=True)
        assert not found.differences
        assert "files of keys" in found.checked


@pytest.mark.parametrize(("index", "level"), paired(INDEXES, LEVELS))
def test_every_index_finds_keys_that_are_made(tmp_path: Path, level: str, index: str) -> None:
    stored = made(tmp_path / "stored", None, index=index)
    compare(stored, made(tmp_path / "virtual", level, index=index), list(INDEXES).index(index))


@pytest.mark.parametrize(("generator", "level"), paired(GENERATORS, LEVELS, 1))
def test_every_key_generator_makes_keys_again(tmp_path: Path, level: str, generator: str) -> None:
    stored = made(tmp_path / "stored", None, generator=generator)
    virtual = made(tmp_path / "virtual", level, generator=generator)
    seed = 20 + list(GENERATORS).index(generator)
    compare(stored, virtual, seed, by_ts=generator == "simple number")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("table_format", ALL)
def test_all_readers_of_a_format_see_the_rows(
    tmp_path: Path, level: str, table_format: str
) -> None:
    stored = made(tmp_path / "stored", None)
    virtual = made(tmp_path / "virtual", level, table_format=table_format)
    for step in history(40):
        assert step.run(virtual) == step.run(stored), step.operation
        equal(virtual, stored)
    for read in READERS[table_format]:
        found = read(tmp_path / "virtual")
        assert bag(found, SCHEMA.names) == bag(stored.to_arrow(), SCHEMA.names), read.__name__
    files = [one.base_file for one in virtual.file_slices()]
    for file in files:
        assert file is not None
        names = pq.read_schema(f"{virtual.path}/{file.path}").names
        assert tuple(names) == (*HELD[level], *SCHEMA.names)


@pytest.mark.parametrize("level", ["no key column", "transition"])
def test_changes_are_those_of_a_table_with_stored_keys(tmp_path: Path, level: str) -> None:
    stored, virtual = made(tmp_path / "stored", None), made(tmp_path / "virtual", level)
    steps = [one for one in history(51) if one.operation not in ("restore", "rollback")]
    for step in steps:
        assert step.run(virtual) == step.run(stored), step.operation
    columns = [*SCHEMA.names, "_change_type"]
    writes = [one.timeline.completed_writes() for one in (stored, virtual)]
    assert len(writes[0]) == len(writes[1]) > 4
    for one, other in zip(*writes, strict=True):
        assert bag(virtual.incremental(other), SCHEMA.names) == bag(
            stored.incremental(one), SCHEMA.names
        )
        changed = virtual.incremental(other, deletes=True)
        assert bag(changed, columns) == bag(stored.incremental(one, deletes=True), columns)
        assert set(changed.column(RECORD_KEY).to_pylist()) <= {None}
        feeds = [
            table.changes(begin, images="struct").drop_columns("ts_ms")
            for table, begin in ((virtual, other), (stored, one))
        ]
        assert bag(feeds[0]) == bag(feeds[1])
        diffs = [
            table.diff(begin, table.timeline.completed_writes()[-1])
            for table, begin in ((virtual, other), (stored, one))
        ]
        assert bag(diffs[0], columns) == bag(diffs[1], columns)


def test_what_needs_commit_times_is_refused_without_them(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "no meta columns")
    history(1)[0].run(table)
    begin = table.timeline.completed_writes()[0]
    for query in (table.incremental, table.changes):
        with pytest.raises(UnsupportedTableError, match="Compare two snapshots") as refused:
            query(begin)
        assert "hoodie.populate.meta.fields=false" in str(refused.value)


SEPARATED = {
    "hoodie.recordkey.virtual.concatenator": "_",
    "hoodie.recordkey.virtual.foreign.keys.accepted": "true",
}


def test_a_concatenator_makes_keys_of_its_own(tmp_path: Path) -> None:
    index = {"hoodie.metadata.record.index.enable": "true"}
    stored = made(tmp_path / "stored", None, generator="complex")
    virtual = made(tmp_path / "virtual", "no key column", generator="complex", **SEPARATED, **index)
    for step in history(3):
        assert step.run(virtual) == step.run(stored), step.operation
    equal(virtual, stored)
    found = set(virtual.metadata("record_index").column("record_key").to_pylist())
    rows = virtual.to_arrow().to_pylist()
    assert found == {f"{row['id']}_{row['number']}" for row in rows}
    before = sorted(tmp_path.rglob("*.parquet"))
    wrong = [{**rows[0], "id": "a_1"}]
    with pytest.raises(RecordKeyError, match=r"contains '_'.* in 1 of 1 rows"):
        virtual.upsert(pa.Table.from_pylist(wrong, SCHEMA))
    assert sorted(tmp_path.rglob("*.parquet")) == before


def test_each_column_of_a_virtual_key_has_a_value(tmp_path: Path) -> None:
    rows = [{**history(1)[0].rows[0], "number": None}]
    data = pa.Table.from_pylist(rows, SCHEMA)
    for level in ("no key column", "transition"):
        table = made(tmp_path / level, level, generator="complex")
        with pytest.raises(RecordKeyError, match=r"id, number.*null or empty in 1 of 1 rows"):
            table.insert(data)
        assert not list((tmp_path / level).rglob("*.parquet"))
    table = made(tmp_path / "hudi", "no meta columns", generator="complex")
    table.insert(data)  # as in Hudi, whose key of it is id:k000,number:__null__
    assert table.upsert(data).updated == 1


@pytest.mark.parametrize("kind", [pa.date32(), pa.decimal128(9, 2), pa.binary()])
def test_keys_that_other_engines_make_otherwise_need_consent(
    tmp_path: Path, kind: pa.DataType
) -> None:
    schema = pa.schema([("id", kind), ("value", pa.int64())])
    virtual = {"hoodie.recordkey.virtual.enabled": "true"}
    consent = {"hoodie.recordkey.virtual.foreign.keys.accepted": "true"}
    with pytest.raises(InvalidOptionError, match="in silence"):
        hudi.Table.create(str(tmp_path / "no"), schema, record_key="id", options=virtual)
    assert not (tmp_path / "no").exists()
    options = {**virtual, **consent}
    hudi.Table.create(str(tmp_path / "yes"), schema, record_key="id", options=options)
    stored = hudi.Table.create(str(tmp_path / "stored"), schema, record_key="id")
    with pytest.raises(InvalidOptionError, match="in silence"):
        stored.rewrite_keys()
    hudi.Table.open(stored.path, consent).rewrite_keys()


def test_rfc_21s_names_say_what_hudis_do(tmp_path: Path) -> None:
    table = hudi.Table.create(
        str(tmp_path / "t"),
        SCHEMA,
        partition_by="city",
        options={
            "hoodie.recordkey.virtual.enabled": "true",
            "hoodie.recordkey.virtual.columns": "id,number",
            "hoodie.recordkey.virtual.class": "COMPLEX",
        },
    )
    assert table.config.record_key_fields == ("id", "number")
    assert table.config.keygen_type == "COMPLEX"
    assert Step("insert", history(1)[0].rows).run(table) == (8, 0, 0)
    assert Step("upsert", history(1)[0].rows).run(table) == (0, 8, 0)
