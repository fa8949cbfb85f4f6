"""Filters: of rows, by partitions, paths and secondary indexes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.config.kinds import KeyGeneratorType
from hudi_core.config.table import TableConfig
from hudi_core.errors import NotATableError, SchemaError, TableServiceError, UnknownPartitionError
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.key_index.unique_keys import has_repeated_keys
from hudi_core.metadata.maintenance.indexing import was_dropped
from hudi_core.model.files import PartitionPath
from hudi_core.read.filters import OPERATORS, Condition, require_columns, to_filter
from hudi_core.read.partition_pruning import PartitionPruner
from hudi_core.read.path_pattern import PathPattern
from tests.operators import operator
from tests.tables import new_table

FILTERED = pa.schema(
    [
        ("id", pa.int32()),
        ("name", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("ok", pa.bool_()),
        ("place", pa.struct([("city", pa.string())])),
    ]
)
NAIVE = datetime(2026, 1, 2)  # noqa: DTZ001 - what callers without zones give
ROWS = pa.Table.from_pylist(
    [
        {
            "id": n,
            "name": name,
            "price": Decimal(n),
            "day": date(2026, 1, n),
            "at": datetime(2026, 1, n, tzinfo=UTC),
            "ok": n > 2,
            "place": {"city": name},
        }
        for n, name in ((1, "a"), (2, "b"), (3, None), (4, "d'; DROP TABLE t --"))
    ],
    FILTERED,
)


def ids(row_filter: Any) -> list[int]:
    wanted = to_filter(row_filter, FILTERED)
    assert wanted is not None
    found: list[int] = ROWS.filter(wanted.expression)["id"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (("id", "=", 2), [2]),
        (("id", "==", "2"), [2]),
        (("id", "!=", 2), [1, 3, 4]),
        (("id", "<", 2), [1]),
        (("id", "<=", 2.0), [1, 2]),
        (("id", ">", 3), [4]),
        (("id", ">=", 3), [3, 4]),
        (("id", "in", [1, "4", 9]), [1, 4]),
        (("id", "NOT  IN", [1, 4]), [2, 3]),
        (("name", "!=", "a"), [2, 4]),
        (("name", "not in", ["a"]), [2, 4]),
        (("name", "is null", None), [3]),
        (("name", "is not null", None), [1, 2, 4]),
        (("name", "=", "d'; DROP TABLE t --"), [4]),
        (("price", "<", 1.5), [1]),
        (("price", "=", Decimal(3)), [3]),
        (("day", ">=", "2026-01-03"), [3, 4]),
        (("day", "=", date(2026, 1, 2)), [2]),
        (("at", ">", "2026-01-03"), [4]),
        (("at", "=", "2026-01-03T01:00:00+01:00"), [3]),
        (("at", "<", NAIVE), [1]),
        (("ok", "=", "true"), [3, 4]),
        (("ok", "=", False), [1, 2]),
    ],
)
def test_a_condition_selects_rows(condition: Condition, expected: list[int]) -> None:
    assert ids([condition]) == expected


def test_every_condition_has_to_hold() -> None:
    assert ids([("id", ">", 1), ("name", "is not null", None)]) == [2, 4]


def test_an_expression_is_taken_as_it_is() -> None:
    expression = (pc.field("id") > 1) & (pc.field("place", "city") == "b")
    assert ids(expression) == [2]


@pytest.mark.parametrize("nothing", [None, [], ()])
def test_no_filter(nothing: Any) -> None:
    assert to_filter(nothing, FILTERED) is None


@pytest.mark.parametrize(
    ("row_filter", "named"),
    [
        ([("colour", "=", 1)], "'colour'"),
        (pc.field("colour") == 1, "colour"),
        (pc.field("place", "street") == "x", "street"),
        (pc.field("id") == "x", "equal"),
        (pc.field("id") + 1, "bool"),
        ([("id", "like", 1)], "'like'"),
        ([("id", "=", "x")], "int32"),
        ([("id", "=", 3.5)], "int32"),
        ([("id", "=", Decimal("3.5"))], "int32"),
        ([("id", "=", 2**40)], "int32"),
        ([("id", "=", True)], "int32"),
        ([("ok", "=", 1)], "bool"),
        ([("name", "=", 5)], "string"),
        ([("day", "=", datetime(2026, 1, 1, 12, tzinfo=UTC))], "date32"),
        ([("price", "=", 1.005)], "decimal128"),
        ([("at", "=", "yesterday")], "timestamp"),
        ([("place", "=", "x")], "struct"),
        ([("id", "=", None)], "is null"),
        ([("id", "in", [1, None])], "is null"),
        ([("id", "in", [])], "list of values"),
        ([("id", "in", 5)], "list of values"),
        ([("name", "in", "abc")], "list of values"),
        ([("id", "=")], "tuple"),
        (["id = 1"], "tuple"),
        ("id = 1", "tuple"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(row_filter: Any, named: str) -> None:
    with pytest.raises(SchemaError, match=named):
        to_filter(row_filter, FILTERED)


def test_unknown_columns_are_named() -> None:
    require_columns(["id", "name"], FILTERED)
    require_columns(None, FILTERED)
    for asked, said in (
        (["x", "id", "y"], r"no column 'x', 'y'.*id, name"),
        (["id", "name", "id"], "'id' are asked for twice"),
    ):
        with pytest.raises(SchemaError, match=said):
            require_columns(asked, FILTERED)


def test_operators_are_listed() -> None:
    with pytest.raises(SchemaError) as caught:
        to_filter([("id", "~", 1)], FILTERED)
    assert all(operator in str(caught.value) for operator in OPERATORS)


# --- partition pruning: what a path says about the rows below it, and what it does not
PRUNED_SCHEMA = pa.schema(
    [
        ("_hoodie_partition_path", pa.string()),
        ("city", pa.string()),
        ("n", pa.int32()),
        ("day", pa.date32()),
        ("ok", pa.bool_()),
        ("at", pa.timestamp("us", "UTC")),
        ("x", pa.int64()),
    ]
)


def pruner(*fields: str, **changes: Any) -> PartitionPruner:
    config = TableConfig(name="t", record_key_fields=("x",), partition_fields=fields)
    return PartitionPruner(dataclasses.replace(config, **changes), PRUNED_SCHEMA)


def kept(pruner: PartitionPruner, row_filter: Any, *paths: str) -> list[str]:
    wanted = to_filter(row_filter, PRUNED_SCHEMA)
    return list(pruner.keep([PartitionPath(path) for path in paths], wanted))


@pytest.mark.parametrize(
    ("field", "paths", "condition", "expected"),
    [
        ("city", ["Paris", "Rome"], ("city", "=", "Rome"), ["Rome"]),
        ("city", ["Paris", "Rome"], ("city", "!=", "Rome"), ["Paris"]),
        ("city", ["Paris", "Rome", "Oslo"], ("city", "in", ["Oslo", "Bonn"]), ["Oslo"]),
        ("city", ["Paris", "Rome"], ("x", "=", 1), ["Paris", "Rome"]),
        ("n", ["10", "9", "-1"], ("n", ">", 8), ["10", "9"]),
        ("day", ["2026-01-31", "2026-02-01"], ("day", "<", "2026-02-01"), ["2026-01-31"]),
        ("ok", ["true", "false"], ("ok", "=", True), ["true"]),
    ],
)
@pytest.mark.parametrize("hive", [False, True])
def test_partitions_without_matching_rows_are_dropped(
    field: str, paths: list[str], condition: Any, expected: list[str], hive: bool
) -> None:
    prefix = f"{field}=" if hive else ""
    found = kept(pruner(field, hive_style=hive), [condition], *(prefix + path for path in paths))
    assert found == [prefix + path for path in expected]


@pytest.mark.parametrize(
    ("field", "path", "condition"),
    [
        # nulls and empty texts share this folder
        ("city", "__HIVE_DEFAULT_PARTITION__", ("city", "=", "Rome")),
        ("city", "__HIVE_DEFAULT_PARTITION__", ("city", "is null", None)),
        # days since the epoch, as one of Hudi's writers puts dates
        ("day", "20484", ("day", "=", "1999-01-01")),
        ("at", "2026-01-01", ("at", "=", "1999-01-01")),
        ("n", "many", ("n", "=", 1)),
        ("n", "99999999999999999999", ("n", "=", 1)),
        ("n", "9999999999", ("n", "=", 1)),
        # slashes may stand for the dashes of a date
        ("city", "2026/01/31", ("city", "=", "2026-01-31")),
    ],
)
def test_a_path_that_is_not_certain_is_kept(field: str, path: str, condition: Any) -> None:
    assert kept(pruner(field), [condition], path) == [path]


def test_several_fields() -> None:
    paths = ["city=Rome/n=1", "city=Rome/n=2", "city=Oslo/n=1"]
    several = pruner("city", "n", keygen_type=KeyGeneratorType.COMPLEX, hive_style=True)

    assert kept(several, [("n", "=", 1)], *paths) == [paths[0], paths[2]]
    assert kept(several, [("n", "=", 1), ("city", "=", "Rome")], *paths) == [paths[0]]
    either = (pc.field("n") == 2) | (pc.field("city") == "Oslo")
    assert kept(several, either, *paths) == paths[1:]


def test_escaped_values_are_compared_as_they_were() -> None:
    escaped = pruner("city", url_encode=True)
    assert kept(escaped, [("city", "=", "a=b")], "a%3Db", "a%3Dc") == ["a%3Db"]
    plain = pruner("city")
    assert kept(plain, [("city", "=", "a%3Db")], "a%3Db", "a%3Dc") == ["a%3Db"]


@pytest.mark.parametrize(
    "kind", [KeyGeneratorType.TIMESTAMP, KeyGeneratorType.CUSTOM, KeyGeneratorType.USER_PROVIDED]
)
def test_generators_that_change_the_value_prune_by_the_path_column_only(
    kind: KeyGeneratorType,
) -> None:
    changed = pruner("n", keygen_type=kind)

    assert kept(changed, [("n", "=", 1)], "20260131", "20260201") == ["20260131", "20260201"]
    by_path = [("_hoodie_partition_path", "=", "20260131")]
    assert kept(changed, by_path, "20260131", "20260201") == ["20260131"]


def test_a_generator_that_is_not_named_is_not_trusted() -> None:
    """Tables of early releases do not name it; what Hudi would infer may be another one."""
    unnamed = pruner("n", raw={"hoodie.table.partition.fields": "n"})
    named = pruner("n", raw={"hoodie.table.keygenerator.type": "SIMPLE"})

    assert kept(unnamed, [("n", "=", 1)], "1", "2") == ["1", "2"]
    assert kept(named, [("n", "=", 1)], "1", "2") == ["1"]


def test_values_of_a_path() -> None:
    several = pruner("city", "n", keygen_type=KeyGeneratorType.COMPLEX)

    assert several.values(PartitionPath("Rome/__HIVE_DEFAULT_PARTITION__")) == {
        "city": "Rome",
        "n": None,
    }
    assert several.values(PartitionPath("only")) == {}
    assert pruner().values(PartitionPath("")) == {}


def test_without_filter_or_fields_everything_is_kept() -> None:
    assert kept(pruner("city"), None, "a", "b") == ["a", "b"]
    assert kept(pruner(), [("city", "=", "x")], "") == [""]


# --- paths within a table, with and without wildcards: what of a snapshot they name
@pytest.mark.parametrize(
    ("pattern", "partitions", "files"),
    [
        ("*", ["a/1", "a/2", "b/1"], ["a/1/f", "b/1/g"]),
        ("*/*", ["a/1", "a/2", "b/1"], ["a/1/f", "b/1/g"]),
        ("*/*/*", ["a/1", "a/2", "b/1"], ["a/1/f", "b/1/g"]),
        ("*/*/*/*", [], []),
        ("a", ["a/1", "a/2"], ["a/1/f"]),
        ("a/1", ["a/1"], ["a/1/f"]),
        ("a/1/f", ["a/1"], ["a/1/f"]),
        ("*/1/g", ["a/1", "b/1"], ["b/1/g"]),
        ("?/[2-9]", ["a/2"], []),
        ("[^a]/*", ["b/1"], ["b/1/g"]),
        ("{b,c}", ["b/1"], ["b/1/g"]),
        ("{a/2,b}", ["a/2", "b/1"], ["b/1/g"]),
        ("{a,b}/{1,3}", ["a/1", "b/1"], ["a/1/f", "b/1/g"]),
        ("a*", ["a/1", "a/2"], ["a/1/f"]),
        ("A", [], []),
    ],
)
def test_what_a_pattern_names(pattern: str, partitions: list[str], files: list[str]) -> None:
    found = PathPattern((pattern,))
    all_ = map(PartitionPath, ("a/1", "a/2", "b/1"))
    assert [one for one in all_ if found.may_name(one)] == partitions
    assert [one for one in ("a/1/f", "b/1/g") if found.names(one)] == files


def test_characters_stand_for_themselves_first() -> None:
    assert PathPattern(("x[1]",)).names("x[1]/f")
    assert PathPattern(("x.y",)).names("x.y/f")
    assert not PathPattern(("x.y",)).names("xzy/f")
    assert PathPattern(("a", "b/1")).names("b/1/f")
    # a table without partitions
    assert PathPattern(("*",)).may_name(PartitionPath(""))
    assert PathPattern(("*.parquet",)).names("f.parquet")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Five rows in three partitions; the rows of one were written twice."""
    path = tmp_path_factory.mktemp("within") / "t"
    rows = pa.table(
        {"id": [1, 2, 3, 4, 5], "year": [2025, 2025, 2025, 2026, 2026], "month": [1, 1, 2, 1, 1]}
    )
    made = new_table(path, rows, partition_by=["year", "month"])
    made.upsert(rows.slice(0, 2))
    return str(path)


