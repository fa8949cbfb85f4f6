"""Record keys: generated ones, and those that a table of another writer has stored."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi import HudiTableBuilder

import hudi_core as hudi
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.table import KeyGeneratorType
from hudi_core.engine.base import TaskContext
from hudi_core.errors import (
    InvalidOptionError,
    OptionConflictError,
    PartitionValueError,
    RecordKeyError,
    UnsupportedTableError,
)
from hudi_core.hashing.bloom import DynamicBloom
from hudi_core.index.bucket import key_hashes
from hudi_core.model.commit import WriteStatus
from hudi_core.model.files import FileId
from hudi_core.schema import widening
from hudi_core.write import key_proof, planning
from tests.calls import calls_of
from tests.foreign import by_hudi_rs
from tests.tables import copied
from tests.unit.refusals import refused

COMPLEX = {"hoodie.datasource.write.keygenerator.type": "COMPLEX"}
NEW_ENCODING = "hoodie.write.complex.keygen.new.encoding"
VALIDATION = "hoodie.write.complex.keygen.validation.enable"
ENCODING = "hoodie.table.complex.keygen.encoding"
CONSISTENT = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
JAVA = "hoodie.datasource.write.keygenerator.java.version"
ZONE = "hoodie.table.timeline.local.zone"
QUICK = {"hoodie.metadata.enable": "false"}
INDEX, NUMBER = "hoodie.index.type", "hoodie.bucket.index.num.buckets"
OURS = (
    *("hoodie.table.create.schema", "hoodie.table.schema.", ENCODING, CONSISTENT, JAVA, ZONE),
    *("hoodie.index.", "hoodie.bucket.", "hoodie.table.keygen."),
)
"""Properties that Apache Hudi does not store."""


def valued(ids: Sequence[Any], v: Any = 1, **columns: Sequence[Any]) -> pa.Table:
    count = len(ids)
    return pa.table({"id": ids, **columns, "v": pa.array([v] * count, pa.int64())})


def made_elsewhere(
    path: Path,
    batches: Sequence[pa.Table],
    key: str = "id",
    partition_by: str | None = None,
    options: Mapping[str, str] | None = None,
) -> Path:
    """Make a table that looks as if another writer had made it."""
    folder = path / "table"
    table = hudi.Table.create(
        str(folder),
        batches[0].schema,
        record_key=key,
        partition_by=partition_by,
        options={**QUICK, **(options or {})},
    )
    for batch in batches:
        table.upsert(batch)
    forget(folder)
    return folder


def forget(folder: Path) -> None:
    properties = folder / ".hoodie" / "hoodie.properties"
    lines = properties.read_text().splitlines(keepends=True)
    properties.write_text("".join(line for line in lines if not line.startswith(OURS)))


def stored(folder: Path) -> dict[str, str]:
    text = (folder / ".hoodie" / "hoodie.properties").read_text()
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def keys(folder: Path) -> dict[str, int]:
    found = hudi.Table.open(str(folder)).to_arrow(["_hoodie_record_key", "v"])
    assert len(set(found["_hoodie_record_key"].to_pylist())) == found.num_rows
    return dict(sorted(zip(*found.to_pydict().values(), strict=True)))


# --- complex keys of one field
CITIES = {"city": ["A", "B"], "day": ["1", "1"]}


@pytest.mark.parametrize(
    ("bare", "version", "operation"),
    [
        *((True, 8, each) for each in ("upsert", "delete", "insert", "bulk_insert")),
        *((False, 8, "upsert"), (False, 9, "insert"), (True, 9, "upsert")),
    ],
)
def test_the_stored_form_of_a_complex_key_is_taken(
    tmp_path: Path, bare: bool, version: int, operation: str
) -> None:
    """Hudi 1.0.0 to 1.0.2 made the bare value of one field, and stored nothing of it."""
    given = {**COMPLEX, NEW_ENCODING: str(bare).lower()}
    folder = made_elsewhere(tmp_path, [valued(["1", "2"], **CITIES)], "id", "city,day", given)
    properties = folder / ".hoodie" / "hoodie.properties"
    if version == 9:
        changed = properties.read_text().replace("hoodie.table.version=8", "hoodie.table.version=9")
        properties.write_text(changed)
    table = hudi.Table.open(str(folder))
    fresh = operation in ("insert", "bulk_insert")
    batch = valued(["3" if fresh else "2"], v=5, city=["B"], day=["1"])
    getattr(table, operation)(batch)
    prefix = "" if bare else "id:"
    expected = {"upsert": {"1": 1, "2": 5}, "delete": {"1": 1}}.get(
        operation, {"1": 1, "2": 1, "3": 5}
    )
    assert keys(folder) == {f"{prefix}{key}": v for key, v in expected.items()}
    kept = {(8, True): "VALUE_ONLY", (8, False): "FIELD_PREFIXED", (9, True): "VALUE_ONLY"}
    assert stored(folder).get(ENCODING) == kept.get((version, bare))


def test_rows_that_replace_all_others_keep_their_form_of_keys(tmp_path: Path) -> None:
    given = {**COMPLEX, NEW_ENCODING: "true"}
    folder = made_elsewhere(tmp_path, [valued(["1", "2"], **CITIES)], "id", "city,day", given)
    hudi.Table.open(str(folder)).insert_overwrite_table(valued(["1", "3"], v=4, **CITIES))
    assert keys(folder) == {"1": 4, "3": 4}
    assert stored(folder)[ENCODING] == "VALUE_ONLY"


def test_an_option_that_states_the_other_form_is_refused(tmp_path: Path) -> None:
    given = {**COMPLEX, NEW_ENCODING: "true"}
    folder = made_elsewhere(tmp_path, [valued(["1", "2"], **CITIES)], "id", "city,day", given)
    with refused(folder, OptionConflictError, NEW_ENCODING):
        hudi.Table.open(str(folder), options={NEW_ENCODING: "false"}).upsert(valued(["1"], **one()))
    # validation is for what the rows do not tell
    table = hudi.Table.open(str(folder), options={VALIDATION: "false"})
    assert table.upsert(valued(["1"], v=2, **one())).updated == 1


def one() -> dict[str, list[str]]:
    return {"city": ["A"], "day": ["1"]}


def test_a_complex_key_without_rows_is_for_somebody_to_state(tmp_path: Path) -> None:
    folder = made_elsewhere(
        tmp_path, [valued(["1"], **one()).slice(0, 0)], "id", "city,day", COMPLEX
    )
    with refused(folder, UnsupportedTableError, NEW_ENCODING, VALIDATION):
        hudi.Table.open(str(folder)).upsert(valued(["1"], **one()))
    hudi.Table.open(str(folder), options={VALIDATION: "false"}).upsert(valued(["1"], **one()))
    assert keys(folder) == {"id:1": 1}


def test_keys_of_both_forms_are_refused(tmp_path: Path) -> None:
    given = {**COMPLEX, NEW_ENCODING: "true"}
    folder = made_elsewhere(tmp_path, [valued(["1", "2"], **CITIES)], "id", "city,day", given)
    with (folder / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write(f"{ENCODING}=FIELD_PREFIXED\n{ManagedKeys.keys_proved.key}=true\n")
    small = {"hoodie.parquet.small.file.limit": "0"}
    hudi.Table.open(str(folder), options=small).insert(valued(["3"], **one()))
    forget(folder)
    assert set(keys(folder)) == {"1", "2", "id:3"}
    with refused(folder, UnsupportedTableError, "'id:3'", "'1'", "insert_overwrite_table"):
        hudi.Table.open(str(folder)).upsert(valued(["1"], **one()))
    hudi.Table.open(str(folder)).insert_overwrite_table(
        valued(["1", "2", "3"], city=["A"] * 3, day=["1"] * 3)
    )
    assert hudi.Table.open(str(folder)).upsert(valued(["1"], v=2, **one())).updated == 1


# --- timestamps
MOMENT = dt.datetime(2026, 7, 1, 0, 30, 0, 120_000, tzinfo=dt.UTC)


def at(moment: dt.datetime, v: int = 1) -> pa.Table:
    return valued(pa.array([moment], pa.timestamp("us", "UTC")), v)


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({}, "1782865800120000"),
        ({CONSISTENT: "true"}, "2026-07-01 00:30:00.12"),
        ({CONSISTENT: "true", ZONE: "Asia/Tokyo"}, "2026-07-01 09:30:00.12"),
    ],
)
def test_the_stored_form_of_timestamps_is_taken(
    tmp_path: Path, given: dict[str, str], key: str
) -> None:
    folder = made_elsewhere(tmp_path, [at(MOMENT)], options=given)
    zone = {name: text for name, text in given.items() if name == ZONE}
    table = hudi.Table.open(str(folder), options=zone)
    assert table.upsert(at(MOMENT, 2)).updated == 1
    assert keys(folder) == {key: 2}
    # what was found is kept: no later write has to know it
    assert hudi.Table.open(str(folder)).delete(at(MOMENT)).deleted == 1
    assert {name: stored(folder).get(name) for name in given} == given
    other = {CONSISTENT: "false" if given else "true"}
    with pytest.raises(OptionConflictError, match=CONSISTENT):
        hudi.Table.open(str(folder), options=other).upsert(at(MOMENT))


def test_partitions_that_values_name_have_the_stored_form(tmp_path: Path) -> None:
    batch = valued(["1"], day=at(MOMENT)["id"])
    given = {CONSISTENT: "true"}
    folder = made_elsewhere(tmp_path, [batch], partition_by="day", options=given)
    table = hudi.Table.open(str(folder))
    assert table.plan("delete_partitions", [{"day": MOMENT}]).deleted == 1
    by_rows = {"hoodie.datasource.write.operation": "delete_partition"}
    written = hudi.write(batch, str(folder), options=by_rows)
    assert written is not None
    assert written.deleted == 1
    assert not keys(folder)


def test_timestamps_in_another_zone_are_refused_by_name(tmp_path: Path) -> None:
    given = {CONSISTENT: "true", ZONE: "Asia/Tokyo"}
    folder = made_elsewhere(tmp_path, [at(MOMENT)], options=given)
    with refused(folder, UnsupportedTableError, "'2026-07-01 09:30:00.12'", ZONE):
        hudi.Table.open(str(folder)).upsert(at(MOMENT))


@pytest.mark.parametrize("consistent", ["true", "false"])
def test_timestamps_of_a_table_of_ours(tmp_path: Path, consistent: str) -> None:
    """Every way in goes by the same form, with keys and with paths."""
    options = {CONSISTENT: consistent, "hoodie.datasource.write.partitionpath.urlencode": "true"}
    both = at(MOMENT).append_column("day", at(MOMENT)["id"])
    table = hudi.Table.create(
        str(tmp_path / "t"), both.schema, record_key="id", partition_by="day", options=options
    )
    table.bulk_insert(both)
    later = both.set_column(0, "id", at(MOMENT + dt.timedelta(days=1))["id"])
    table.insert(later)
    assert table.upsert(both).updated == 1
    text = "2026-07-01 00%3A30%3A00.12" if consistent == "true" else "1782865800120000"
    assert {one.partition_path for one in table.file_slices()} == {text}
    assert table.delete(later).deleted == 1
    assert table.insert_overwrite(both).inserted == 1
    reopened = hudi.Table.open(str(tmp_path / "t"))
    assert reopened.upsert(both).updated == 1
    assert reopened.to_arrow().num_rows == 1
    written = hudi.write(
        both,
        str(tmp_path / "t"),
        mode="overwrite",
        options={
            **options,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "day",
        },
    )
    assert written is not None
    assert written.metadata.stats[0].partition_path == text


# --- floating-point numbers
TELLING, PLAIN = 4.73e21, 0.1


@pytest.mark.parametrize(
    ("java", "key", "kept"), [("11", "4.729999999999999E21", "17"), ("21", "4.73E21", "21")]
)
def test_the_stored_digits_of_numbers_are_taken(
    tmp_path: Path, java: str, key: str, kept: str
) -> None:
    # the key that tells is not among the first
    batch = valued([*(float(one) for one in range(2000)), TELLING])
    folder = made_elsewhere(tmp_path, [batch], options={JAVA: java})
    assert hudi.Table.open(str(folder)).upsert(valued([TELLING], 2)).updated == 1
    assert keys(folder)[key] == 2
    assert stored(folder)[JAVA] == kept
    same = {"17": "1.8", "21": "25"}[kept]
    assert hudi.Table.open(str(folder), options={JAVA: same}).delete(valued([TELLING])).deleted == 1
    with pytest.raises(OptionConflictError, match=JAVA):
        hudi.Table.open(str(folder), options={JAVA: "21" if kept == "17" else "8"})


def test_no_more_numbers_are_spelled_than_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = valued([TELLING, *(float(one) for one in range(8000))])
    folder = made_elsewhere(tmp_path, [batch], options={JAVA: "17"})
    spelled = calls_of(monkeypatch, widening, "double_text")
    assert hudi.Table.open(str(folder)).plan("upsert", valued([TELLING], 2))
    assert len(spelled) < 8000  # of the two forms together


def test_digits_that_nothing_tells_are_for_somebody_to_state(tmp_path: Path) -> None:
    folder = made_elsewhere(tmp_path, [valued([PLAIN])])
    with refused(folder, UnsupportedTableError, "none of the keys", JAVA):
        hudi.Table.open(str(folder)).upsert(valued([PLAIN]))
    table = hudi.Table.open(str(folder), options={JAVA: "17"})
    assert table.upsert(valued([PLAIN, TELLING], 2)).updated == 1
    assert set(keys(folder)) == {"0.1", "4.729999999999999E21"}
    assert hudi.Table.open(str(folder)).upsert(valued([TELLING], 3)).updated == 1


def test_a_table_of_ours_keeps_the_digits_it_was_made_with(tmp_path: Path) -> None:
    table = hudi.Table.create(str(tmp_path / "t"), valued([PLAIN]).schema, record_key="id")
    table.upsert(valued([TELLING]))
    with pytest.raises(OptionConflictError, match=JAVA):
        hudi.Table.open(str(tmp_path / "t"), options={JAVA: "17"}).upsert(valued([TELLING]))
    other = hudi.Table.open(str(tmp_path / "t"), options={JAVA: "21"})
    assert other.upsert(valued([TELLING])).updated == 1
    # a table that has no such keys takes no notice
    texts = {JAVA: "17", CONSISTENT: "true"}
    plain = hudi.Table.create(
        str(tmp_path / "p"), valued(["a"]).schema, record_key="id", options=texts
    )
    plain.upsert(valued(["a"]))
    assert not {JAVA, CONSISTENT} & stored(tmp_path / "p").keys()
    assert hudi.Table.open(str(tmp_path / "p"), options={JAVA: "21"}).upsert(valued(["a"])).updated


# --- partitions, and what no generator makes
def test_partitions_of_another_form_are_refused(tmp_path: Path) -> None:
    hive = "hoodie.datasource.write.hive_style_partitioning"
    folder = made_elsewhere(
        tmp_path, [valued(["1"], city=["A"])], partition_by="city", options={hive: "true"}
    )
    properties = folder / ".hoodie" / "hoodie.properties"
    kept = [line for line in properties.read_text().splitlines() if not line.startswith(hive)]
    properties.write_text("\n".join(kept) + "\n")
    with refused(folder, UnsupportedTableError, "'city=A'", "makes 'A'"):
        hudi.Table.open(str(folder)).upsert(valued(["1"], city=["A"]))


def test_a_row_that_lies_elsewhere_says_nothing_of_the_others(tmp_path: Path) -> None:
    """A global index of Hudi's may leave a row in the partition it was in."""
    stays = {INDEX: "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"}
    folder = made_elsewhere(
        tmp_path, [valued(["1", "2"], city=["A", "A"])], partition_by="city", options=stays
    )
    rewrite(folder, "city", pa.array(["B", "A"]))
    assert hudi.Table.open(str(folder)).upsert(valued(["2"], 2, city=["A"])).updated == 1


