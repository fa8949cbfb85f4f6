"""Histories of rows merged by Hudi-Spark, by this project, and by both in turn: equal rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.config.kinds import PayloadKind
from tests.jvm.capture_merging import commit_times, hudi_options, written_by_hudi, written_rows
from tests.jvm.engines import Engine
from tests.merging_histories import Kind, histories, kinds

DRAWN = histories(seed=7, keys=300)
WRITE_HANDLE = {"hoodie.write.merge.handle.class": "org.apache.hudi.io.HoodieWriteMergeHandle"}
"""Hudi's handle before 1.1, which merges each stored row, and takes the last of the batch."""
OURS = {"hoodie.metadata.enable": "false", "hoodie.fs.fsync": "false"}


def create(path: Path, kind: Kind, schema: pa.Schema) -> hudi.Table:
    options = {**OURS, **kind.options}
    return hudi.Table.create(str(path), schema, name="merged", record_key="id", options=options)


def written_by_us(path: Path, kind: Kind, batches: list[pa.Table]) -> hudi.Table:
    table = create(path, kind, batches[0].schema)
    for batch in batches:
        table.upsert(batch)
    return table


def left(rows: list[list[Any]], kind: Kind) -> list[list[Any]]:
    """Return rows as they are compared: in tables of version 8, partial updates also write rows
    again that nothing changes in."""
    is_anew = kind.version == 8 and kind.payload is PayloadKind.PARTIAL_UPDATE
    return [row[1:] for row in rows] if is_anew else rows


def counts(table: hudi.Table) -> list[list[int]]:
    """Return the rows that each commit wrote, inserted and updated; Hudi also counts deletes of
    keys that are not there."""
    client = table._session.opened.client
    return [
        [
            sum(getattr(stat, name) or 0 for stat in client.read_commit(instant).stats)
            for name in ("num_writes", "num_inserts", "num_update_writes")
        ]
        for instant in table.timeline.instants
    ]


def merging_properties(path: Path) -> dict[str, str]:
    """Return the stored properties that say how rows are merged."""
    lines = (path / ".hoodie" / "hoodie.properties").read_text(encoding="utf-8").splitlines()
    stored = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    words = ("merge", "payload", "partial", "ordering", "precombine")
    found = {name: text for name, text in stored.items() if any(word in name for word in words)}
    # in version 8 Hudi 1.2 uses the later name as well; 1.0 knows the former one only
    ordering = found.pop("hoodie.table.precombine.field", None)
    return found if ordering is None else {**found, "hoodie.table.ordering.fields": ordering}


@pytest.mark.parametrize("kind", kinds(), ids=str)
def test_the_same_history(hudi_spark: Engine, kind: Kind, tmp_path: Path) -> None:
    batches = DRAWN[kind.history]
    theirs = written_by_hudi(hudi_spark, tmp_path / "theirs", kind, batches)
    table = written_by_us(tmp_path / "ours", kind, batches)

    if left(theirs, kind) == theirs:
        assert counts(table) == counts(hudi.Table.open(str(tmp_path / "theirs")))
    assert merging_properties(tmp_path / "ours") == merging_properties(tmp_path / "theirs")
    ours = written_rows(hudi_spark.read(tmp_path / "ours"), commit_times(tmp_path / "ours"))
    assert left(ours, kind) == left(theirs, kind)


@pytest.mark.parametrize(
    "kind",
    [kind for kind in kinds() if kind.history in ("all", "living") and kind.ordering != "s.ts"],
    ids=str,
)
@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_both_in_turn(hudi_spark: Engine, kind: Kind, first: str, tmp_path: Path) -> None:
    batches = DRAWN[kind.history]
    expected = written_rows(
        written_by_us(tmp_path / "alone", kind, batches).to_arrow(),
        commit_times(tmp_path / "alone"),
    )
    path = tmp_path / "turns"
    if first == "ours":
        create(path, kind, batches[0].schema)
    for number, batch in enumerate(batches):
        if (number % 2 == 0) is (first == "ours"):
            hudi.Table.open(str(path), OURS).upsert(batch)
        else:
            hudi_spark.save(batch, path, hudi_options(kind))
    found = written_rows(hudi_spark.read(path), commit_times(path))
    assert left(found, kind) == left(expected, kind)
    assert left(written_rows(hudi.Table.open(str(path)).to_arrow(), commit_times(path)), kind) == (
        left(expected, kind)
    )


# --- several rows of one key ----------------------------------------------------------------------

ROWS = pa.schema(
    [("id", pa.int64()), ("ts", pa.int64()), ("v", pa.string()), ("_hoodie_is_deleted", pa.bool_())]
)
STORED = [(1, 5, "a", False), (1, 7, "b", False), (1, 6, "c", False), (2, 1, "x", False)]


Step = tuple[str, pa.Table, dict[str, str]]
"""An operation, its rows and its options."""


def some(*rows: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in rows], ROWS)