@pytest.mark.parametrize(
    ("below", "ids"),
    [
        ("", [1, 2, 3, 4, 5]),
        ("/", [1, 2, 3, 4, 5]),
        ("/*/*/*", [1, 2, 3, 4, 5]),
        ("/*", [1, 2, 3, 4, 5]),
        ("/2025", [1, 2, 3]),
        ("/2025/", [1, 2, 3]),
        ("/2025/1", [1, 2]),
        ("/*/1", [1, 2, 4, 5]),
        ("/202[6-9]/*/*.parquet", [4, 5]),
        ("/{2025/2,2026}", [3, 4, 5]),
    ],
)
def test_rows_of_a_path(path: str, below: str, ids: list[int]) -> None:
    assert sorted(hudi.read(None, path + below).column("id").to_pylist()) == ids


def test_a_path_reads_past_states_and_changes(path: str) -> None:
    first, second = hudi.Table.open(path).timeline.completed_writes()

    def count(below: str, **options: Any) -> int:
        return int(hudi.read(None, path + below, options).num_rows)

    assert count("/2025/1", **{"as.of.instant": first}) == 2
    assert count("/2026", **{"as.of.instant": first}) == 2
    changes = {"hoodie.datasource.query.type": "incremental"}
    since = {**changes, "hoodie.datasource.read.begin.instanttime": first}
    assert count("/2025", **since) == 2
    assert count("/2026", **since) == 0
    assert count("/2025/1/*", **{**since, "hoodie.datasource.read.begin.instanttime": second}) == 0