def test_keys_that_no_generator_makes_are_shown(tmp_path: Path) -> None:
    folder = made_elsewhere(tmp_path, [valued(["1"], other=["x"])], key="other")
    properties = folder / ".hoodie" / "hoodie.properties"
    text = properties.read_text().replace("recordkey.fields=other", "recordkey.fields=id")
    properties.write_text(text)
    for operation in ("upsert", "delete", "insert"):
        with refused(folder, UnsupportedTableError, "'x' for a row", "makes '1'"):
            getattr(hudi.Table.open(str(folder)), operation)(valued(["1"], other=["x"]))
    with pytest.raises(UnsupportedTableError, match="'x' for a row"):
        hudi.Table.open(str(folder)).plan("upsert", valued(["1"], other=["x"]))


def test_a_column_that_was_widened_keeps_its_keys(tmp_path: Path) -> None:
    folder = made_elsewhere(tmp_path, [valued([1.1])], options={JAVA: "17"})
    rewrite(folder, "id", pa.array([1.1], pa.float32()))
    table = hudi.Table.open(str(folder), options={JAVA: "17"})
    assert table.upsert(valued([1.1], 2)).updated == 1


def rewrite(folder: Path, name: str, values: pa.Array) -> None:
    """Put other values into the column of the table's one file."""
    (path,) = (one for one in folder.rglob("*.parquet") if ".hoodie" not in one.parts)
    found = pq.ParquetFile(path).read()
    number, metadata = found.schema.get_field_index(name), found.schema.metadata
    field = found.schema.field(name).with_type(values.type)
    changed = found.set_column(number, field, values).replace_schema_metadata(metadata)
    pq.write_table(changed, path)


