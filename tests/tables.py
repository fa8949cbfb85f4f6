"""Rows and tables that the tests write and read."""

from __future__ import annotations

import atexit
import pickle
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import hudi_core as hudi

SCHEMA: Final = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])
"""Columns of a table of which only keys, partitions and order matter."""
TABLES: Final = ("native", "iceberg,delta")
"""Formats of a behaviour's table: one commit is read by the readers of both."""
FORMATS: Final = ("native", "iceberg", "delta")
"""For what differs between formats, or between one and several."""

_PARTITIONS: Final = ("part", "city", "region", "day")
_MADE: Final[dict[bytes, tuple[Path, Mapping[str, str]]]] = {}
"""Copies of tables of this process, and their options, by what made them."""


def rows(*ids: Any, schema: pa.Schema | None = None, **columns: Any) -> pa.Table:
    """Rows of these ids; each other column is a value for all of them, or a list of values.

    Types follow from the values unless a schema is given, whose other columns are null.
    """
    given = {"id": list(ids), **columns}
    found = {name: _values(value, len(ids)) for name, value in given.items()}
    if schema is None:
        return pa.table(found)
    found = {name: found.get(name, [None] * len(ids)) for name in [*schema.names, *found]}
    return pa.table(found, schema)


def rows_of(schema: pa.Schema, *values: Sequence[Any]) -> pa.Table:
    """Rows whose values are in the order of the schema."""
    named = [dict(zip(schema.names, one, strict=True)) for one in values]
    return pa.Table.from_pylist(named, schema)


def new_table(
    path: str | Path,
    of: pa.Schema | pa.Table = SCHEMA,
    options: Mapping[str, Any] | None = None,
    *,
    format: str | None = None,  # noqa: A002 - as `Table.create` has it
    **settings: Any,
) -> hudi.Table:
    """Table with the columns of a schema, or of rows, which are inserted.

    Unless ``settings``, the other arguments of `Table.create`, say otherwise, its key is ``id``,
    and it has partitions and an ordering field where such columns are: ``part``, ``city``,
    ``region`` or ``day``, and ``ts``.
    """
    schema = of if isinstance(of, pa.Schema) else of.schema
    partition = next((name for name in _PARTITIONS if name in schema.names), None)
    usual = {
        "record_key": "id",
        "partition_by": partition,
        "ordering_field": "ts" if "ts" in schema.names else None,
    }
    table = hudi.Table.create(path, schema, options=options, format=format, **{**usual, **settings})
    if isinstance(of, pa.Table):
        table.insert(of)
    return table


def copied(
    path: str | Path, make: Callable[..., hudi.Table], *given: Any, **more: Any
) -> hudi.Table:
    """The table that ``make`` makes of a path and the other arguments, copied where it was made.

    It is opened with the same options. Formats other than the native one store paths in their
    metadata: their tables are made each time.
    """
    request = pickle.dumps((make.__module__, make.__qualname__, Path(path).name, given, more))
    if request not in _MADE:
        made = make(path, *given, **more)
        if made.format != "native":
            return made
        image = _images() / str(len(_MADE))
        shutil.copytree(path, image)
        _MADE[request] = image, made._session.options
        return hudi.Table.open(path, _MADE[request][1])
    image, options = _MADE[request]
    shutil.copytree(image, path)
    return hudi.Table.open(path, options)


@cache
def _images() -> Path:
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def base_files(table: hudi.Table) -> list[Path]:
    """Base files that hold the rows of a table."""
    slices = table.file_slices()
    return [Path(table.path, one.base_file.path) for one in slices if one.base_file is not None]


def pairs(table: pa.Table, *columns: str) -> list[tuple[Any, ...]]:
    """Rows as sorted tuples of some columns, or of all, nulls last."""
    names = columns or table.column_names
    found = zip(*(table.column(name).to_pylist() for name in names), strict=True)
    return sorted(found, key=lambda row: [(value is None, value) for value in row])


def _values(value: Any, count: int) -> Any:
    if isinstance(value, (list, tuple, range, pa.Array, pa.ChunkedArray)):
        return list(value) if isinstance(value, (tuple, range)) else value
    return [value] * count