def test_one_file_is_read_while_it_is_of_the_snapshot(path: str) -> None:
    [now] = hudi.Table.open(path).file_slices(filter=[("year", "=", 2025), ("month", "=", 1)])
    assert now.base_file is not None
    assert hudi.read(None, f"{path}/{now.base_file.path}").num_rows == 2
    [old] = [
        file
        for file in Path(path, "2025/1").glob("*.parquet")
        if file.name != Path(now.base_file.path).name
    ]
    assert hudi.read(None, str(old)).num_rows == 0


def test_what_the_table_does_not_have_is_named(path: str) -> None:
    with pytest.raises(UnknownPartitionError, match=r"nothing at 2024.*2025/1, 2025/2, 2026/1"):
        hudi.read(None, f"{path}/2024")
    outside = str(Path(path).parent / "other")
    for wrong in (outside, f"{outside}/*"):
        with pytest.raises(NotATableError, match="holds no Hudi table"):
            hudi.read(None, wrong)


def test_only_named_partitions_are_opened(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "city": ["oslo", "rome"]})
    new_table(tmp_path / "t", rows)
    for file in tmp_path.glob("t/rome/*.parquet"):
        file.unlink()
    assert hudi.read(None, tmp_path / "t" / "oslo").num_rows == 1


# --- filters on a column with a secondary index: only file groups that hold the value are read
RIDES = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("rider", pa.string()),
        ("code", pa.int32()),
    ]
)
OPTIONS = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.record.index.update.partition.path": "true",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    # what is left out is left out by the index alone
    "hoodie.metadata.index.column.stats.enable": "false",
}
Names = set[str]


