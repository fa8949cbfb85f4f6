"""The files that a version of a Delta log names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from delta_format.change import NewFile
from delta_format.log import Head
from delta_format.paths import is_below, plain, spelled
from delta_format.vectors import Vector, identity_of
from hudi_core.spi import (
    BaseFileName,
    ColumnStats,
    FileGroupId,
    FileStatus,
    NamedFile,
    PartitionPath,
    StatedColumn,
    ValueRanges,
)

_LOW: Final = "min."
_HIGH: Final = "max."
_NULLS: Final = "null_count."
_PARTITION: Final = "partition."
_BELOW_MILLISECOND: Final = timedelta(microseconds=999)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file that a version names.

    ``path`` is relative to the table, as the store names it; ``spelling`` is as in the log.
    ``partition_values`` are as the log keeps them. ``vector`` takes rows out of it.
    """

    path: str
    spelling: str
    size: int
    partition_values: dict[str, str | None]
    vector: Vector | None = None

    @property
    def identity(self) -> tuple[str, str | None]:
        """What readers of the log take for one file."""
        return self.spelling, identity_of(self.vector)

    @property
    def deleted_rows(self) -> int:
        """How many rows the vector takes out."""
        return 0 if self.vector is None else self.vector.cardinality

    @property
    def partition_path(self) -> PartitionPath:
        """The folder that the file is in."""
        return PartitionPath(self.path.rpartition("/")[0])

    @property
    def group(self) -> FileGroupId | None:
        """The file group; ``None`` for a file that Hudi did not name."""
        name = BaseFileName.parse(self.path.rpartition("/")[2])
        return None if name is None else FileGroupId(self.partition_path, name.file_id)

    @property
    def status(self) -> FileStatus:
        """The file as a listing gives it."""
        return FileStatus(self.path, self.size)


class Snapshot:
    """The files of one version, kept as columns.

    ``head`` is read now, and free for others afterwards.
    """

    def __init__(self, head: Head) -> None:
        with head.reading():
            self._actions = pa.table(head.table.get_add_actions(flatten=True))
        self._places, self._vectors = head.places, head.vectors

    @cached_property
    def _file_ids(self) -> pa.ChunkedArray:
        """File ids of the files, whatever the encoding of paths."""
        names = pc.replace_substring_regex(self._actions.column("path"), r"^.*/", "")
        return pc.replace_substring_regex(names, r"_.*$", "")

    @cached_property
    def _paths(self) -> pa.StringArray:
        """The path of each file, as the store names it."""
        return pa.array(map(self._path, self._actions.column("path").to_pylist()), pa.string())

    def _path(self, spelling: str) -> str:
        """A file's logical path.

        Of one that is not the table's, the path below the root."""
        path = plain(spelling)
        if self._places.is_plain or not is_below(path):
            return path
        return self._places.logical(path) or path

    def __len__(self) -> int:
        return int(self._actions.num_rows)

    def files(self) -> Iterator[LiveFile]:
        """Yield every file."""
        yield from self._files(self._actions)

    def _files(self, actions: pa.Table) -> Iterator[LiveFile]:
        names = [name for name in actions.column_names if name.startswith(_PARTITION)]
        for row in actions.select(["path", "size_bytes", *names]).to_pylist():
            values = {name.removeprefix(_PARTITION): _text(row[name]) for name in names}
            spelling = row["path"]
            vector = self._vectors.by_file.get(spelling)
            yield LiveFile(self._path(spelling), spelling, row["size_bytes"], values, vector)

    def of_groups(self, groups: Collection[FileGroupId]) -> dict[FileGroupId, list[LiveFile]]:
        """Return the files of some file groups.

        Groups without any are left out.
        """
        ids = pa.array(sorted({group.file_id for group in groups}), pa.string())
        near = self._actions.filter(pc.is_in(pc.cast(self._file_ids, pa.string()), value_set=ids))
        found: dict[FileGroupId, list[LiveFile]] = {}
        for file in self._files(near):
            if file.group in groups and file.group is not None:
                found.setdefault(file.group, []).append(file)
        return found

    def at_paths(self, paths: Collection[str]) -> list[LiveFile]:
        """Return the files of some paths, as the store names them."""
        return [*self._files(self._at_paths(paths))]

    def paths(self) -> frozenset[str]:
        """Return the path of every file."""
        return frozenset(self._paths.to_pylist())

    def named_files(self) -> Iterator[NamedFile]:
        """Yield every file with what the log says of it."""
        table = self._actions
        leaves = _leaves(table)
        for row in table.to_pylist():
            vector = self._vectors.by_file.get(row["path"])
            path, is_usual = self._path(row["path"]), row["path"] == spelled(plain(row["path"]))
            yield NamedFile(
                path,
                row["size_bytes"],
                row["num_records"],
                {leaf: _widened(one, row, leaf) for leaf, one in _stated(row, leaves).items()},
                None if is_usual else row["path"],
                0 if vector is None else vector.cardinality,
            )

    def ranges(self, paths: pa.StringArray, column: str, kind: pa.DataType) -> ValueRanges | None:
        """Ranges of a column in some files.

        Unknown in those that the version does not name.

        ``paths`` are as the store names them; ``column`` is dotted and ``kind`` its type in the
        table's schema. ``None`` where the version has no statistics of it.
        """
        table = self._actions
        if not {f"{_LOW}{column}", f"{_HIGH}{column}"} <= {*table.column_names}:
            return None
        places = pc.index_in(paths, value_set=self._paths)

        def of_files(name: str) -> pa.Array:
            found = table[name] if name in table.column_names else pa.nulls(len(table), pa.int64())
            return found.take(places)

        try:
            low, high = (pc.cast(of_files(f"{side}{column}"), kind) for side in (_LOW, _HIGH))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        if pt.is_timestamp(kind):
            # Spark leaves out what is below a millisecond
            high = pc.add(high, pa.scalar(_BELOW_MILLISECOND, pa.duration(kind.unit)))
        nulls, rows = of_files(f"{_NULLS}{column}"), of_files("num_records")
        may_be_null, may_have_value = (
            pc.fill_null(pc.not_equal(nulls, count), True).to_numpy(zero_copy_only=False)
            for count in (0, rows)
        )
        return ValueRanges(_whole(low), _whole(high), may_be_null, may_have_value)

    def described(self, paths: Collection[str]) -> tuple[NewFile, ...]:
        """Files of this version, as they may be added again.

        ``paths`` are as the store names them.
        """
        leaves = _leaves(self._actions)
        vectors = self._vectors.by_file
        rows = {self._path(row["path"]): row for row in self._at_paths(paths).to_pylist()}
        return tuple(
            _new_file(path, rows[path], leaves, vectors.get(rows[path]["path"])) for path in paths
        )

    def _at_paths(self, paths: Collection[str]) -> pa.Table:
        wanted = pa.array(sorted(paths), pa.string())
        ids = {path.rpartition("/")[2].partition("_")[0] for path in paths}
        near = self._actions.filter(
            pc.is_in(pc.cast(self._file_ids, pa.string()), pa.array(sorted(ids), pa.string()))
        )
        names = pa.array(map(self._path, near.column("path").to_pylist()), pa.string())
        found = near.filter(pc.is_in(names, value_set=wanted))
        if len(found) == len(paths):
            return found
        # names of others may be spelled in some way that has no such id
        return self._actions.filter(pc.is_in(self._paths, value_set=wanted))