# --- what it costs
def test_rows_are_looked_at_once_and_never_of_a_table_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = calls_of(monkeypatch, key_proof, "proven")
    folder = made_elsewhere(tmp_path, [valued(["1"])])
    assert looks == []
    changes: list[Callable[[hudi.Table], object]] = [
        lambda table: table.alter(add_columns={"w": pa.int64()}),  # changes no row
        lambda table: table.upsert(valued(["1"], w=[1])),
        lambda table: table.upsert(valued(["2"], w=[1])),
        lambda table: table.delete(valued(["2"], w=[1])),
    ]
    for change in changes:
        change(hudi.Table.open(str(folder)))
    assert len(looks) == 1
    assert stored(folder)[ManagedKeys.keys_proved.key] == "true"


# --- bucket tables of other writers: stored keys prove the number of their buckets
FIELDS = "hoodie.bucket.index.hash.field"


def buckets(number: int, **more: str) -> dict[str, str]:
    return {INDEX: "BUCKET", NUMBER: str(number), **more}


def texts(numbers: Sequence[int]) -> list[str]:
    return [f"k{one}" for one in numbers]


@pytest.mark.parametrize("wrong", [2, 3, 8, 256])
def test_the_number_of_buckets_is_proved_before_it_is_stored(tmp_path: Path, wrong: int) -> None:
    ids = texts(range(40))
    folder = made_elsewhere(tmp_path, [valued(ids)], options=buckets(4))
    with refused(folder, UnsupportedTableError, NUMBER):
        hudi.Table.open(str(folder), options=buckets(wrong)).upsert(valued(ids, 2))
    assert NUMBER not in stored(folder)
    table = hudi.Table.open(str(folder), options=buckets(4))
    assert table.upsert(valued([*ids, "new"], 2)).updated == 40
    assert stored(folder)[NUMBER] == "4"
    assert keys(folder) == dict.fromkeys([*ids, "new"], 2)


