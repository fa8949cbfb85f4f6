"""The tables of the matrix: made once per layout, copied for every cell.

A table as the operations find it has three commits and several file groups, and holds keys more
than once.
"""

from __future__ import annotations

import copy
import itertools
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.fs as pafs

import hudi_core as hudi
from hudi_core.model.instant import Instant
from hudi_core.services.opening import open_table
from tests.foreign import by_hudi_rs
from tests.interop.matrix_batches import DELETED, FIRST, SECOND, THIRD, batch_rows
from tests.interop.matrix_cells import INDEXES, Cell
from tests.interop.matrix_layouts import MATRIX_COLUMNS, Row
from tests.interop.matrix_model import Counts, Expected, Group, Model

FAST: Final = {"hoodie.fs.fsync": "false"}
NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True)
class Recorded:
    """What a commit says it did."""

    instant: Instant
    inserted: int
    updated: int
    deleted: int


@dataclass
class Copy:
    """A table of one cell with its model, and how the cell's engine takes rows."""

    cell: Cell
    uri: str
    given: Mapping[str, str]
    model: Model
    spark: Any
    foreign: Mapping[str, str]

    def table(self) -> hudi.Table:
        return hudi.Table.open(self.uri, {**self.given, **FAST, **INDEXES[self.cell.index]})

    def write(self, operation: str, data: Any, options: Mapping[str, str] = NOTHING) -> Any:
        """Run an operation on rows; return what it says it did."""
        if self.cell.engine != "source":
            return getattr(self.table(), operation)(data, options=options)
        given = {
            **self.given,
            **FAST,
            **INDEXES[self.cell.index],
            **options,
            "hoodie.datasource.write.operation": operation,
        }
        data.write.format("hudi").options(**given).mode("append").save(self.uri)
        return self._recorded()

    def delete_partitions(self, row: Row, folder: str) -> Any:
        """Delete the partition of a row, and another one by its path."""
        if self.cell.engine != "source":
            values = {name: row[name] for name in self.cell.keys.partition}
            return self.table().delete_partitions([values, folder])
        both = f"{self.cell.keys.folder(row)},{folder}"
        named = {"hoodie.datasource.write.partitions.to.delete": both}
        before = self.found()
        recorded = self.write("delete_partition", self.data([row]), named)
        # the commit names the file groups it replaces, and counts no rows of theirs
        left = self.found()
        gone = [group for name, group in before.items() if name not in left]
        return replace(recorded, deleted=sum(len(group.rows) for group in gone))

    def _recorded(self) -> Recorded:
        """Return what the last commit says; Spark's own door returns nothing."""
        opened = open_table(self.uri, self.given)
        instant = opened.timeline().completed_writes()[-1]
        stats = opened.client.read_commit(instant).stats
        return Recorded(
            instant,
            sum(stat.num_inserts or 0 for stat in stats),
            sum(stat.num_update_writes or 0 for stat in stats),
            sum(stat.num_deletes or 0 for stat in stats),
        )

    def data(self, batch: list[Row], columns: list[str] | None = None) -> Any:
        """Return rows as the engine takes them; on Spark they are two tasks."""
        schema = MATRIX_COLUMNS
        if DELETED in batch[0]:
            schema = schema.append(pa.field(DELETED, pa.bool_()))
        table = pa.Table.from_pylist(batch, schema)
        if columns is not None:
            table = table.select(columns)
        return table if self.cell.engine == "local" else self.spark.createDataFrame(table)

    def tasks(self, batch: list[Row]) -> list[list[Row]]:
        """Return the rows of every task that writes."""
        if self.cell.engine != "spark":
            return [batch]
        half = len(batch) // 2
        return [batch[:half], batch[half:]]

    def found(self) -> dict[str, Group]:
        """Return the file groups that hudi-rs sees rows of, by id."""
        groups: dict[str, Group] = {}
        for row in by_hudi_rs(self.uri, storage=self.foreign):
            group = Group(row["_hoodie_partition_path"], row["_hoodie_file_name"], [])
            groups.setdefault(group.file_id, group).rows.append(row)
        return groups

    def check(self, expected: Expected, result: Any) -> None:
        """Compare what an operation left with what it was expected to leave."""
        instant = result.instant.requested_time
        counts: Counts = (result.inserted, result.updated, result.deleted)
        assert counts == expected.counts
        found = self.found()
        before = {
            row["mark"]: row["_hoodie_commit_seqno"]
            for group in self.model.groups.values()
            for row in group.rows
        }
        names = {group.file_name for group in self.model.groups.values()}
        foretold = self.model.foretold(expected, found, instant)
        assert {group.file_id for group in foretold} == set(found)
        numbers = set()
        for group in foretold:
            theirs = found[group.file_id]
            assert group.file_name in names or group.file_name.endswith(f"_{instant}.parquet")
            for row, other in zip(group.rows, theirs.rows, strict=False):
                row["_hoodie_commit_seqno"] = other["_hoodie_commit_seqno"]
                if row["_hoodie_commit_time"] == instant:
                    assert other["_hoodie_commit_seqno"].startswith(f"{instant}_")
                else:
                    assert other["_hoodie_commit_seqno"] == before[row["mark"]]
                numbers.add(other["_hoodie_commit_seqno"])
            assert theirs == group
        assert len(numbers) == sum(len(group.rows) for group in foretold)


