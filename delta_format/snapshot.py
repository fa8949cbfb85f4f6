"""The files that a version of a Delta log names."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from delta_format.log import Head
from hudi_core.spi import (
    BaseFileName,
    FileGroupId,
    FileStatus,
    NamedFile,
    PartitionPath,
    StatedColumn,
)

_LOW: Final = "min."
_HIGH: Final = "max."
_NULLS: Final = "null_count."
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file that a version names.

    Attributes
    ----------
    path
        Relative to the table, as it is: the log spells it with percent signs.
    size
        Bytes.
    partition_values
        Values of the partition columns, as the log keeps them.
    """

    path: str
    size: int
    partition_values: dict[str, str | None]

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
        """The file as a listing tells it."""
        return FileStatus(self.path, self.size)


@dataclass(frozen=True)
class Snapshot:
    """The files of one version; they stay columns until they are asked for."""

    head: Head

    @cached_property
    def _actions(self) -> pa.Table:
        with self.head.reading():
            return pa.table(self.head.table.get_add_actions(flatten=True))

    @cached_property
    def _file_ids(self) -> pa.ChunkedArray:
        """The file id of each file, which no encoding of its path changes."""
        names = pc.replace_substring_regex(self._actions.column("path"), r"^.*/", "")
        return pc.replace_substring_regex(names, r"_.*$", "")

    def __len__(self) -> int:
        return int(self._actions.num_rows)

    def files(self) -> Iterator[LiveFile]:
        """Yield every file."""
        yield from _files(self._actions)

    def of_groups(self, groups: Collection[FileGroupId]) -> dict[FileGroupId, list[LiveFile]]:
        """Return the files of some file groups; groups without any are left out."""
        ids = pa.array(sorted({group.file_id for group in groups}), pa.string())
        near = self._actions.filter(pc.is_in(pc.cast(self._file_ids, pa.string()), value_set=ids))
        found: dict[FileGroupId, list[LiveFile]] = {}
        for file in _files(near):
            if file.group in groups and file.group is not None:
                found.setdefault(file.group, []).append(file)
        return found

    def paths(self) -> frozenset[str]:
        """Return the path of every file."""
        return frozenset(map(unquote, self._actions.column("path").to_pylist()))

    def named_files(self) -> Iterator[NamedFile]:
        """Yield every file with what the log says of it."""
        table = self._actions
        names = {
            prefix: [name for name in table.column_names if name.startswith(prefix)]
            for prefix in (_LOW, _HIGH, _NULLS)
        }
        leaves = {name.removeprefix(prefix) for prefix, some in names.items() for name in some}
        for row in table.to_pylist():
            columns = {
                leaf: StatedColumn(
                    _internal(row.get(f"{_LOW}{leaf}")),
                    _internal(row.get(f"{_HIGH}{leaf}")),
                    row.get(f"{_NULLS}{leaf}"),
                )
                for leaf in leaves
            }
            known = {leaf: one for leaf, one in columns.items() if one != StatedColumn()}
            yield NamedFile(unquote(row["path"]), row["size_bytes"], row["num_records"], known)


def _files(actions: pa.Table) -> Iterator[LiveFile]:
    prefix = "partition."
    names = [name for name in actions.column_names if name.startswith(prefix)]
    for row in actions.select(["path", "size_bytes", *names]).to_pylist():
        values = {name.removeprefix(prefix): _text(row[name]) for name in names}
        yield LiveFile(unquote(row["path"]), row["size_bytes"], values)


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