def rides(
    keys: Sequence[int], rider: Callable[[int], str | None], ts: int = 1, shift: int = 0
) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{key}" for key in keys],
            "city": [f"c{(key + shift) % 8}" for key in keys],
            "ts": [ts] * len(keys),
            "rider": [rider(key) for key in keys],
            "code": [key % 5 for key in keys],
        },
        schema=RIDES,
    )


def by_number(key: int) -> str | None:
    return None if key == 7 else f"r$\\{key}"


def create(path: Path, version: int = 8) -> hudi.Table:
    return new_table(path / "table", RIDES, {**OPTIONS, "hoodie.write.table.version": str(version)})


def add_index(table: hudi.Table, column: str, **more: str) -> hudi.Table:
    operator(table.path, OPTIONS | more).index(f"secondary_index_{column}", column)
    return hudi.Table.open(table.path, options=OPTIONS)


def planned(table: hudi.Table, row_filter: Any) -> Names:
    """Partitions, of which each has one file group, that a filtered read opens."""
    return {one.partition_path for one in table.file_slices(filter=row_filter)}


def found_ids(table: hudi.Table, row_filter: Any) -> list[str]:
    return sorted(table.to_arrow(filter=row_filter).column("id").to_pylist())


@pytest.mark.parametrize("version", [8, 9])
def test_equality_reads_the_files_of_the_value(tmp_path: Path, version: int) -> None:
    table = create(tmp_path, version)
    table.upsert(rides(range(16), by_number))
    table = add_index(table, "rider")
    rider = pc.field("rider")
    assert planned(table, rider == "r$\\3") == {"c3"}
    assert found_ids(table, rider == "r$\\3") == ["k3"]
    assert planned(table, rider.isin(["r$\\3", "r$\\12", "none"])) == {"c3", "c4"}
    assert planned(table, (rider == "r$\\3") & (pc.field("ts") == 1)) == {"c3"}
    assert planned(table, (rider == "r$\\3") | (rider == "r$\\5")) == {"c3", "c5"}
    assert planned(table, rider == "nobody") == set()
    # what the index does not tell leaves nothing out
    for other in (
        (rider == "r$\\3") | (pc.field("ts") == 1),
        rider != "r$\\3",
        rider.is_null(),
        rider > "r$\\3",
    ):
        assert len(planned(table, other)) == 8
    assert found_ids(table, rider.is_null()) == ["k7"]