def _whole(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _leaves(actions: pa.Table) -> frozenset[str]:
    """Leaf paths of the columns of which a version has statistics."""
    names = actions.column_names
    return frozenset(
        name.removeprefix(prefix)
        for prefix in (_LOW, _HIGH, _NULLS)
        for name in names
        if name.startswith(prefix)
    )


def _stated(row: Mapping[str, Any], leaves: Iterable[str]) -> dict[str, StatedColumn]:
    columns = {
        leaf: StatedColumn(
            _internal(row.get(f"{_LOW}{leaf}")),
            _internal(row.get(f"{_HIGH}{leaf}")),
            row.get(f"{_NULLS}{leaf}"),
        )
        for leaf in leaves
    }
    return {leaf: one for leaf, one in columns.items() if one != StatedColumn()}


def _widened(stated: StatedColumn, row: Mapping[str, Any], leaf: str) -> StatedColumn:
    """Bounds as readers take them: a timestamp is that of its millisecond."""
    high = row.get(f"{_HIGH}{leaf}")
    if not isinstance(high, datetime):
        return stated
    return replace(stated, high=_internal(high) + _BELOW_MILLISECOND // timedelta(microseconds=1))


def _new_file(
    path: str, row: Mapping[str, Any], leaves: Iterable[str], vector: Vector | None
) -> NewFile:
    rows = row["num_records"]
    columns = {
        leaf: ColumnStats(one.low, one.high, rows, one.null_count, 0, 0, 0)
        for leaf, one in _stated(row, leaves).items()
    }
    for name in row:
        if name.startswith(_PARTITION):
            value = _internal(row[name])
            nulls = rows if value is None else 0
            known = ColumnStats(value, value, rows, nulls, 0, 0, 0)
            columns[name.removeprefix(_PARTITION)] = known
    return NewFile(path, row["size_bytes"], rows, columns, vector, row["path"])


def _text(value: Any) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
    return str(value)


def _internal(value: Any) -> Any:
    """Return a bound in internal form."""
    match value:
        case datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            return (aware - _EPOCH) // timedelta(microseconds=1)
        case date():
            return (value - _EPOCH.date()).days
    return value