@dataclass
class Shelf:
    """Tables to copy, by what they differ in.

    ``native`` tells whether a table is written by the engine and in the store of the cells that
    start from it; otherwise in this process and on disk, which is faster.
    """

    folder: Path
    native: bool
    made: dict[tuple[object, ...], tuple[str, Model]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def copy(self, cell: Cell, spark: Any, s3: Any) -> Copy:
        """Return a table as the operation of the cell finds it."""
        origin = cell if self.native else replace(cell, engine="local", store="disk")
        kind = (cell.layout, cell.version, cell.buckets, origin.place)
        if kind not in self.made:
            self.made[kind] = _written(self._at(origin, spark, s3))
        source, model = self.made[kind]
        made = self._at(cell, spark, s3)
        if cell.store == "disk":
            shutil.copytree(source, made.uri)
        elif origin.store == "disk":
            _upload(source, made.uri, s3.filesystem)
        else:
            _copy_objects(source, made.uri, s3.filesystem)
        made.model = copy.deepcopy(model)
        made.model.is_global, made.model.moves = cell.is_global, cell.moves
        return made

    def _at(self, cell: Cell, spark: Any, s3: Any) -> Copy:
        name = f"table{next(self._numbers)}"
        model = Model(cell.keys, buckets=cell.buckets)
        if cell.store == "disk":
            return Copy(cell, str(self.folder / name), {}, model, spark, {})
        return Copy(cell, s3.new_root(name), s3.given, model, spark, s3.rust)


def discard(made: Copy, s3: Any) -> None:
    """Remove a table that has been looked at."""
    if made.cell.store == "disk":
        shutil.rmtree(made.uri)
    else:
        s3.filesystem.delete_dir(made.uri.removeprefix("s3://"))


def _written(made: Copy) -> tuple[str, Model]:
    cell = made.cell
    hudi.Table.create(
        made.uri,
        MATRIX_COLUMNS,
        name="matrix",
        record_key=cell.keys.key,
        partition_by=cell.keys.partition or None,
        ordering_field="ts",
        options={
            **made.given,
            **cell.keys.options,
            **(INDEXES["BUCKET"] if cell.buckets else {}),
            "hoodie.write.table.version": cell.version,
        },
    )
    for name, batch in (("a", FIRST), ("b", SECOND)):
        some = batch_rows(cell.keys, batch, name)
        result = made.write("bulk_insert", made.data(some))
        made.check(made.model.bulk_insert(made.tasks(some), False), result)
    some = batch_rows(cell.keys, THIRD, "c")
    made.check(made.model.insert(some), made.write("insert", made.data(some)))
    return made.uri, made.model


def _upload(source: str, target: str, filesystem: pafs.FileSystem) -> None:
    for file in Path(source).rglob("*"):
        if file.is_file():
            name = f"{target.removeprefix('s3://')}/{file.relative_to(source)}"
            with filesystem.open_output_stream(name) as stream:
                stream.write(file.read_bytes())


def _copy_objects(source: str, target: str, filesystem: pafs.FileSystem) -> None:
    source, target = source.removeprefix("s3://"), target.removeprefix("s3://")
    for found in filesystem.get_file_info(pafs.FileSelector(source, recursive=True)):
        if found.is_file:
            filesystem.copy_file(found.path, target + found.path.removeprefix(source))
