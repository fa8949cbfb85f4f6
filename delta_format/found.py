"""A Delta table that no Hudi writer has made."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.types as pt

from delta_format.declarations import require_removals_allowed, says_rows
from delta_format.log import has_log, open_log
from delta_format.paths import plain
from delta_format.vectors import FEATURE, positions
from hudi_core.spi import FoundFile, FoundTable, MetaClientView, UnsupportedTableError

_PREFIX = "partition."
_MAPPING = b"delta.columnMapping."
_PHYSICAL = b"delta.columnMapping.physicalName"


def find_table(meta_client: MetaClientView) -> FoundTable | None:
    """Return the newest version of a folder's table, or ``None``.

    Refused are tables whose columns are found by ids, and those of which no file may be replaced.
    """
    if not has_log(meta_client):
        return None
    head = open_log(meta_client)
    require_removals_allowed(head)
    with head.reading():
        protocol = head.table.protocol()
        if not says_rows(head.table):
            features = protocol.reader_features or ()
            raise UnsupportedTableError(
                meta_client.base_path,
                f"needs reader version {protocol.min_reader_version} of Delta "
                f"({', '.join(sorted(features)) or 'column mapping'})",
                "Have its engine rewrite it without these features first.",
            )
        schema = pa.schema(head.table.schema().to_arrow())
        names = tuple(head.table.metadata().partition_columns)
        actions = pa.table(head.table.get_add_actions(flatten=True))
    vectors = head.vectors.by_file
    dead = dict(
        zip(
            vectors,
            meta_client.run_map(partial(positions, meta_client), [*vectors.values()]),
            strict=True,
        )
    )
    wanted = ["path", "size_bytes", *(f"{_PREFIX}{name}" for name in names)]
    files = tuple(
        FoundFile(
            plain(row["path"]),
            row["size_bytes"],
            {name: row[f"{_PREFIX}{name}"] for name in names},
            dead.get(row["path"]),
        )
        for row in actions.select(wanted).to_pylist()
    )
    has_vectors = FEATURE in (protocol.writer_features or ())
    plain_schema, stored = (_named(schema, physical=one) for one in (False, True))
    return FoundTable(
        plain_schema,
        names,
        files,
        str(head.version),
        has_vectors,
        None if stored.equals(plain_schema) else stored,
    )


def _named(schema: pa.Schema, *, physical: bool) -> pa.Schema:
    """The columns by their names in the log, or in the files."""
    return pa.schema([_field(one, physical=physical) for one in schema])


def _field(field: pa.Field, *, physical: bool) -> pa.Field:
    metadata = field.metadata or {}
    name = metadata.get(_PHYSICAL, field.name.encode()).decode() if physical else field.name
    kept = {key: value for key, value in metadata.items() if not key.startswith(_MAPPING)}
    return pa.field(name, _type(field.type, physical=physical), field.nullable, kept or None)


def _type(kind: pa.DataType, *, physical: bool) -> pa.DataType:
    if pt.is_struct(kind):
        return pa.struct([_field(one, physical=physical) for one in kind])
    if pt.is_map(kind):
        key, item = (_field(one, physical=physical) for one in (kind.key_field, kind.item_field))
        return pa.map_(key, item)
    if pt.is_list(kind):
        return pa.list_(_field(kind.value_field, physical=physical))
    return kind
