"""Files and column bounds of a table, by the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import ColumnElement, Select, Text, and_, case, cast, func, select, true

from hudi_core.spi import (
    CorruptMetadataError,
    FileColumns,
    FileIndex,
    FileStatus,
    MetaClientView,
    NamedFile,
    PartitionPath,
    StatedColumn,
    ValueRanges,
)
from hudi_core.spi.files import Positions, bounds_to_array
from hudi_sql_format.bounds import bounds_from, kind_of, require_stored, store_of
from hudi_sql_format.database import Database
from hudi_sql_format.files import is_split
from hudi_sql_format.state import require_head
from hudi_sql_format.tables import BOUNDS, DELETED, FILES

_FEW: Final = 500
"""Partitions, or files, that a query names; of more, all are asked for and some are left out."""
_SEPARATOR: Final = "/"
"""No name of a file has one."""
_UNKNOWN: Final = "?"
_FLAG: Final = case(
    (BOUNDS.c.null_count == 0, "v"),
    (BOUNDS.c.null_count >= BOUNDS.c.value_count, "n"),
    else_=_UNKNOWN,
)
"""What is known of nulls in a column: there are none, there is nothing else, or neither."""
_NO_NULLS, _NOTHING_BUT_NULLS = ord("v"), ord("n")
Flags = npt.NDArray[np.uint8]


class SqlLister(FileIndex):
    """Lists the files that the database has.

    Those of every state that a clean has left.
    """

    def __init__(self, meta_client: MetaClientView, database: Database) -> None:
        self._client, self._database = meta_client, database
        self._listed: tuple[FileColumns, pa.Int64Array] | None = None
        self._named: Mapping[str, int] = {}
        self._version = 0

    def list_partitions(self) -> Sequence[PartitionPath]:
        """Every partition path, sorted; ``[""]`` for a table without partitions."""
        if not self._client.config.partition_fields:
            return [PartitionPath("")]
        with self._database.reading() as connection:
            head = require_head(connection, self._database)
            paths = connection.execute(_distinct_partitions(head.id)).scalars().all()[:-1]
        self._require_safe(pa.array(paths, pa.string()))
        return sorted(PartitionPath(one) for one in paths)

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        """The files of each partition, those of former states included."""
        return self.list_columns(list(dict.fromkeys(partitions))).by_partition()

    def list_columns(self, partitions: Sequence[PartitionPath]) -> FileColumns:
        """The files of some partitions as columns, by one query.

        It has one row for each partition.
        """
        wanted = list(dict.fromkeys(partitions))
        query = (
            select(FILES.c.partition_path, _joined(FILES.c.name), _joined(FILES.c.size_in_bytes))
            .add_columns(_joined(FILES.c.id))
            .group_by(FILES.c.partition_path)
        )
        with self._database.reading() as connection:
            head = require_head(connection, self._database)
            query = query.where(FILES.c.table_id == head.id, _in_some(wanted))
            rows = {row[0]: row for row in connection.execute(query)}
        found = [rows[one] for one in wanted if one in rows]
        names = _parted([row[1] for row in found])
        sizes, ids = (self._numbers(_parted([row[at] for row in found]).flatten()) for at in (2, 3))
        counts = np.zeros(len(wanted), np.int64)
        counts[[at for at, one in enumerate(wanted) if one in rows]] = names.value_lengths()
        folders = pa.array(wanted, pa.string())
        self._require_safe(folders)
        if not len(names.flatten()) == len(sizes) == len(ids):
            raise CorruptMetadataError(self._database.location, "a file has a path as its name")
        files = FileColumns.of_names(
            folders,
            np.repeat(np.arange(len(wanted)), counts),
            names.flatten(),
            np.asarray(sizes, np.int64),
        )
        self._listed = files, ids
        return files

    def file_ranges(self, files: FileColumns, column: str, kind: pa.DataType) -> ValueRanges | None:
        """Ranges over the rows of each file; ``None`` for an unknown column."""
        number, word = self._client.schema.field_ids().get(column), kind_of(kind)
        if number is None or word is None:
            return None
        ids = self._ids(files)
        try:
            low, high, flags = self._bounds(number, word, kind, ids)
        except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise CorruptMetadataError(
                self._database.location, f"a bound of the column {column} is damaged: {error}"
            ) from error
        return ValueRanges(low, high, flags != _NO_NULLS, flags != _NOTHING_BUT_NULLS)

    def _ids(self, files: FileColumns) -> pa.Int64Array:
        """Numbers of files, null where the database knows none."""
        if self._listed is None or files is not self._listed[0]:
            paths = files.paths()
            known = None if self._listed is None else self._listed[0].paths()
            if known is None or not pc.all(pc.is_in(paths, value_set=known)).as_py():
                folders = [PartitionPath(one) for one in files.partitions.to_pylist()]
                known = self.list_columns(folders).paths()
            listed = self._listed
            if listed is not None:
                return listed[1].take(_places(paths, known))
        return pa.nulls(len(files), pa.int64()) if self._listed is None else self._listed[1]

    def _bounds(
        self, number: int, word: str, kind: pa.DataType, ids: pa.Int64Array
    ) -> tuple[pa.Array, pa.Array, Flags]:
        """Bounds of one column and what is known of nulls."""
        store = store_of(word)
        ends = BOUNDS.c[f"low_{store}"], BOUNDS.c[f"high_{store}"]
        is_joined = store == "number" and len(ids) > _FEW
        texts = [_joined(func.coalesce(cast(one, Text), "")) for one in ends]
        one_text = (_joined(BOUNDS.c.file_id), *texts, func.aggregate_strings(_FLAG, ""))
        with self._database.reading() as connection:
            head = require_head(connection, self._database)
            query = select(*(one_text if is_joined else (BOUNDS.c.file_id, *ends, _FLAG))).where(
                BOUNDS.c.table_id == head.id,
                BOUNDS.c.field_id == number,
                BOUNDS.c.kind == word,
            )
            if len(ids) <= _FEW:
                query = query.where(BOUNDS.c.file_id.in_(ids.drop_null().to_pylist()))
            rows = connection.execute(query).all()
        if is_joined:
            known, low, high = (self._numbers(_parted([one]).flatten()) for one in rows[0][:3])
            flag = rows[0][3] or ""
        else:
            numbers, low, high, some = zip(*rows, strict=True) if rows else ((),) * 4
            known, flag = pa.array(numbers, pa.int64()), "".join(some)
        # of a file that is not among them everything is unknown
        flags = np.frombuffer(f"{flag}{_UNKNOWN}".encode(), np.uint8)
        if is_joined and word == "boolean":
            low, high = low.to_pylist(), high.to_pylist()
        arrays = [bounds_to_array(bounds_from(one, word), kind) for one in (low, high)]
        if not len(known) == len(flags) - 1 == len(arrays[0]) == len(arrays[1]):
            raise ValueError("it is not one for each file")
        if ids.equals(known):
            return arrays[0], arrays[1], flags[:-1]
        at = _places(ids, known)
        low, high = (one.take(at) for one in arrays)
        return low, high, flags[pc.fill_null(at, len(known)).to_numpy(zero_copy_only=False)]

    def _numbers(self, texts: pa.StringArray) -> pa.Int64Array:
        """Numbers from strings, null where these are empty."""
        try:
            return pc.if_else(pc.equal(texts, ""), None, texts).cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise CorruptMetadataError(
                self._database.location, f"a number is damaged: {error}"
            ) from error

    def named_files(self) -> Iterator[NamedFile]:
        """Files of the present state, with their statistics."""
        paths = {number: path for path, number in self._client.schema.field_ids().items()}
        fields = {number: self._client.schema.field(path) for number, path in paths.items()}
        kinds = {number: kind_of(one.type) for number, one in fields.items() if one is not None}
        present = and_(FILES.c.added.is_not(None), FILES.c.removed.is_(None))
        deleted: dict[int, int] = {}
        with self._database.reading() as connection:
            head = require_head(connection, self._database)
            of_table = FILES.c.table_id == head.id
            files = connection.execute(
                select(
                    FILES.c.id,
                    FILES.c.partition_path,
                    FILES.c.name,
                    FILES.c.size_in_bytes,
                    FILES.c.row_count,
                ).where(of_table, present)
            ).all()
            bounds = (
                connection.execute(
                    select(BOUNDS)
                    .join(
                        FILES,
                        and_(BOUNDS.c.table_id == FILES.c.table_id, BOUNDS.c.file_id == FILES.c.id),
                    )
                    .where(of_table, present)
                )
                .mappings()
                .all()
            )
            if is_split(self._client):
                counted = (
                    select(DELETED.c.file_id, func.count().label("dead"))
                    .where(DELETED.c.table_id == head.id)
                    .group_by(DELETED.c.file_id)
                )
                deleted = {one.file_id: one.dead for one in connection.execute(counted)}
        self._version = head.version
        self._named = {f"{one[1]}/{one[2]}" if one[1] else one[2]: one[0] for one in files}
        stated: dict[int, dict[str, StatedColumn]] = {}
        for row in bounds:
            number = row["field_id"]
            if number in paths and row["kind"] == kinds.get(number):
                stated.setdefault(row["file_id"], {})[paths[number]] = self._stated(row)
        for path, (file, _, _, size, rows) in zip(self._named, files, strict=True):
            dead = deleted.get(file, 0)
            yield NamedFile(path, size, rows, stated.get(file, {}), deleted_rows=dead)

    def deleted_positions(self, paths: Sequence[str]) -> Mapping[str, Positions]:
        """Positions in the state whose files were named last."""
        ids = {self._named[path]: path for path in paths if path in self._named}
        known, found = [*ids], defaultdict[str, list[int]](list)
        with self._database.reading() as connection:
            head = require_head(connection, self._database)
            of_table = and_(DELETED.c.table_id == head.id, DELETED.c.deleted <= self._version)
            query = select(DELETED.c.file_id, DELETED.c.position).where(of_table)
            for at in range(0, len(known), _FEW):
                some = DELETED.c.file_id.in_(known[at : at + _FEW])
                for file, position in connection.execute(query.where(some)):
                    found[ids[file]].append(position)
        return {path: np.array(sorted(own), np.int64) for path, own in found.items()}

    def _stated(self, row: Mapping[Any, Any]) -> StatedColumn:
        store = store_of(row["kind"])
        ends = [row[f"low_{store}"], row[f"high_{store}"]]
        try:
            low, high = bounds_from([require_stored(one, store) for one in ends], row["kind"])
        except (TypeError, ValueError, ArithmeticError) as error:
            raise CorruptMetadataError(
                self._database.location, f"a bound is damaged: {error}"
            ) from error
        return StatedColumn(low, high, row["null_count"])

    def _require_safe(self, partitions: pa.StringArray) -> None:
        steps = pc.match_substring_regex(partitions, r"(^|/)\.\.(/|$)|^/")
        if pc.any(steps).as_py():
            raise CorruptMetadataError(
                self._database.location, "a partition leads out of the table"
            )


def _joined(column: ColumnElement[Any]) -> ColumnElement[str]:
    """All values of a group as one string.

    That costs a third of what a row for each value costs."""
    text = column if isinstance(column.type, Text) else cast(column, Text)
    return func.aggregate_strings(text, _SEPARATOR)


def _parted(texts: Sequence[str | None]) -> pa.ListArray:
    return pc.split_pattern(pa.array([one for one in texts if one is not None], pa.string()), "/")


def _places(items: pa.Array, known: pa.Array) -> pa.Array:
    """Place of each item, null for an unknown one."""
    return pc.if_else(items.is_null(), None, pc.index_in(items, value_set=known))


def _in_some(partitions: Sequence[str]) -> ColumnElement[bool]:
    return FILES.c.partition_path.in_(partitions) if len(partitions) <= _FEW else true()


def _distinct_partitions(table_id: int) -> Select[Any]:
    """Every partition, and a null behind the last one.

    Each is found behind the one before it: the index is not read as a whole."""
    least = select(func.min(FILES.c.partition_path).label("path"))
    one = least.where(FILES.c.table_id == table_id).cte("partitions", recursive=True)
    behind = least.where(FILES.c.table_id == table_id, FILES.c.partition_path > one.c.path)
    more = select(behind.scalar_subquery()).where(one.c.path.is_not(None))
    return select(one.union_all(more).c.path)