def test_the_index_follows_writes(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rides(range(16), by_number))
    table = add_index(table, "rider")
    # new values, the same ones elsewhere, rows that go
    table.upsert(rides([1], lambda _: "new", 2))
    table.upsert(rides([2], by_number, 2, shift=3))
    table.delete(rides([3], by_number))
    table.insert_overwrite(rides([100], lambda _: "only", 1))
    table = hudi.Table.open(table.path, options=OPTIONS)
    rider = pc.field("rider")
    assert planned(table, rider == "new") == {"c1"}
    assert planned(table, rider == "r$\\1") == set()
    assert planned(table, rider == "r$\\2") == {"c5"}
    assert planned(table, rider == "r$\\3") == set()
    assert planned(table, rider == "only") == {"c4"}
    assert planned(table, rider == "r$\\4") == planned(table, rider == "r$\\12") == set()
    whole = table.to_arrow()
    for value in whole.column("rider").to_pylist():
        if value is not None:
            wanted = whole.filter(pc.equal(whole.column("rider"), value))
            assert found_ids(table, rider == value) == sorted(wanted.column("id").to_pylist())


def test_numbers_are_found_by_their_text(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rides([0, 1, 2, 10, 11], by_number))
    table = add_index(table, "code")
    assert planned(table, pc.field("code") == 1) == {"c1", "c3"}
    assert found_ids(table, pc.field("code") == 1) == ["k1", "k11"]
    # what was indexed as another type is spelled otherwise
    table.alter(promote={"code": pa.int64()})
    table = hudi.Table.open(table.path, options=OPTIONS)
    assert len(planned(table, pc.field("code") == 1)) == 4