def test_a_multiple_that_few_keys_fit_by_their_groups_is_refused_by_them(tmp_path: Path) -> None:
    """Four buckets of eight exist, and say nothing; the keys of each do."""
    ids = texts(range(200))
    hashes = key_hashes(pa.array(ids), ("id",))
    low = [one for one, value in zip(ids, hashes.tolist(), strict=True) if value % 8 < 4][:3]
    folder = made_elsewhere(tmp_path, [valued(low)], options=buckets(8))
    with refused(folder, UnsupportedTableError, "buckets"):
        hudi.Table.open(str(folder), options=buckets(7)).upsert(valued(low, 2))
    # three keys fit four buckets as well as eight: nobody can know better than the user
    assert hudi.Table.open(str(folder), options=buckets(8)).upsert(valued(low, 2)).updated == 3


def test_the_fields_that_are_hashed_are_proved_as_well(tmp_path: Path) -> None:
    batch = valued(texts(range(40)), other=texts(range(100, 140)))
    given = {**buckets(4), FIELDS: "other"}
    folder = made_elsewhere(tmp_path, [batch], "id,other", options=given)
    with refused(folder, UnsupportedTableError, FIELDS):
        hudi.Table.open(str(folder), options={**buckets(4), FIELDS: "id"}).upsert(batch)
    table = hudi.Table.open(str(folder), options={**buckets(4), FIELDS: "other"})
    assert table.upsert(batch).updated == 40