def outcomes(
    hudi_spark: Engine, path: Path, kind: Kind, steps: list[Step]
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return the rows that Hudi-Spark and this project leave of some steps."""
    ours = create(path / "ours", kind, ROWS)
    for operation, rows, options in steps:
        given = {"hoodie.datasource.write.operation": operation, **options}
        hudi_spark.save(rows, path / "theirs", {**hudi_options(kind), **given})
        own = {name: value for name, value in options.items() if name not in WRITE_HANDLE}
        getattr(ours, operation)(rows, options=own)
    names = ["id", "ts", "v"]
    return hudi_spark.values(path / "theirs", names), hudi_spark.values(path / "ours", names)


@pytest.mark.parametrize("kind", [Kind(8, None, "ts"), Kind(9, None, "ts"), Kind(9, None, None)])
@pytest.mark.parametrize(
    "row", [(1, 8, "n", False), (1, 6, "n", False), (1, 8, "n", True), (1, 6, "n", True)]
)
def test_several_stored_rows_of_one_key(
    hudi_spark: Engine, kind: Kind, row: tuple[Any, ...], tmp_path: Path
) -> None:
    steps: list[Step] = [("insert", some(*STORED), {}), ("upsert", some(row), WRITE_HANDLE)]
    theirs, ours = outcomes(hudi_spark, tmp_path, kind, steps)
    assert ours == theirs


def test_what_hudi_does_to_several_stored_rows_by_default(
    hudi_spark: Engine, tmp_path: Path
) -> None:
    """Since 1.1 it merges the first of a file and leaves the others, also of a deleted key."""
    gone = some((1, 8, "n", True))
    steps: list[Step] = [("insert", some(*STORED), {}), ("upsert", gone, {})]
    theirs, ours = outcomes(hudi_spark, tmp_path, Kind(9, None, "ts"), steps)
    assert theirs == [(1, 6, "c"), (1, 7, "b"), (2, 1, "x")]
    assert ours == [(2, 1, "x")]


@pytest.mark.parametrize("kind", [Kind(8, None, "ts"), Kind(9, None, "ts"), Kind(9, None, None)])
@pytest.mark.parametrize(
    ("known", "batch", "options"),
    [
        (True, [(1, 9, "p", False), (1, 7, "q", False)], WRITE_HANDLE),
        (True, [(1, 9, "p", False), (1, 3, "q", False)], WRITE_HANDLE),
        (True, [(1, 9, "p", False), (1, 7, "q", True)], WRITE_HANDLE),
        (True, [(3, 9, "p", False), (3, 7, "q", False)], WRITE_HANDLE),
        (True, [(3, 9, "p", False), (3, 7, "q", False)], {"hoodie.parquet.small.file.limit": "0"}),
        (False, [(3, 9, "p", False), (3, 7, "q", False)], {}),
        (False, [(3, 9, "p", True), (3, 7, "q", False)], {}),
    ],
)
def test_rows_of_one_key_that_are_not_combined(
    hudi_spark: Engine,
    kind: Kind,
    known: bool,
    batch: list[tuple[Any, ...]],
    options: dict[str, str],
    tmp_path: Path,
) -> None:
    uncombined = {"hoodie.combine.before.upsert": "false", **options}
    steps: list[Step] = [("upsert", some(*batch), uncombined)]
    if known:
        steps.insert(0, ("upsert", some((1, 5, "a", False), (2, 5, "b", False)), {}))
    theirs, ours = outcomes(hudi_spark, tmp_path, kind, steps)
    assert ours == theirs


@pytest.mark.parametrize("kind", [Kind(9, None, "ts"), Kind(9, None, None)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"hoodie.combine.before.insert": "true"},
        {"hoodie.merge.allow.duplicate.on.inserts": "false"},
        {
            "hoodie.merge.allow.duplicate.on.inserts": "false",
            "hoodie.combine.before.insert": "true",
        },
    ],
)
def test_inserts_of_known_and_repeated_keys(
    hudi_spark: Engine, kind: Kind, options: dict[str, str], tmp_path: Path
) -> None:
    batch = [(1, 4, "n", False), (1, 3, "m", False), (3, 2, "o", False), (3, 1, "k", False)]
    batch.append((4, 9, "d", True))
    known = some((1, 5, "a", False), (2, 5, "b", False))
    steps: list[Step] = [("insert", known, {}), ("insert", some(*batch), options)]
    theirs, ours = outcomes(hudi_spark, tmp_path, kind, steps)
    assert ours == theirs


def test_an_insert_deletes_nothing(hudi_spark: Engine, tmp_path: Path) -> None:
    """Where inserts update rows, Hudi also lets them delete those of the file that takes them."""
    options = {"hoodie.merge.allow.duplicate.on.inserts": "false"}
    known = some((1, 5, "a", False), (2, 5, "b", False))
    steps: list[Step] = [("insert", known, {}), ("insert", some((2, 9, "d", True)), options)]
    theirs, ours = outcomes(hudi_spark, tmp_path, Kind(9, None, "ts"), steps)
    assert theirs == [(1, 5, "a")]
    assert ours == [(1, 5, "a"), (2, 5, "b")]