@pytest.mark.parametrize("before", [True, False])
def test_keys_in_several_file_groups_are_all_found(tmp_path: Path, before: bool) -> None:
    """Inserts look nothing up; the record index knows one place of each key."""
    table = create(tmp_path)
    table.upsert(rides(range(16), by_number))
    twice = rides([3], by_number, 1, shift=1)
    if before:
        table.insert(twice)
    table = add_index(table, "rider")
    if not before:
        assert len(planned(table, pc.field("rider") == "r$\\3")) == 1
        table.upsert(rides([4], by_number, 2, shift=3))
        opened = hudi.Table.open(table.path)._session.opened.client
        # what moves is in one place
        assert not has_repeated_keys(read_definitions(opened.storage, opened.config))
        table.insert(twice)
    table = hudi.Table.open(table.path, options=OPTIONS)
    assert found_ids(table, pc.field("rider") == "r$\\3") == ["k3", "k3"]


def test_past_states_and_sessions_without_it_are_read_without_it(tmp_path: Path) -> None:
    table = create(tmp_path)
    first = table.upsert(rides(range(16), by_number)).instant.requested_time
    table = add_index(table, "rider")
    table.upsert(rides([1], lambda _: "new", 2))
    table = hudi.Table.open(table.path, options=OPTIONS)
    found = table.to_arrow(filter=pc.field("rider") == "r$\\1", as_of=first)
    assert found.column("id").to_pylist() == ["k1"]
    off = {**OPTIONS, "hoodie.metadata.index.secondary.enable": "false"}
    table = hudi.Table.open(table.path, options=off)
    assert len(planned(table, pc.field("rider") == "r$\\3")) == 8


def test_an_index_made_again_on_another_column_loses_no_row_of_an_open_dataset(
    tmp_path: Path,
) -> None:
    table = new_table(tmp_path / "t", RIDES, OPTIONS, partition_by=None, ordering_field=None)
    whole = rides(range(6), by_number).set_column(1, "city", pa.array([f"c{n}" for n in range(6)]))
    for number in range(6):
        table.insert(whole.slice(number, 1), options={"hoodie.parquet.small.file.limit": "0"})
    table.create_index("secondary_index_x", "rider")
    dataset = hudi.Table.open(table.path, OPTIONS).scan()
    assert dataset.to_table(filter=pc.field("rider") == by_number(1)).num_rows == 1
    table.drop_index("secondary_index_x")
    table.create_index("secondary_index_x", "city")
    for _ in range(2):
        assert dataset.to_table(filter=pc.field("city") == "c1").num_rows == 1
        assert dataset.to_table(filter=pc.field("rider") == by_number(1)).num_rows == 1


@pytest.mark.parametrize("using", [None, "record_index", "secondary_index"])
def test_an_index_of_the_record_key_is_the_record_index(tmp_path: Path, using: str | None) -> None:
    options = {key: value for key, value in OPTIONS.items() if "record" not in key.lower()}
    options["hoodie.index.type"] = "SIMPLE"
    table = new_table(tmp_path / "t", rides(range(4), by_number), options, partition_by=None)
    with pytest.raises(TableServiceError, match="record index is of the record key, and not of"):
        table.create_index("of_keys", "city", using="record_index")
    with pytest.raises(TableServiceError, match="would be of 2 columns: id, city"):
        table.create_index("of_keys", ["id", "city"])

    table.create_index("of_keys", "id", using=using)

    assert "record_index" in table.config.metadata_partitions
    assert table.metadata("record_index").num_rows == 4
    table.create_index("of_rider", "rider")
    assert found_ids(table, pc.field("rider") == by_number(3)) == ["k3"]


def test_the_record_index_takes_those_that_need_it_along_when_asked(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.insert(rides(range(4), by_number))
    table.create_index("of_rider", "rider")
    with pytest.raises(TableServiceError, match="secondary_index_of_rider go through the record"):
        table.drop_index("record_index")
    client = table._session.opened.client
    assert not was_dropped(client, "secondary_index_of_rider")

    table.drop_index("record_index", cascades=True)

    left = hudi.Table.open(table.path).config.metadata_partitions
    assert not {"record_index", "secondary_index_of_rider"} & {*left}
    for name, is_gone in {"record_index": True, "of_rider": True, "of_city": False}.items():
        partition = name if name == "record_index" else f"secondary_index_{name}"
        assert was_dropped(table._session.opened.client, partition) is is_gone