@pytest.mark.parametrize(
    ("index", "operation"),
    [("SIMPLE", "upsert"), ("BLOOM", "insert"), ("GLOBAL_SIMPLE", "bulk_insert")],
)
def test_another_index_adds_no_groups_to_a_bucket_table(
    tmp_path: Path, index: str, operation: str
) -> None:
    folder = made_elsewhere(tmp_path, [valued(texts(range(20)))], options=buckets(4))
    table = hudi.Table.open(str(folder), options={INDEX: index})
    with refused(folder, UnsupportedTableError, "has buckets, 4 of them", f"{INDEX}=BUCKET"):
        getattr(table, operation)(valued(["new"]))
    # what is new altogether is for the writer to lay out
    result = table.insert_overwrite_table(valued(["new"]))
    assert result.inserted == 1
    assert table.upsert(valued(["new"], 2)).updated == 1


def test_a_file_group_that_looks_like_a_bucket_by_chance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = FileId("00012345-52a8-4e70-9d7d-2d5b2a7f3a11-0")
    monkeypatch.setattr(planning, "derive_file_id", lambda *_: name)
    folder = made_elsewhere(tmp_path, [valued(texts(range(20)))])
    monkeypatch.undo()
    assert hudi.Table.open(str(folder)).upsert(valued(["k1"], 2)).updated == 1


def test_numbers_of_buckets_by_partition_are_refused(tmp_path: Path) -> None:
    folder = made_elsewhere(tmp_path, [valued(texts(range(20)))], options=buckets(4))
    settings = folder / ".hoodie" / ".bucket_index" / "partition_bucket_index_meta"
    settings.mkdir(parents=True)
    (settings / "00000000000000.hashing_config").write_text("{}")
    with refused(folder, UnsupportedTableError, ".hoodie/.bucket_index"):
        hudi.Table.open(str(folder), options=buckets(4)).upsert(valued(["k1"], 2))


def test_a_table_of_ours_is_not_asked_for_its_buckets(tmp_path: Path) -> None:
    folder = made_elsewhere(tmp_path, [valued(texts(range(20)))], options=buckets(4))
    hudi.Table.open(str(folder), options=buckets(4)).upsert(valued(["k1"], 2))
    assert hudi.Table.open(str(folder)).upsert(valued(["k1"], 3)).updated == 1
    forget(folder)
    with pytest.raises(UnsupportedTableError, match="4 of them"):
        hudi.Table.open(str(folder)).upsert(valued(["k1"], 4))


# --- tables without a record key: generated keys, and what such tables refuse
N_CITY = pa.schema([("n", pa.int64()), ("city", pa.string())])


def keyless_rows(*numbers: int, city: str = "rome") -> pa.Table:
    return pa.table([pa.array(numbers, pa.int64()), [city] * len(numbers)], schema=N_CITY)


def make(path: Path, partition_by: Any = "city", version: str = "8") -> hudi.Table:
    options = {"hoodie.write.table.version": version}
    return hudi.Table.create(
        str(path / "t"), N_CITY, name="t", partition_by=partition_by, options=options
    )


