"""Contents of a folder to adopt: Parquet files or a format's table.

Which formats there are, and what they find, their plugins say. Without any of them a folder is
taken for plain files: every ``*.parquet`` below it, but for what lies under names that begin with a
dot or an underscore. Folders named ``column=value`` have values of columns that the files lack.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.errors import DataFileError, NotATableError, SchemaError
from hudi_core.model.files import FileStatus
from hudi_core.model.found_table import FoundFile, FoundTable
from hudi_core.model.protocols import Storage
from hudi_core.schema.arrow_types import normalise_field

PLAIN: Final = "parquet"
"""What a folder of plain files is called."""
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_WHOLE: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})")

OpenFile = Callable[[str], pa.NativeFile]
"""Opens a file by its path below the folder."""


@dataclass(frozen=True, slots=True)
class FoundSource:
    """What is there.

    ``kind`` is the name of the format, or :data:`PLAIN`; ``is_hive`` means that files lie in
    folders ``column=value``.
    """

    kind: str
    table: FoundTable
    is_hive: bool


def choose_source(
    base_path: str,
    found: Mapping[str, FoundTable],
    wanted: str | None,
    plain: Callable[[], FoundTable],
) -> FoundSource:
    """Return the one table that a folder holds."""
    if wanted is not None and wanted != PLAIN and wanted not in found:
        names = ", ".join(found) or "none"
        raise NotATableError(
            base_path, f"holds no table of the format {wanted}", f"Formats found there: {names}."
        )
    if wanted is None and len(found) > 1:
        raise NotATableError(
            base_path,
            f"holds tables of several formats ({', '.join(sorted(found))})",
            "Name the one whose rows are to be taken.",
        )
    kind = wanted or next(iter(found), PLAIN)
    table = plain() if kind == PLAIN else found[kind]
    if not table.files:
        raise NotATableError(
            base_path, "holds no data file", "Create a table there with `hudi table create`."
        )
    return FoundSource(kind, table, all(_hive_parts(one.path) for one in table.files))


# --- plain files ---------------------------------------------------------------------------------


def plain_files(storage: Storage) -> tuple[FileStatus, ...]:
    """Return the Parquet files of a folder, by path."""
    found = [
        one
        for one in storage.list("", recursive=True)
        if one.path.endswith(".parquet")
        and not any(part.startswith((".", "_")) for part in one.path.split("/"))
    ]
    return tuple(sorted(found, key=lambda one: one.path))


def plain_table(files: Sequence[FileStatus], schemas: Sequence[pa.Schema]) -> FoundTable:
    """Return plain files as a table."""
    merged = merge_schemas([(one.path, schema) for one, schema in zip(files, schemas, strict=True)])
    parts = [_hive_parts(one.path) for one in files]
    names = tuple(parts[0]) if parts else ()
    if any(tuple(one) != names for one in parts):
        raise SchemaError(
            "Files lie in folders that name different partition columns, or none",
            "Move the files into folders of one kind.",
        )
    known = set(merged.names)
    lacking = [name for name in names if name not in known]
    kinds = {name: _kind_of([one[name] for one in parts]) for name in lacking}
    for name, (kind, _) in kinds.items():
        merged = merged.append(pa.field(name, kind))
    found = tuple(
        FoundFile(
            one.path,
            one.size,
            {name: None if part[name] is None else kinds[name][1](part[name]) for name in lacking},
        )
        for one, part in zip(files, parts, strict=True)
    )
    return FoundTable(merged, names, found, "")


def merge_schemas(schemas: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
    """Return all columns of some schemas, in order of first occurrence.

    A column that a file lacks may be null.
    """
    fields: dict[str, tuple[str, pa.Field]] = {}
    count: dict[str, int] = {}
    for path, schema in schemas:
        for field in schema:
            first = fields.setdefault(field.name, (path, field))
            if not first[1].type.equals(field.type):
                raise SchemaError(
                    f"Column {field.name} has the type {field.type} in {path}, and {first[1].type} "
                    f"in {first[0]}",
                    "Write one of them again with the type of the other.",
                    column=field.name,
                )
            if field.nullable:
                fields[field.name] = (first[0], first[1].with_nullable(True))
            count[field.name] = count.get(field.name, 0) + 1
    return pa.schema(
        [
            field if count[name] == len(schemas) else field.with_nullable(True)
            for name, (_, field) in fields.items()
        ]
    )


def read_schema(path: str, opened: OpenFile) -> pa.Schema:
    """Return the columns of a file, in the types that tables have.

    Of Arrow's several types for one form of the file it does not matter which one is noted in it.
    """
    try:
        with opened(path) as file:
            schema: pa.Schema = pq.read_schema(file)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataFileError(path, str(error)) from error
    return pa.schema([normalise_field(field, field.name) for field in schema])


def without_dead(batches: Iterable[pa.RecordBatch], file: FoundFile) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file that its format has not deleted."""
    begin = 0
    for batch in batches:
        if file.dead is None:
            yield batch
            continue
        lives = np.ones(len(batch), bool)
        lives[file.dead[(file.dead >= begin) & (file.dead < begin + len(batch))] - begin] = False
        begin += len(batch)
        yield batch.filter(pa.array(lives))


def _hive_parts(path: str) -> dict[str, str | None]:
    """Return ``column=value`` pairs of a path's folders.

    Empty unless the last folder is such a pair.
    """
    found: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        name, equals, value = part.partition("=")
        if not equals:
            found.clear()
            continue
        text = unquote(value)
        found[unquote(name)] = None if text == _NULL else text
    return found


def _kind_of(strings: Sequence[str | None]) -> tuple[pa.DataType, Callable[[Any], Any]]:
    """Return the common type of folder values, and their parser."""
    known = [text for text in strings if text is not None]
    if known and all(_WHOLE.fullmatch(text) for text in known):
        return pa.int64(), int
    if known and all(_is_date(text) for text in known):
        return pa.date32(), dt.date.fromisoformat
    return pa.string(), str


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True
