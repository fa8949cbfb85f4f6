"""Tables of other writers: their stored keys, paths and buckets decide how they are written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.errors import OptionConflictError, UnsupportedTableError
from hudi_core.schema import widening
from hudi_core.schema.java_float import double_text
from hudi_core.write import layout_proof
from hudi_core.write.key_proof import proven
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


def rows(ids: Sequence[Any], v: Any = 1, **columns: Sequence[Any]) -> pa.Table:
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


# --- complex keys of one field -------------------------------------------------------------------

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
    folder = made_elsewhere(tmp_path, [rows(["1", "2"], **CITIES)], "id", "city,day", given)
    properties = folder / ".hoodie" / "hoodie.properties"
    if version == 9:
        changed = properties.read_text().replace("hoodie.table.version=8", "hoodie.table.version=9")
        properties.write_text(changed)
    table = hudi.Table.open(str(folder))
    fresh = operation in ("insert", "bulk_insert")
    batch = rows(["3" if fresh else "2"], v=5, city=["B"], day=["1"])
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
    folder = made_elsewhere(tmp_path, [rows(["1", "2"], **CITIES)], "id", "city,day", given)
    hudi.Table.open(str(folder)).insert_overwrite_table(rows(["1", "3"], v=4, **CITIES))
    assert keys(folder) == {"1": 4, "3": 4}
    assert stored(folder)[ENCODING] == "VALUE_ONLY"


def test_an_option_that_states_the_other_form_is_refused(tmp_path: Path) -> None:
    given = {**COMPLEX, NEW_ENCODING: "true"}
    folder = made_elsewhere(tmp_path, [rows(["1", "2"], **CITIES)], "id", "city,day", given)
    with refused(folder, OptionConflictError, NEW_ENCODING):
        hudi.Table.open(str(folder), options={NEW_ENCODING: "false"}).upsert(rows(["1"], **one()))
    # validation is for what the rows do not tell
    table = hudi.Table.open(str(folder), options={VALIDATION: "false"})
    assert table.upsert(rows(["1"], v=2, **one())).updated == 1


def one() -> dict[str, list[str]]:
    return {"city": ["A"], "day": ["1"]}


def test_a_complex_key_without_rows_is_for_somebody_to_state(tmp_path: Path) -> None:
    folder = made_elsewhere(tmp_path, [rows(["1"], **one()).slice(0, 0)], "id", "city,day", COMPLEX)
    with refused(folder, UnsupportedTableError, NEW_ENCODING, VALIDATION):
        hudi.Table.open(str(folder)).upsert(rows(["1"], **one()))
    hudi.Table.open(str(folder), options={VALIDATION: "false"}).upsert(rows(["1"], **one()))
    assert keys(folder) == {"id:1": 1}


def test_keys_of_both_forms_are_refused(tmp_path: Path) -> None:
    given = {**COMPLEX, NEW_ENCODING: "true"}
    folder = made_elsewhere(tmp_path, [rows(["1", "2"], **CITIES)], "id", "city,day", given)
    with (folder / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write(f"{ENCODING}=FIELD_PREFIXED\n{ManagedKeys.keys_proved.key}=true\n")
    small = {"hoodie.parquet.small.file.limit": "0"}
    hudi.Table.open(str(folder), options=small).insert(rows(["3"], **one()))
    forget(folder)
    assert set(keys(folder)) == {"1", "2", "id:3"}
    with refused(folder, UnsupportedTableError, "'id:3'", "'1'", "insert_overwrite_table"):
        hudi.Table.open(str(folder)).upsert(rows(["1"], **one()))
    hudi.Table.open(str(folder)).insert_overwrite_table(
        rows(["1", "2", "3"], city=["A"] * 3, day=["1"] * 3)
    )
    assert hudi.Table.open(str(folder)).upsert(rows(["1"], v=2, **one())).updated == 1


# --- timestamps ----------------------------------------------------------------------------------

MOMENT = dt.datetime(2026, 7, 1, 0, 30, 0, 120_000, tzinfo=dt.UTC)


def at(moment: dt.datetime, v: int = 1) -> pa.Table:
    return rows(pa.array([moment], pa.timestamp("us", "UTC")), v)


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
    batch = rows(["1"], day=at(MOMENT)["id"])
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


# --- floating-point numbers ----------------------------------------------------------------------

TELLING, PLAIN = 4.73e21, 0.1


@pytest.mark.parametrize(
    ("java", "key", "kept"), [("11", "4.729999999999999E21", "17"), ("21", "4.73E21", "21")]
)
def test_the_stored_digits_of_numbers_are_taken(
    tmp_path: Path, java: str, key: str, kept: str
) -> None:
    # the key that tells is not among the first
    batch = rows([*(float(one) for one in range(2000)), TELLING])
    folder = made_elsewhere(tmp_path, [batch], options={JAVA: java})
    assert hudi.Table.open(str(folder)).upsert(rows([TELLING], 2)).updated == 1
    assert keys(folder)[key] == 2
    assert stored(folder)[JAVA] == kept
    same = {"17": "1.8", "21": "25"}[kept]
    assert hudi.Table.open(str(folder), options={JAVA: same}).delete(rows([TELLING])).deleted == 1
    with pytest.raises(OptionConflictError, match=JAVA):
        hudi.Table.open(str(folder), options={JAVA: "21" if kept == "17" else "8"})


def test_no_more_numbers_are_spelled_than_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = rows([TELLING, *(float(one) for one in range(8000))])
    folder = made_elsewhere(tmp_path, [batch], options={JAVA: "17"})
    count = 0

    def counted(value: float, *, old: bool = False) -> str:
        nonlocal count
        count += 1
        return double_text(value, old=old)

    monkeypatch.setattr(widening, "double_text", counted)
    assert hudi.Table.open(str(folder)).plan("upsert", rows([TELLING], 2))
    assert count < 8000  # of the two forms together


def test_digits_that_nothing_tells_are_for_somebody_to_state(tmp_path: Path) -> None:
    folder = made_elsewhere(tmp_path, [rows([PLAIN])])
    with refused(folder, UnsupportedTableError, "none of the keys", JAVA):
        hudi.Table.open(str(folder)).upsert(rows([PLAIN]))
    table = hudi.Table.open(str(folder), options={JAVA: "17"})
    assert table.upsert(rows([PLAIN, TELLING], 2)).updated == 1
    assert set(keys(folder)) == {"0.1", "4.729999999999999E21"}
    assert hudi.Table.open(str(folder)).upsert(rows([TELLING], 3)).updated == 1


def test_a_table_of_ours_keeps_the_digits_it_was_made_with(tmp_path: Path) -> None:
    table = hudi.Table.create(str(tmp_path / "t"), rows([PLAIN]).schema, record_key="id")
    table.upsert(rows([TELLING]))
    with pytest.raises(OptionConflictError, match=JAVA):
        hudi.Table.open(str(tmp_path / "t"), options={JAVA: "17"}).upsert(rows([TELLING]))
    other = hudi.Table.open(str(tmp_path / "t"), options={JAVA: "21"})
    assert other.upsert(rows([TELLING])).updated == 1
    # a table that has no such keys takes no notice
    texts = {JAVA: "17", CONSISTENT: "true"}
    plain = hudi.Table.create(
        str(tmp_path / "p"), rows(["a"]).schema, record_key="id", options=texts
    )
    plain.upsert(rows(["a"]))
    assert not {JAVA, CONSISTENT} & stored(tmp_path / "p").keys()
    assert hudi.Table.open(str(tmp_path / "p"), options={JAVA: "21"}).upsert(rows(["a"])).updated


# --- partitions, and what no generator makes -----------------------------------------------------


def test_partitions_of_another_form_are_refused(tmp_path: Path) -> None:
    hive = "hoodie.datasource.write.hive_style_partitioning"
    folder = made_elsewhere(
        tmp_path, [rows(["1"], city=["A"])], partition_by="city", options={hive: "true"}
    )
    properties = folder / ".hoodie" / "hoodie.properties"
    kept = [line for line in properties.read_text().splitlines() if not line.startswith(hive)]
    properties.write_text("\n".join(kept) + "\n")
    with refused(folder, UnsupportedTableError, "'city=A'", "makes 'A'"):
        hudi.Table.open(str(folder)).upsert(rows(["1"], city=["A"]))


def test_a_row_that_lies_elsewhere_says_nothing_of_the_others(tmp_path: Path) -> None:
    """A global index of Hudi's may leave a row in the partition it was in."""
    stays = {INDEX: "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"}
    folder = made_elsewhere(
        tmp_path, [rows(["1", "2"], city=["A", "A"])], partition_by="city", options=stays
    )
    rewrite(folder, "city", pa.array(["B", "A"]))
    assert hudi.Table.open(str(folder)).upsert(rows(["2"], 2, city=["A"])).updated == 1