def keyless_keys(table: hudi.Table) -> list[str]:
    found: list[str] = table.to_arrow(["_hoodie_record_key"]).column(0).to_pylist()
    return found


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_rows_read_back_under_one_key_fill_each_other(tmp_path: Path, index: str) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.string())])
    options = {
        "hoodie.index.type": index,
        "hoodie.datasource.write.payload.class": (
            "org.apache.hudi.common.model.PartialUpdateAvroPayload"
        ),
    }
    table = hudi.Table.create(
        str(tmp_path / "t"), schema, name="t", ordering_field="a", options=options
    )
    table.insert(pa.table([[1], ["x"], ["y"]], schema=schema))
    (read,) = table.to_arrow().to_pylist()
    changes = [{**read, "a": 2, "b": "B2", "c": None}, {**read, "a": 3, "b": None, "c": "C3"}]
    table.upsert(pa.Table.from_pylist(changes, table.to_arrow().schema))
    assert table.to_arrow(["a", "b", "c"]).to_pylist() == [{"a": 3, "b": "B2", "c": "C3"}]


def test_rows_read_back_of_which_none_is_stored_any_more(tmp_path: Path) -> None:
    options = {"hoodie.combine.before.upsert": "false"}
    table = hudi.Table.create(str(tmp_path / "t"), N_CITY, name="t", options=options)
    table.insert(keyless_rows(1, 2))
    read = table.to_arrow()
    table.delete(read.slice(1))
    twice = pa.concat_tables([read.slice(1), read.slice(1)])
    assert table.upsert(twice).inserted == 1
    assert len(keyless_keys(table)) == 2


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize(
    ("partition_by", "keygen"),
    [
        (None, KeyGeneratorType.NON_PARTITION),
        ("city", KeyGeneratorType.SIMPLE),
        (["city", "n"], KeyGeneratorType.COMPLEX),
    ],
)
def test_rows_that_are_alike_all_stay(
    tmp_path: Path, partition_by: Any, keygen: KeyGeneratorType, version: str
) -> None:
    table = make(tmp_path, partition_by, version)
    table.bulk_insert(keyless_rows(1, 1, 2))
    table.insert(keyless_rows(1, 3))
    table.insert(keyless_rows(4, city="oslo"))
    table.insert_overwrite(keyless_rows(7, 7, city="oslo"))

    expected = [7, 7] if partition_by is None else [1, 1, 1, 2, 3, 7, 7]
    if partition_by == ["city", "n"]:
        expected = [1, 1, 1, 2, 3, 4, 7, 7]
    assert sorted(table.to_arrow(["n"]).column(0).to_pylist()) == expected
    assert len(set(keyless_keys(table))) == len(expected)
    foreign = by_hudi_rs(table.path)
    assert sorted(row["n"] for row in foreign) == expected
    assert sorted(row["_hoodie_record_key"] for row in foreign) == sorted(keyless_keys(table))
    assert hudi.Table.open(table.path).config.keygen_type is keygen
    assert "hoodie.table.recordkey.fields" not in table.config.raw


def test_the_key_is_made_of_instant_task_and_row(tmp_path: Path) -> None:
    table = make(tmp_path)

    time = table.bulk_insert(keyless_rows(5, 6)).instant.requested_time

    assert keyless_keys(table) == [f"{time}_0_0", f"{time}_0_1"]
    meta = table.to_arrow(["_hoodie_record_key", "_hoodie_commit_seqno"]).to_pylist()
    assert all(row["_hoodie_record_key"] == row["_hoodie_commit_seqno"] for row in meta)


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    """Table with two rows."""
    return copied(tmp_path / "t", two_rows)


def two_rows(path: Path) -> hudi.Table:
    made = make(path.parent)
    made.insert(keyless_rows(1, 2))
    return made


class RetryingEngine(hudi.LocalEngine):
    """Runs every task a second time, and notes what both attempts wrote."""

    def __init__(self, base_path: str) -> None:
        super().__init__(1)
        self._base_path = base_path
        self.attempts: list[list[str]] = []

    def map_input(self, data: Any, function: Any, stage: int) -> list[Any]:
        def again(task: TaskContext, batches: Any) -> Any:
            held = list(batches)
            for attempt in (0, 1):
                done = list(function(replace(task, attempt=attempt), iter(held)))
                for one in done:
                    self._note(one)
            return iter(done)

        return super().map_input(data, again, stage)

    def map_tasks(self, tasks: Any, function: Any, stage: int, weights: Any = None) -> list[Any]:
        def again(task: TaskContext, item: Any) -> Any:
            for attempt in (0, 1):
                done = function(replace(task, attempt=attempt), item)
                self._note(done)
            return done

        return super().map_tasks(tasks, again, stage, weights)

    def _note(self, done: object) -> None:
        for status in done if isinstance(done, list) else [done]:
            if isinstance(status, WriteStatus):
                file = pq.ParquetFile(f"{self._base_path}/{status.stat.path}").read()
                self.attempts.append(file.column("_hoodie_record_key").to_pylist())


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite"])
def test_a_task_that_runs_again_gives_the_same_keys(tmp_path: Path, operation: str) -> None:
    table = make(tmp_path)
    engine = RetryingEngine(table.path)

    getattr(table, operation)(keyless_rows(1, 2, 3), engine=engine)

    first, second = engine.attempts
    assert first == second == keyless_keys(table)
    assert len(set(first)) == 3


