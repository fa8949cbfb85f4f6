"""A history of every operation, for every way to partition and key a table, read by hudi-rs.

hudi-rs shares no code with this project. Its rows, past states, changes, filtered rows and file
slices must equal ours, and both must equal a dictionary that is kept beside the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import combinations, product
from pathlib import Path
from typing import Any

import hudi as hudi_rs
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.config.kinds import BulkInsertSortMode
from hudi_core.read.filters import Condition
from tests.foreign import by_hudi_rs
from tests.samples import sampled
from tests.tables import new_table

Row = dict[str, Any]
Data = Callable[[pa.Table], Any]

TYPED = pa.schema(
    [
        ("id", pa.string()),
        ("line", pa.int32()),
        ("city", pa.string()),
        ("day", pa.date32()),
        ("ts", pa.int64()),
        ("amount", pa.float64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.string())),
        ("size", pa.struct([("w", pa.int32()), ("h", pa.decimal128(9, 2))])),
        ("notes", pa.map_(pa.string(), pa.int64())),
    ]
)
PLAIN_CITIES = ("rome", "new york", "São Paulo")
HOSTILE_CITIES = (
    "a/b",
    "50% = half",
    "..",
    "x:y#z?*",
    "tab\tnew\nline",
    "'\"\\{}[]^",
    "naïve 東京",
)
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
COMPLEX = {"hoodie.table.keygenerator.type": "COMPLEX"}
CLASS = {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"}
BARE = {**CLASS, "hoodie.write.complex.keygen.new.encoding": "true"}


@dataclass(frozen=True)
class Case:
    name: str
    key: tuple[str, ...]
    partition: tuple[str, ...]
    options: dict[str, str] = field(default_factory=dict)
    versions: tuple[str, ...] = ("8", "9")
    key_of: Callable[[Row], str] = lambda row: str(row["id"])
    path_of: Callable[[Row], str] | None = None
    cities: tuple[str, ...] = PLAIN_CITIES


def joined(*names: str) -> Callable[[Row], str]:
    return lambda row: ",".join(f"{name}:{row[name]}" for name in names)


def no_path(_: Row) -> str:
    return ""


def city_path(row: Row) -> str:
    return str(row["city"])


def hive_path(row: Row) -> str:
    return f"city={row['city']}"


def two_levels(row: Row) -> str:
    return f"city={row['city']}/day={row['day']}"


BOTH = ("id", "line")
CASES = (
    Case("none-nonpartition", ("id",), (), path_of=no_path),
    Case("none-nonpartition-several", BOTH, (), key_of=joined(*BOTH), path_of=no_path),
    Case("plain-simple", ("id",), ("city",), path_of=city_path),
    Case("plain-complex-one", ("id",), ("city",), CLASS, key_of=joined("id"), path_of=city_path),
    Case("plain-complex-bare", ("id",), ("city",), BARE, ("8",), path_of=city_path),
    Case("plain-complex-several", BOTH, ("city",), key_of=joined(*BOTH), path_of=city_path),
    Case("hive-simple", ("id",), ("city",), HIVE, path_of=hive_path),
    Case("hive-complex-several", BOTH, ("city",), HIVE, key_of=joined(*BOTH), path_of=hive_path),
    Case(
        "two-complex-one", ("id",), ("city", "day"), HIVE, key_of=joined("id"), path_of=two_levels
    ),
    Case("two-complex", BOTH, ("city", "day"), HIVE, key_of=joined(*BOTH), path_of=two_levels),
    Case("encoded-simple", ("id",), ("city",), ENCODED, cities=HOSTILE_CITIES),
    Case("encoded-hive-simple", ("id",), ("city",), {**ENCODED, **HIVE}, cities=HOSTILE_CITIES),
    Case(
        "encoded-two-complex",
        BOTH,
        ("city", "day"),
        {**ENCODED, **HIVE},
        key_of=joined(*BOTH),
        cities=HOSTILE_CITIES,
    ),
)
MATRIX = [(case, version) for case in CASES for version in case.versions]
# a stride that is no multiple of two takes versions in turn
SAMPLE, OTHER_SAMPLE = sampled(MATRIX, 7), sampled(MATRIX, 7, 3)


def names(cases: Iterable[tuple[Case, str]]) -> list[str]:
    return [f"{case.name}-v{version}" for case, version in cases]


def typed(case: Case, numbers: Iterable[int], ts: int, amount: float) -> list[Row]:
    """Make rows whose key, and with it the partition, follows from their number."""
    made = []
    for number in numbers:
        day = 19_000 + number % 2
        made.append(
            {
                "id": f"k{number:03d}",
                "line": number % 3,
                "city": case.cities[number % len(case.cities)],
                "day": pa.scalar(day, pa.date32()).as_py(),
                "ts": ts,
                "amount": None if number % 5 == 0 else amount + number,
                "at": pa.scalar(1_767_225_600_000_000 + number, pa.timestamp("us", "UTC")).as_py(),
                "tags": [["a", None], [], None][number % 3],
                "size": {"w": number, "h": None} if number % 2 else None,
                "notes": [("n", number)],
            }
        )
    return made


@dataclass
class History:
    """The table beside a dictionary: what every instant left."""

    case: Case
    table: hudi.Table
    data: Data
    held: dict[str, Row] = field(default_factory=dict)
    states: list[tuple[Any, dict[str, Row]]] = field(default_factory=list)

    def write(self, operation: str, batch: list[Row]) -> None:
        result = getattr(self.table, operation)(self.data(pa.Table.from_pylist(batch, TYPED)))
        time = result.instant.requested_time
        changed = 0
        for row in batch:
            stored = self.held.get(row["id"])
            if operation == "delete":
                changed += self.held.pop(row["id"], None) is not None
            elif stored is None or row["ts"] >= stored["ts"]:
                changed += 1
                self.held[row["id"]] = {**row, "_hoodie_commit_time": time}
        assert changed == result.inserted + result.updated + result.deleted
        assert changed
        self.states.append((result.instant, dict(self.held)))

    def overwrite(self, operation: str, batch: list[Row]) -> None:
        """Replace the partitions of the rows, or all."""
        result = getattr(self.table, operation)(self.data(pa.Table.from_pylist(batch, TYPED)))
        assert (result.inserted, result.updated, result.deleted) == (len(batch), 0, 0)
        written = {self.partition_of(row) for row in batch}
        self.forget(written if operation == "insert_overwrite" else None)
        time = result.instant.requested_time
        self.held |= {row["id"]: {**row, "_hoodie_commit_time": time} for row in batch}
        self.states.append((result.instant, dict(self.held)))

    def delete_partition(self, row: Row) -> None:
        """Delete the partition of a row, by its values."""
        values = {name: row[name] for name in self.case.partition}
        result = self.table.delete_partitions([values])
        self.forget({self.partition_of(row)})
        self.states.append((result.instant, dict(self.held)))

    def partition_of(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.case.partition)

    def forget(self, partitions: set[tuple[Any, ...]] | None) -> None:
        before = len(self.held)
        self.held = {
            key: row
            for key, row in self.held.items()
            if partitions is not None and self.partition_of(row) not in partitions
        }
        assert len(self.held) < before


def run_history(history: History) -> None:
    case = history.case
    history.write("bulk_insert", typed(case, range(20), 10, 100.0))
    newer, older = typed(case, range(8), 11, 200.0), typed(case, range(8, 12), 9, 300.0)
    history.write("upsert", newer + older + typed(case, range(20, 26), 10, 400.0))
    history.write("insert", typed(case, range(26, 33), 10, 500.0))
    history.write("delete", typed(case, [1, 5, 21, 99], 0, 0.0))
    history.write("upsert", typed(case, [1, 2, 40], 12, 600.0))


def run_replacing_history(history: History) -> None:
    case = history.case
    cities = len(case.cities)
    history.write("bulk_insert", typed(case, range(20), 10, 100.0))
    history.write("upsert", typed(case, range(8), 11, 200.0))
    # an older ordering value, and keys that are there already: an overwrite compares nothing
    history.overwrite("insert_overwrite", typed(case, [0, cities * 2, cities * 20], 5, 300.0))
    history.write("upsert", typed(case, [0, 1, 50], 12, 400.0))
    if case.partition:
        history.delete_partition(typed(case, [1], 0, 0.0)[0])
    # the partition is there again, in groups of its own
    history.write("insert", typed(case, [61 * cities + 1, 62], 10, 500.0))
    history.overwrite("insert_overwrite_table", typed(case, range(5), 1, 600.0))
    history.write("upsert", typed(case, [2, 70], 13, 700.0))


def new_history(path: Path, case: Case, version: str, data: Data) -> History:
    options = {
        **case.options,
        "hoodie.write.table.version": version,
        "hoodie.fs.fsync": "false",
        # two inserts stay in a file of their own, so that groups have different ages
        "hoodie.copyonwrite.insert.auto.split": "false",
        "hoodie.copyonwrite.insert.split.size": "5",
    }
    table = new_table(
        path, TYPED, options, record_key=case.key, partition_by=case.partition or None
    )
    return History(case, table, data)


def ordered(found: Iterable[Row]) -> list[Row]:
    return sorted(found, key=lambda row: str(row["_hoodie_record_key"]))


def theirs(path: Path, options: hudi_rs.HudiReadOptions | None = None) -> list[Row]:
    return ordered(by_hudi_rs(path, options))


def ours(table: hudi.Table, **query: Any) -> list[Row]:
    return ordered(table.to_arrow(**query).to_pylist())


def meta_matches(found: list[Row], case: Case, path: Path) -> None:
    for row in found:
        assert row["_hoodie_record_key"] == case.key_of(row)
        if case.path_of is not None:
            assert row["_hoodie_partition_path"] == case.path_of(row)
        assert (path / row["_hoodie_partition_path"] / row["_hoodie_file_name"]).is_file()
        assert row["_hoodie_commit_seqno"].startswith(f"{row['_hoodie_commit_time']}_")
    values = {tuple(row[name] for name in case.partition) for row in found}
    assert len({row["_hoodie_partition_path"] for row in found}) == len(values)
    numbers = [row["_hoodie_commit_seqno"] for row in found]
    assert len(set(numbers)) == len(numbers)


def plain(found: list[Row]) -> list[Row]:
    """Keep what the dictionary knows: the data, and the commit time."""
    names = {*TYPED.names, "_hoodie_commit_time"}
    return sorted(
        ({name: value for name, value in row.items() if name in names} for row in found),
        key=lambda row: str(row["id"]),
    )


def expected(held: dict[str, Row]) -> list[Row]:
    return sorted(held.values(), key=lambda row: str(row["id"]))


def slices_of(table: hudi.Table, as_of: str | None) -> list[tuple[Any, ...]]:
    return sorted(
        (one.partition_path, one.file_id, one.base_instant, base.path, base.size)
        for one in table.file_slices(as_of)
        if (base := one.base_file) is not None
    )


def their_slices(path: Path, as_of: str | None) -> list[tuple[Any, ...]]:
    options = hudi_rs.HudiReadOptions()
    if as_of is not None:
        options = options.with_as_of_timestamp(as_of)
    return sorted(
        (
            one.partition_path,
            one.file_id,
            one.creation_instant_time,
            one.base_file_relative_path(),
            one.base_file_size,
        )
        for one in hudi_rs.HudiTable(str(path)).get_file_slices(options)
    )


def check(history: History, path: Path) -> None:
    table = hudi.Table.open(str(path))
    check_past(history, table, path)
    check_changes(history, table, path)
    check_filters(history, table, path)
    instants = [instant for instant, _ in history.states]
    timeline = hudi_rs.HudiTable(str(path)).get_timeline()
    found = [*timeline.get_completed_commits(), *timeline.get_completed_replacecommits()]
    assert sorted((one.timestamp, one.action) for one in found) == [
        (one.requested_time, one.action) for one in instants
    ]


def check_past(history: History, table: hudi.Table, path: Path) -> None:
    found = ours(table)
    assert found == theirs(path)
    assert plain(found) == expected(history.held)
    meta_matches(found, history.case, path)
    assert slices_of(table, None) == their_slices(path, None)
    for instant, held in history.states:
        for time in (instant.requested_time, instant.completion_time):
            past = ours(table, as_of=time)
            options = hudi_rs.HudiReadOptions().with_as_of_timestamp(time)
            assert past == theirs(path, options)
            assert plain(past) == expected(held)
            assert slices_of(table, time) == their_slices(path, time)


def check_changes(history: History, table: hudi.Table, path: Path) -> None:
    """Look at windows between any two commits, a third of which a run takes."""
    completions = [instant.completion_time for instant, _ in history.states]
    for begin, end in sampled(list(combinations(range(-1, len(completions)), 2)), 3):
        options = hudi_rs.HudiReadOptions().with_query_type(hudi_rs.HudiQueryType.Incremental)
        options = options.with_end_timestamp(completions[end])
        if begin >= 0:
            options = options.with_start_timestamp(completions[begin])
        start = completions[begin] if begin >= 0 else None
        changed = ordered(table.incremental(start, completions[end]).to_pylist())
        assert changed == theirs(path, options)
        window = {instant.requested_time for instant, _ in history.states[begin + 1 : end + 1]}
        assert plain(changed) == [
            row for row in expected(history.states[end][1]) if row["_hoodie_commit_time"] in window
        ]


def check_filters(history: History, table: hudi.Table, path: Path) -> None:
    case = history.case
    filters: list[tuple[list[Condition], Callable[[Row], bool]]] = [
        ([("amount", ">", 400)], lambda row: row["amount"] is not None and row["amount"] > 400),
        ([("id", "<=", "k010")], lambda row: bool(row["id"] <= "k010")),
        ([("city", "=", case.cities[0])], lambda row: bool(row["city"] == case.cities[0])),
    ]
    for conditions, holds in filters:
        found = ours(table, filter=conditions)
        texts = [(name, operator, str(value)) for name, operator, value in conditions]
        assert found == theirs(path, hudi_rs.HudiReadOptions().with_filters(texts)), conditions
        assert plain(found) == [row for row in expected(history.held) if holds(row)]
        assert found


@pytest.mark.parametrize(("case", "version"), OTHER_SAMPLE, ids=names(OTHER_SAMPLE))
def test_in_this_process(case: Case, version: str, tmp_path: Path) -> None:
    path = tmp_path / "table"
    history = new_history(path, case, version, lambda rows: rows)
    run_history(history)
    check(history, path)


@pytest.mark.parametrize(("case", "version"), SAMPLE, ids=names(SAMPLE))
def test_replacing_in_this_process(case: Case, version: str, tmp_path: Path) -> None:
    path = tmp_path / "table"
    history = new_history(path, case, version, lambda rows: rows)
    run_replacing_history(history)
    check(history, path)
    actions = [instant.action.value for instant, _ in history.states]
    assert actions.count("replacecommit") == (3 if case.partition else 2)


@pytest.mark.parametrize(
    ("mode", "case", "version"),
    [
        pytest.param(mode, case, version, id=f"{case.name}-v{version}-{mode}")
        for mode, (case, version) in sampled(list(product(BulkInsertSortMode, MATRIX)), 8)
    ],
)
def test_sorted_bulk_inserts(
    case: Case, version: str, mode: BulkInsertSortMode, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    history = new_history(path, case, version, lambda rows: rows)
    batch = typed(case, range(30), 10, 100.0)
    history.table.bulk_insert(
        pa.Table.from_pylist(batch[::-1], TYPED), options={"hoodie.bulkinsert.sort.mode": mode}
    )
    history.write("upsert", typed(case, range(25, 35), 11, 200.0))
    found = ours(hudi.Table.open(str(path)))
    assert found == theirs(path)
    meta_matches(found, case, path)
    assert sorted(row["id"] for row in found) == [row["id"] for row in typed(case, range(35), 0, 0)]


ON_SPARK = sampled(
    [("none-nonpartition-several", "8"), ("plain-complex-bare", "8"), ("encoded-two-complex", "9")],
    2,
)
BY_NAME = {case.name: case for case in CASES}


@pytest.mark.spark
def test_replacing_on_spark(tmp_path: Path, spark: Any) -> None:
    path = tmp_path / "table"
    history = new_history(path, BY_NAME["encoded-two-complex"], "9", spark.createDataFrame)
    run_replacing_history(history)
    check(history, path)


@pytest.mark.spark
@pytest.mark.parametrize(("name", "version"), ON_SPARK)
def test_on_spark(name: str, version: str, tmp_path: Path, spark: Any) -> None:
    case = BY_NAME[name]
    path = tmp_path / "table"
    history = new_history(path, case, version, spark.createDataFrame)
    run_history(history)
    check(history, path)
    frame = hudi.Table.open(str(path)).read(spark)
    assert plain(ordered(frame.toArrow().to_pylist())) == expected(history.held)
    completions = [instant.completion_time for instant, _ in history.states]
    changed = hudi.Table.open(str(path)).incremental(completions[1], completions[3], spark)
    here = hudi.Table.open(str(path)).incremental(completions[1], completions[3])
    assert plain(ordered(changed.toArrow().to_pylist())) == plain(ordered(here.to_pylist()))