def test_keys_that_no_generator_makes_are_shown(tmp_path: Path) -> None:
    folder = made_elsewhere(tmp_path, [rows(["1"], other=["x"])], key="other")
    properties = folder / ".hoodie" / "hoodie.properties"
    text = properties.read_text().replace("recordkey.fields=other", "recordkey.fields=id")
    properties.write_text(text)
    for operation in ("upsert", "delete", "insert"):
        with refused(folder, UnsupportedTableError, "'x' for a row", "makes '1'"):
            getattr(hudi.Table.open(str(folder)), operation)(rows(["1"], other=["x"]))
    with pytest.raises(UnsupportedTableError, match="'x' for a row"):
        hudi.Table.open(str(folder)).plan("upsert", rows(["1"], other=["x"]))


def test_a_column_that_was_widened_keeps_its_keys(tmp_path: Path) -> None:
    folder = made_elsewhere(tmp_path, [rows([1.1])], options={JAVA: "17"})
    rewrite(folder, "id", pa.array([1.1], pa.float32()))
    table = hudi.Table.open(str(folder), options={JAVA: "17"})
    assert table.upsert(rows([1.1], 2)).updated == 1


def rewrite(folder: Path, name: str, values: pa.Array) -> None:
    """Put other values into the column of the table's one file."""
    (path,) = (one for one in folder.rglob("*.parquet") if ".hoodie" not in one.parts)
    found = pq.ParquetFile(path).read()
    number, metadata = found.schema.get_field_index(name), found.schema.metadata
    field = found.schema.field(name).with_type(values.type)
    changed = found.set_column(number, field, values).replace_schema_metadata(metadata)
    pq.write_table(changed, path)


# --- what it costs -------------------------------------------------------------------------------


def test_rows_are_looked_at_once_and_never_of_a_table_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[object] = []

    def counting(*given: Any) -> Any:
        looks.append(given)
        return proven(*given)

    monkeypatch.setattr(layout_proof, "proven", counting)
    folder = made_elsewhere(tmp_path, [rows(["1"])])
    assert looks == []
    changes: list[Callable[[hudi.Table], object]] = [
        lambda table: table.alter(add_columns={"w": pa.int64()}),  # changes no row
        lambda table: table.upsert(rows(["1"], w=[1])),
        lambda table: table.upsert(rows(["2"], w=[1])),
        lambda table: table.delete(rows(["2"], w=[1])),
    ]
    for change in changes:
        change(hudi.Table.open(str(folder)))
    assert len(looks) == 1
    assert stored(folder)[ManagedKeys.keys_proved.key] == "true"