def test_a_file_that_takes_in_rows_knows_all_its_keys(table: hudi.Table) -> None:
    result = table.insert(keyless_rows(3))

    (status,) = result.statuses
    footer = pq.read_metadata(f"{table.path}/{status.stat.path}").metadata
    bloom = DynamicBloom.parse(footer[b"org.apache.hudi.bloomfilter"].decode(), "footer")
    held = sorted(keyless_keys(table))
    assert len(held) == 3
    assert all(bloom.might_contain(pa.array(held)))
    assert footer[b"hoodie_min_record_key"].decode() == held[0]
    assert footer[b"hoodie_max_record_key"].decode() == held[-1]


@pytest.mark.parametrize(("operation", "word"), [("upsert", "upserted"), ("delete", "deleted")])
@pytest.mark.parametrize("planned", [False, True])
def test_what_needs_keys_is_refused(
    tmp_path: Path, operation: str, word: str, planned: bool
) -> None:
    table = make(tmp_path)
    write = partial(table.plan, operation) if planned else getattr(table, operation)

    with pytest.raises(RecordKeyError, match=f"no record key, so its rows cannot be {word}"):
        write(keyless_rows(1))

    assert not table.timeline.instants


@pytest.mark.parametrize(
    "option",
    [
        {"hoodie.combine.before.insert": "true"},
        {"hoodie.datasource.insert.dup.policy": "drop"},
        {"hoodie.datasource.insert.dup.policy": "fail"},
    ],
)
def test_options_that_compare_keys_are_refused(tmp_path: Path, option: dict[str, str]) -> None:
    table = make(tmp_path)

    with pytest.raises(InvalidOptionError, match="no two rows have the same"):
        table.insert(keyless_rows(1), options=option)


def test_updating_on_insert_has_nothing_to_update(tmp_path: Path) -> None:
    table = make(tmp_path)
    option = {"hoodie.merge.allow.duplicate.on.inserts": "false"}
    table.insert(keyless_rows(1, 1), options=option)

    assert table.insert(keyless_rows(1, 1), options=option).inserted == 2
    assert len(set(keyless_keys(table))) == 4


