"""A table's schema as Delta's, and its possible changes.

Every column may be null in Delta, whatever the table says: the writer sees to its own rules, and
rows of before a column was added have no value in it. Field ids stay out: they mean something to
Delta's readers only where columns are mapped, which needs a later protocol.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt
from deltalake import Schema

from hudi_core.spi import MetaClientView, SchemaError, TableSchema, UnsupportedTableError

Document = Mapping[str, Any]
"""A schema, or a part of one, as the protocol has it in JSON."""
_MEMBERS: Final = {"array": ("elementType",), "map": ("keyType", "valueType")}


def file_schema(meta_client: MetaClientView, schema: TableSchema | None = None) -> pa.Schema:
    """Return the columns of the table's files, meta columns first.

    Where it has these.
    """
    found = meta_client.schema if schema is None else schema
    return found.with_meta() if meta_client.config.populate_meta_fields else found.arrow


def delta_schema(schema: pa.Schema) -> Document:
    """The Delta schema of files with these columns."""
    require_supported_columns(schema)
    found = Schema.from_arrow(pa.schema([_plain(field) for field in schema]))
    document: Document = json.loads(found.to_json())
    return document


def require_supported_columns(schema: pa.Schema) -> None:
    """Refuse columns that a Delta table cannot have."""
    _require_distinct_members(list(schema), "")


def grown(meta_client: MetaClientView, old: Document, new: Document) -> Document:
    """A schema with the columns of another one behind its own.

    A changed type is refused: Delta cannot express it without rewriting files.
    """
    return {**old, "fields": _fields(meta_client, old["fields"], new["fields"], "")}


def _fields(
    meta_client: MetaClientView, old: Sequence[Document], new: Sequence[Document], above: str
) -> list[Document]:
    wanted = {field["name"]: field for field in new}
    kept = [
        {**field, "type": _grown(meta_client, field["type"], one["type"], f"{above}{one['name']}")}
        if (one := wanted.pop(field["name"], None))
        else field
        for field in old
    ]
    return [*kept, *wanted.values()]


def _grown(meta_client: MetaClientView, old: Any, new: Any, path: str) -> Any:
    """A type with the members of another one that it lacks."""
    if old == new:
        return old
    if not isinstance(old, dict) or not isinstance(new, dict) or old["type"] != new["type"]:
        raise UnsupportedTableError(
            meta_client.base_path,
            f"has a column {path} that would change its type from {old} to {new}, which the Delta "
            "log cannot express for the files that are there",
            "Add a column of the new type instead.",
        )
    if old["type"] == "struct":
        members = _fields(meta_client, old["fields"], new["fields"], f"{path}.")
        return {**old, "fields": members}
    members_of = _MEMBERS[str(old["type"])]
    return {**old, **{key: _grown(meta_client, old[key], new[key], path) for key in members_of}}


def _plain(field: pa.Field) -> pa.Field:
    kind = field.type
    if pt.is_struct(kind):
        kind = pa.struct([_plain(member) for member in kind])
    elif pt.is_map(kind):
        # keys are never null, in Arrow as in Delta
        key = pa.field("key", _plain(kind.key_field).type, nullable=False)
        kind = pa.map_(key, _plain(kind.item_field))
    elif pt.is_list(kind):
        kind = pa.list_(_plain(kind.value_field))
    return pa.field(field.name, kind, nullable=True)


def _require_supported(field: pa.Field, path: str) -> None:
    kind = field.type
    if pt.is_time(kind):
        raise SchemaError(
            f"Column {path} has the type {kind}, which Delta tables do not have",
            "Store it as text or as a number, or use another table format.",
            column=path,
            type=str(kind),
        )
    _require_distinct_members(_children(kind), f"{path}.")


def _require_distinct_members(fields: Sequence[pa.Field], above: str) -> None:
    seen: dict[str, str] = {}
    for field in fields:
        other = seen.setdefault(field.name.lower(), field.name)
        if other != field.name:
            raise SchemaError(
                f"Column {above}{field.name} ({field.type}) differs from {above}{other} in case "
                "only, which Delta tables do not distinguish",
                "Give it another name.",
                column=f"{above}{field.name}",
                type=str(field.type),
            )
        _require_supported(field, f"{above}{field.name}")


def _children(kind: pa.DataType) -> list[pa.Field]:
    if pt.is_map(kind):
        return [kind.key_field, kind.item_field]
    if pt.is_list(kind):
        return [kind.value_field]
    return list(kind) if pt.is_struct(kind) else []
