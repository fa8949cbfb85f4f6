"""Dead rows of split tables in every format: which they are, and what counts without them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from hudi_sql_format.conformance import database_of, rows_of
from pyiceberg.table import StaticTable

import hudi_core as hudi
from delta_format.vectors import Vector, new_vectors, positions
from hudi_core.log_format.positions import (
    decode_vector,
    encode_vector,
    frame_vector,
    unframe_vector,
)
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.read.connector.handles import TableName
from hudi_core.services.mending.differences import Source
from hudi_core.services.opening import open_table
from hudi_core.trino.service import TrinoService
from tests.foreign import by_hudi_rs
from tests.formats.trino_client import (
    all_splits,
    between,
    client_of,
    domain,
    rows_of_split,
    table_name,
)
from tests.tables import SCHEMA, new_table, rows

OPTIONS: Final = {"hoodie.compact.inline": "false", "hoodie.clean.automatic": "false"}
VERSION: Final = "hoodie.table.format.iceberg.format-version"
MAGIC: Final = b"PFA1"


def log_of(path: Path) -> Path:
    return max((path / "_delta_log").glob("*.json"))


def move_in_log(path: Path) -> None:
    """Put an inline vector of the next rows into the newest version of a Delta log."""
    client, log = open_table(str(path), {}).client, log_of(path)
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        vector = Vector.of(action.get("add", {}))
        if vector is not None:
            time = InstantTime("20260101000000000")
            instant = Instant(time, Action.DELTACOMMIT, State.COMPLETED, time)
            moved = new_vectors(client, instant, {"x": positions(client, vector) + 1})["x"]
            action["add"] |= moved.action
    log.write_text("\n".join(map(json.dumps, actions)))


def deletes(path: Path, pattern: str) -> Path:
    [found] = (path / "metadata").glob(pattern)
    return found


def move_in_parquet(path: Path) -> None:
    """Have a file of position deletes name the next rows."""
    file = deletes(path, "*.position-deletes")
    held = pq.read_table(file)
    at = held.schema.get_field_index("pos")
    moved = held.set_column(at, held.schema.field(at), pc.add(held.column(at), 1))
    pq.write_table(moved, file)


def move_in_puffin(path: Path) -> None:
    """Have a deletion vector name the next rows, in as many bytes."""
    file = deletes(path, "*.puffin")
    data = file.read_bytes()
    vector = unframe_vector(data[len(MAGIC) :], "x")
    framed = frame_vector(encode_vector(decode_vector(vector, "x") + 1))
    assert len(framed) == len(frame_vector(vector))
    file.write_bytes(MAGIC + framed + data[len(MAGIC) + len(framed) :])


def move_in_database(path: Path) -> None:
    with closing(sqlite3.connect(database_of(path))) as database:
        # twice, as a position may be there already
        database.execute("UPDATE hudi_deleted_rows SET position = -position - 1")
        database.execute("UPDATE hudi_deleted_rows SET position = -position")
        database.commit()


def by_polars(path: Path) -> Iterator[Mapping[str, Any]]:
    yield from pl.scan_delta(str(path)).collect().to_dicts()


def by_pyiceberg(path: Path) -> Iterator[Mapping[str, Any]]:
    yield from StaticTable.from_metadata(str(path)).scan().to_arrow().to_pylist()


@dataclass(frozen=True)
class Kind:
    """A format, its reader, and how other rows become those that it has deleted."""

    format: str
    read: Callable[[Path], Any]
    move: Callable[[Path], None]
    version: str | None = None

    def __str__(self) -> str:
        return f"{self.format}{self.version or ''}"

    def make(self, path: Path) -> hudi.Table:
        """A table of ten rows, of which the first, and one more, are dead."""
        options = OPTIONS | ({} if self.version is None else {VERSION: self.version})
        table = new_table(
            path,
            SCHEMA,
            options,
            table_type="MERGE_ON_READ",
            format=self.format,
            partition_by=None,
        )
        table.insert(rows(*"abcdefghij", part="p", ts=1))
        table.delete(rows("a", "e", part="p", ts=1))
        return table


KINDS: Final = (
    Kind("delta", by_polars, move_in_log),
    Kind("iceberg", by_pyiceberg, move_in_parquet, "2"),
    Kind("iceberg", by_pyiceberg, move_in_puffin, "3"),
    Kind("sql", rows_of, move_in_database),
)


def keys(found: Any) -> str:
    return "".join(sorted(one["id"] for one in found))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_other_rows_than_those_of_the_logs(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = kind.make(path)
    assert keys(kind.read(path)) == "bcdfghij"
    assert table.validate().is_valid
    kind.move(path)
    assert keys(kind.read(path)) == "acdeghij"
    opened = hudi.Table.open(str(path))
    [file] = [one.base_file.path for one in opened.file_slices() if one.base_file]
    [found] = opened.validate().differences
    assert (found.source, found.subject) == (Source.FORMAT, f"file {file}")
    assert found.found == "2 rows deleted; 4 positions differ: 2 missing, 2 too many"
    assert str(found.expected).startswith(
        "2 rows deleted, as its log files say; `hudi table repair`"
    )
    assert opened.repair().left == ()
    assert hudi.Table.open(str(path)).validate().is_valid
    assert keys(kind.read(path)) == "bcdfghij"


def test_the_format_that_differs_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t"
    Kind("iceberg,delta", by_polars, move_in_log).make(path)
    assert hudi.Table.open(str(path)).validate().is_valid
    move_in_log(path)
    [found] = hudi.Table.open(str(path)).validate().differences
    assert found.subject.endswith(" in delta")


@pytest.mark.parametrize("pattern", ["*.position-deletes", "*.puffin"])
def test_positions_that_are_gone_are_found(pattern: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    version = "3" if pattern == "*.puffin" else "2"
    Kind("iceberg", by_pyiceberg, move_in_puffin, version).make(path)
    deletes(path, pattern).unlink()
    [found] = hudi.Table.open(str(path)).validate().differences
    assert (found.source, found.subject) == (Source.FORMAT, "deleted rows of 1 file")
    assert str(found.expected).endswith("rebuilds it from the timeline.")


# --- counts, ranges and plans ---------------------------------------------------------------------

NUMBERS: Final = pa.schema(
    [("id", pa.string()), ("part", pa.string()), ("n", pa.int64()), ("note", pa.string())]
)
EVERY_KIND: Final = (Kind("native", by_polars, move_in_log), *KINDS)
TABLE: Final = table_name("lake", "numbers")


def numbered(part: str, *given: int) -> pa.Table:
    """Rows by their numbers; the note of the first one is null, and of no other."""
    return pa.Table.from_pylist(
        [
            {"id": f"{part}{n}", "part": part, "n": n, "note": None if n == 1 else f"note {n}"}
            for n in given
        ],
        NUMBERS,
    )


@pytest.fixture(params=EVERY_KIND, ids=str)
def counted(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Kind, hudi.Table]:
    """Numbers from 1 to 9 in ``a``, of which 2 to 8 are live, and none that is live in ``b``."""
    kind: Kind = request.param
    options = OPTIONS | ({} if kind.version is None else {VERSION: kind.version})
    table = hudi.Table.create(
        tmp_path / "t",
        NUMBERS,
        record_key="id",
        partition_by="part",
        format=kind.format,
        table_type="MERGE_ON_READ",
        options={**options, "hoodie.table.merge-on-read.mode": "split"},
    )
    table.insert(pa.concat_tables([numbered("a", *range(1, 10)), numbered("b", 1, 2)]))
    table.upsert(numbered("a", 5))
    table.delete(numbered("a", 1, 9))
    table.delete(numbered("b", 1, 2))
    return kind, hudi.Table.open(table.path)


FILTERS: Final[Mapping[str, tuple[Any, int]]] = {
    "the greatest": ([("n", ">", 8)], 0),
    "the least": ([("n", "<", 2)], 0),
    "nulls": (pc.field("note").is_null(), 0),
    "no nulls": (pc.field("note").is_valid(), 7),
    "a dead partition": ([("part", "=", "b")], 0),
    "a live partition": ([("part", "=", "a")], 7),
    "an updated row": ([("n", "=", 5)], 1),
    "all but one": ([("n", "!=", 5)], 6),
}


def test_counts_are_those_of_live_rows(counted: tuple[Kind, hudi.Table]) -> None:
    _, table = counted
    assert (table.count(), table.scan().count_rows()) == (7, 7)
    assert table.scan().polars().select(pl.len()).collect().item() == 7
    for name, (condition, wanted) in FILTERS.items():
        assert table.count(condition) == wanted, name
        assert table.to_arrow("id", condition).num_rows == wanted, name


def test_trino_plans_and_counts_live_rows(counted: tuple[Kind, hudi.Table]) -> None:
    _, table = counted
    service = TrinoService(hudi.Connector(), {TableName("lake", "numbers"): table.path})

    def rows_by(client: Any, columns: list[str], wanted: Any = None) -> list[Any]:
        splits = all_splits(client, TABLE, wanted)
        return [row for one in splits for row in rows_of_split(client, one, columns)]

    with client_of(service) as client:
        assert sorted(rows_by(client, ["n"])) == [(n,) for n in range(2, 9)]
        assert rows_by(client, []) == [()] * 7
        for low, high, wanted in ((9, 20, 0), (0, 1, 0), (5, 5, 1), (2, 8, 7)):
            found = rows_by(client, ["n"], domain("n", between("bigint", low, high)))
            assert len([one for one in found if low <= one[0] <= high]) == wanted


def test_other_readers_count_live_rows(
    counted: tuple[Kind, hudi.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")  # not the plug-in that may be missing
    kind, table = counted
    path = Path(table.path)
    if kind.format == "delta":
        lazy = pl.scan_delta(str(path))
        builder = QueryBuilder().register("t", DeltaTable(str(path)))
        asked = builder.execute("select count(*) as c, min(n) as l, max(n) as h from t").read_all()
        assert pa.table(asked).to_pylist() == [{"c": 7, "l": 2, "h": 8}]
    elif kind.format == "iceberg":
        static = StaticTable.from_metadata(str(path))
        assert static.scan().count() == 7
        found = static.inspect.partitions().to_pylist()
        dead = sum(one["position_delete_record_count"] for one in found)
        assert sum(one["record_count"] for one in found) - dead == 7
        current = static.current_snapshot()
        assert current is not None
        assert current.summary is not None
        totals = (current.summary["total-records"], current.summary["total-position-deletes"])
        assert int(totals[0] or 0) - int(totals[1] or 0) == 7
        lazy = pl.scan_iceberg(static)
    elif kind.format == "sql":
        lazy = pl.LazyFrame(list(rows_of(path)))
        query = "SELECT sum(row_count) FROM hudi_files WHERE added IS NOT NULL AND removed IS NULL"
        with closing(sqlite3.connect(database_of(path))) as database:
            [[stored]] = database.execute(query)
            [[dead]] = database.execute("SELECT count(*) FROM hudi_deleted_rows")
        assert stored - dead == 7
    else:
        lazy = pl.LazyFrame(by_hudi_rs(path))
    seen = lazy.select(pl.len(), low=pl.col("n").min(), high=pl.col("n").max()).collect()
    assert seen.to_dicts() == [{"len": 7, "low": 2, "high": 8}]
    for bounds, wanted in (((9, 20), 0), ((0, 1), 0), ((5, 5), 1)):
        assert lazy.filter(pl.col("n").is_between(*bounds)).collect().height == wanted
    assert lazy.filter(pl.col("note").is_null()).collect().height == 0