def test_insert_is_the_default_of_such_a_table(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    options = {"hoodie.datasource.write.partitionpath.field": "city"}

    made = hudi.write(keyless_rows(1, 1), path, options=options)
    again = hudi.write(keyless_rows(1), path)

    assert made is not None
    assert again is not None
    assert made.operation is again.operation is hudi.WriteOperation.INSERT
    upsert = {"hoodie.datasource.write.operation": "upsert"}
    with pytest.raises(RecordKeyError, match="cannot be upserted"):
        hudi.write(keyless_rows(1), path, options=upsert)


def test_rows_are_sorted_by_named_columns(tmp_path: Path) -> None:
    table = make(tmp_path, None)
    options = {
        "hoodie.bulkinsert.sort.mode": "GLOBAL_SORT",
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "n",
    }

    table.bulk_insert(keyless_rows(3, 1, 2), options=options)

    assert table.to_arrow(["n"]).column(0).to_pylist() == [1, 2, 3]


# --- rows that were read from the table
INDEXES: dict[str, dict[str, str]] = {
    "default": {},
    "simple": {"hoodie.index.type": "SIMPLE"},
    "global": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "record index": {
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.index.type": "RECORD_INDEX",
    },
}


def with_numbers(rows: pa.Table, *numbers: int) -> pa.Table:
    """Return rows with another value of ``n`` in each."""
    return rows.set_column(rows.schema.get_field_index("n"), N_CITY.field("n"), [numbers])


def where(path: str, number: int) -> pa.Table:
    return hudi.Table.open(path).to_arrow(filter=[("n", "=", number)])


def numbers_of(path: str) -> list[int]:
    """Return the values as hudi-rs reads them."""
    batches = HudiTableBuilder.from_base_uri(path).build().read()
    return sorted(row["n"] for batch in batches for row in batch.to_pylist())


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("partition", [{}, {"hoodie.datasource.write.partitionpath.field": "city"}])
def test_the_quick_start_of_hudi(tmp_path: Path, index: str, partition: dict[str, str]) -> None:
    path = str(tmp_path / "t")
    options = {**INDEXES[index], **partition}
    hudi.write(
        pa.concat_tables([keyless_rows(1, 1, 2), keyless_rows(3, city="oslo")]),
        path,
        options=options,
    )
    before = keyless_keys(hudi.Table.open(path))

    # read, change, append: an update, and so is an upsert
    changed = with_numbers(where(path, 2), 20)
    first = hudi.write(changed, path, options=options)
    upsert = {**options, "hoodie.datasource.write.operation": "upsert"}
    second = hudi.write(with_numbers(where(path, 3), 30), path, options=upsert)
    assert first is not None
    assert second is not None
    for result in (first, second):
        assert result.operation is hudi.WriteOperation.UPSERT
        assert (result.inserted, result.updated, result.deleted) == (0, 1, 0)
    assert numbers_of(path) == [1, 1, 20, 30]
    assert sorted(keyless_keys(hudi.Table.open(path))) == sorted(before)

    # read, delete; no more is needed than the two meta columns
    delete = {**options, "hoodie.datasource.write.operation": "delete"}
    third = hudi.write(where(path, 30), path, options=delete)
    table = hudi.Table.open(path, options)
    own = table.to_arrow(["_hoodie_record_key", "_hoodie_partition_path"], [("n", "=", 1)])
    dry = table.plan("delete", own.slice(0, 1))
    fourth = table.delete(own.slice(0, 1))
    assert third is not None
    assert (third.deleted, dry.deleted, fourth.deleted) == (1, 1, 1)
    assert numbers_of(path) == [1, 20]
    assert table.validate().is_valid


def test_of_several_changes_of_a_row_the_last_stays(table: hudi.Table) -> None:
    row = where(table.path, 1)

    result = table.upsert(pa.concat_tables([with_numbers(row, 5), with_numbers(row, 6)]))

    assert (result.inserted, result.updated) == (0, 1)
    assert numbers_of(table.path) == [2, 6]


def test_keys_that_the_table_does_not_hold_are_new_rows(table: hudi.Table) -> None:
    """As in Hudi: so they are when rows were read, and deleted meanwhile."""
    row = where(table.path, 1)
    table.delete(row)

    assert table.upsert(row).inserted == 1
    assert numbers_of(table.path) == [1, 2]
    assert row.column("_hoodie_record_key")[0].as_py() in keyless_keys(table)


def test_an_insert_makes_new_keys_of_rows_that_were_read(tmp_path: Path, table: hudi.Table) -> None:

    for operation in (table.insert, table.bulk_insert):
        assert operation(where(table.path, 1).slice(0, 1)).inserted == 1

    assert len(set(keyless_keys(table))) == 4
    # a table that is made of them has keys of its own, too
    copy = str(tmp_path / "copy")
    result = hudi.write(table.to_arrow(), copy)
    assert result is not None
    assert result.operation is hudi.WriteOperation.INSERT
    assert set(keyless_keys(hudi.Table.open(copy))).isdisjoint(keyless_keys(table))


def test_rows_without_a_partition_path_are_found_by_their_columns(table: hudi.Table) -> None:
    row = where(table.path, 2).drop_columns(["_hoodie_partition_path"])

    assert table.upsert(with_numbers(row, 3)).updated == 1
    assert table.delete(row).deleted == 1
    assert numbers_of(table.path) == [1]
    gone = where(table.path, 1).append_column("_hoodie_is_deleted", pa.array([True]))
    assert table.upsert(gone).deleted == 1
    assert numbers_of(table.path) == []


@pytest.mark.parametrize("operation", ["upsert", "delete"])
@pytest.mark.parametrize("key", [None, ""])
def test_rows_of_which_some_bring_no_key_are_refused(
    table: hudi.Table, operation: str, key: str | None
) -> None:
    read = table.to_arrow()
    mixed = read.set_column(2, "_hoodie_record_key", [[read.column(2)[0].as_py(), key]])

    with pytest.raises(RecordKeyError, match="null or empty in 1 of 2 rows"):
        getattr(table, operation)(mixed)

    assert len(table.timeline.instants) == 1


def test_a_row_that_would_move_is_refused(table: hudi.Table) -> None:
    moved = where(table.path, 2)
    moved = moved.set_column(moved.schema.get_field_index("city"), "city", [["oslo"]])

    with pytest.raises(PartitionValueError, match="1 of 1 rows do not belong"):
        table.upsert(moved)

    assert len(table.timeline.instants) == 1
    assert numbers_of(table.path) == [1, 2]


def test_rows_that_lack_columns_keep_stored_values(table: hudi.Table) -> None:
    table.alter(add_columns={"note": pa.string()})
    row = where(table.path, 1).drop_columns(["note"])

    result = table.upsert(
        with_numbers(row, 7), options={"hoodie.write.set.null.for.missing.columns": "true"}
    )

    assert result.updated == 1
    assert numbers_of(table.path) == [2, 7]
