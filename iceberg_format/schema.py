"""A table's columns as an Iceberg schema with the writer's ids.

The five meta columns are part of it: they are columns of the data files like any other, and who
reads the Iceberg table can use them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.types as pt
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import MappedField, NameMapping, parse_mapping_from_json
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

from hudi_core.spi import CommitMetadata, MetaClientView, SchemaError, TableSchema
from hudi_core.spi.files import field_id

NAMES_KEY: Final = "schema.name-mapping.default"
"""Property by which readers find the columns of files without field ids."""
_TYPES: dict[pa.DataType, type[IcebergType]] = {
    pa.bool_(): BooleanType,
    pa.int32(): IntegerType,
    pa.int64(): LongType,
    pa.float32(): FloatType,
    pa.float64(): DoubleType,
    pa.string(): StringType,
    pa.binary(): BinaryType,
    pa.date32(): DateType,
    pa.time64("us"): TimeType,
    pa.timestamp("us"): TimestampType,
    pa.timestamp("us", tz="UTC"): TimestamptzType,
}


def iceberg_schema(schema: TableSchema, schema_id: int, *, with_meta: bool = True) -> Schema:
    """Return a table's schema as Iceberg's."""
    fields = schema.with_meta() if with_meta else schema.arrow
    return Schema(*[_field(field) for field in fields], schema_id=schema_id)


def schema_left(client: MetaClientView, commit: CommitMetadata) -> TableSchema:
    """Return the schema as a commit leaves it."""
    before = client.schema
    if commit.schema_json is None:
        return before
    return TableSchema.from_avro(commit.schema_json, before.field_ids(), before.last_column_id)


def known_schema(metadata: TableMetadata, wanted: Schema) -> Schema | None:
    """Return the metadata's schema with equal columns, or ``None``."""
    current = [one for one in metadata.schemas if one.schema_id == metadata.current_schema_id]
    for schema in [*current, *metadata.schemas]:
        if schema.fields == wanted.fields:
            return schema
    return None


def name_mapping(known: str | None, schema: Schema, *, takes_over: bool = False) -> str:
    """Return field ids by name, for files without ids.

    In the form of the property. Files of writers that know nothing of Iceberg carry none: Hudi of
    Java, for one. The names of before stay, for files that are as old.

    ``known`` is the present property; ``None`` also where it cannot be read. With ``takes_over`` a
    name that a column had before becomes that of the present column of this name, as files without
    ids that are written now mean it.
    """
    return _grown_mapping(known, schema.name_mapping.model_dump_json(), takes_over)


@lru_cache(maxsize=32)
def _grown_mapping(known: str | None, wanted: str, takes_over: bool) -> str:
    before = _parsed(known)
    grown = _merged(before, NameMapping.model_validate_json(wanted).root, takes_over)
    return NameMapping(root=grown).model_dump_json()


def mapped_names(mapping: str | None) -> dict[str, int]:
    """Field ids by the paths of the names that a mapping has."""
    found: dict[str, int] = {}

    def walk(fields: Sequence[MappedField], above: str) -> None:
        for field in fields:
            for name in field.names:
                if field.field_id is not None:
                    found[f"{above}{name}"] = field.field_id
                walk(field.fields, f"{above}{name}.")

    walk(_parsed(mapping), "")
    return found


def _parsed(mapping: str | None) -> list[MappedField]:
    try:
        return [] if mapping is None else parse_mapping_from_json(mapping).root
    except ValueError:
        return []  # no reader can use it, ours or another


def _merged(
    known: Sequence[MappedField], wanted: Sequence[MappedField], takes_over: bool
) -> list[MappedField]:
    """Fields of one level: present columns, then former ones."""
    owners = {name: field.field_id for field in known for name in field.names}
    present = {name: field.field_id for field in wanted for name in field.names}
    owners = owners | present if takes_over else present | owners
    below = {field.field_id: field.fields for field in wanted}
    before = {field.field_id: field for field in known}
    named: dict[int | None, list[str]] = {}
    for name, owner in owners.items():
        named.setdefault(owner, []).append(name)
    made = []
    for number in dict.fromkeys((*below, *before)):
        names = named.get(number)
        former = before[number].fields if number in before else []
        if names:
            fields = _merged(former, below.get(number, []), takes_over)
            values = {"field-id": number, "names": names, "fields": fields}
            made.append(MappedField.model_validate(values))
    return made


def _field(field: pa.Field, above: str = "") -> NestedField:
    doc = (field.metadata or {}).get(b"doc")
    path = f"{above}{field.name}"
    return NestedField(
        field_id=_id(field, path),
        name=field.name,
        field_type=_type(field.type, path),
        required=not field.nullable,
        doc=doc.decode("utf-8") if doc else None,
    )


def _id(field: pa.Field, path: str) -> int:
    number = field_id(field)
    if number is None:
        raise SchemaError(
            f"Column {path} has no field id", "Write the table's rows again.", column=path
        )
    return number


def _type(kind: pa.DataType, path: str) -> IcebergType:
    if pt.is_struct(kind):
        return StructType(*[_field(child, f"{path}.") for child in kind])
    if pt.is_map(kind):
        key, value = kind.key_field, kind.item_field
        return MapType(
            key_id=_id(key, f"{path}.key"),
            key_type=_type(key.type, f"{path}.key"),
            value_id=_id(value, f"{path}.value"),
            value_type=_type(value.type, f"{path}.value"),
            value_required=not value.nullable,
        )
    if pt.is_list(kind):
        element = kind.value_field
        return ListType(
            element_id=_id(element, f"{path}.element"),
            element_type=_type(element.type, f"{path}.element"),
            element_required=not element.nullable,
        )
    if pt.is_decimal128(kind):
        return DecimalType(kind.precision, kind.scale)
    found = _TYPES.get(kind)
    if found is None:
        raise SchemaError(
            f"Column {path} has the type {kind}, which Iceberg tables do not have",
            "Cast the column, or use another table format.",
            column=path,
        )
    return found()
