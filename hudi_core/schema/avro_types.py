"""Arrow types to and from Hudi's Avro schemas.

Source: ``hudi-format`` sections 2 to 4.

Names of nested records and of fixed types follow Spark's Avro conversion, which Hudi uses: a
record is named after its field, within a namespace made of the names around it. Field ids travel
as the attributes that other table formats use, too: ``field-id``, ``element-id``, ``key-id``,
``value-id``.

So does the lack of a time zone: local timestamps are written as ``timestamp-micros`` with
``adjust-to-utc`` false, unless a table asks for ``local-timestamp-micros``, the word of Hudi's Java
writer, which hudi-rs 0.5.0 cannot read. Both are understood.
"""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.errors import SchemaError
from hudi_core.schema.arrow_types import DOC, FIELD_ID, LIST_ELEMENT, MAP_VALUE, field_id

Json = dict[str, Any]

_ID_ATTRIBUTE: Final = '"field-id"'
_PRIMITIVES: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_LOGICAL: Final = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_ADJUSTED: Final = "adjust-to-utc"
_LOCAL_PREFIX: Final = "local-timestamp-"
_LOCAL: Final = {"timestamp-millis": pa.timestamp("ms"), "timestamp-micros": pa.timestamp("us")}
_TO_AVRO: Final[dict[pa.DataType, str | Json]] = {
    **{kind: name for name, kind in _PRIMITIVES.items()},
    **{kind: {"type": base, "logicalType": word} for (base, word), kind in _LOGICAL.items()},
    **{kind: {"type": "long", "logicalType": w, _ADJUSTED: False} for w, kind in _LOCAL.items()},
}
_HINT: Final = "Write the table with a schema that Hudi's Spark writer can make."


# --- Arrow to Avro -----------------------------------------------------------


def has_ids(schema: str) -> bool:
    """Whether a schema gives ids to its columns, as this project does."""
    return _ID_ATTRIBUTE in schema


def says_local(schema: str) -> bool:
    """Whether a schema has Hudi's own local timestamps."""
    return f'"{_LOCAL_PREFIX}' in schema


def with_local_words(node: Any) -> Any:
    """A node of an Avro schema with Hudi's own local timestamps.

    They replace the form that :func:`record_to_avro` gives to timestamps without a zone.
    """
    if isinstance(node, list):
        return [with_local_words(each) for each in node]
    if not isinstance(node, dict):
        return node
    if node.get(_ADJUSTED) is False:
        return {"type": node["type"], "logicalType": f"local-{node['logicalType']}"}
    return {key: with_local_words(value) for key, value in node.items()}


def record_to_avro(name: str, namespace: str, fields: list[pa.Field]) -> Json:
    """Return the Avro record of some fields, which carry ids or not."""
    inner = f"{namespace}.{name}"
    return {
        "type": "record",
        "name": name,
        "namespace": namespace,
        "fields": [_field_to_avro(field, inner) for field in fields],
    }


def _field_to_avro(field: pa.Field, namespace: str) -> Json:
    entry: Json = {"name": field.name, "type": _nullable_to_avro(field, field.name, namespace)}
    doc = (field.metadata or {}).get(DOC)
    if doc is not None:
        entry["doc"] = doc.decode()
    if field.nullable:
        entry["default"] = None
    _attribute(entry, "field-id", field)
    return entry


def _nullable_to_avro(field: pa.Field, name: str, namespace: str) -> Any:
    kind = _type_to_avro(field.type, name, namespace)
    return ["null", kind] if field.nullable else kind


def _type_to_avro(kind: pa.DataType, name: str, namespace: str) -> str | Json:
    if pt.is_struct(kind):
        return record_to_avro(name, namespace, list(kind))
    if pt.is_list(kind):
        array: Json = {
            "type": "array",
            "items": _nullable_to_avro(kind.value_field, name, namespace),
        }
        _attribute(array, "element-id", kind.value_field)
        return array
    if pt.is_map(kind):
        mapping: Json = {
            "type": "map",
            "values": _nullable_to_avro(kind.item_field, name, namespace),
        }
        _attribute(mapping, "key-id", kind.key_field)
        _attribute(mapping, "value-id", kind.item_field)
        return mapping
    if pt.is_decimal(kind):
        return {
            **_fixed(name, namespace, decimal_width(kind.precision)),
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    if pt.is_fixed_size_binary(kind):
        return _fixed(name, namespace, kind.byte_width)
    return _TO_AVRO[kind]


def _fixed(name: str, namespace: str, size: int) -> Json:
    return {"type": "fixed", "name": "fixed", "namespace": f"{namespace}.{name}", "size": size}


def _attribute(entry: Json, name: str, field: pa.Field) -> None:
    number = field_id(field)
    if number is not None:
        entry[name] = number


def decimal_width(precision: int) -> int:
    """Return the least bytes for a decimal of ``precision`` digits.

    Numbers are in two's complement.
    """
    greatest: int = 10**precision - 1
    return greatest.bit_length() // 8 + 1


# --- Avro to Arrow -----------------------------------------------------------


def local_timestamps(text: str) -> frozenset[str]:
    """Paths of the columns that an Avro schema calls local timestamps.

    Those whose lack of a time zone is declared in another way are not; see above.
    """
    reader = _Reader()
    reader.read(json.loads(text), "", "")
    return frozenset(reader.local)


def record_from_avro(text: str) -> list[pa.Field]:
    """Return the fields of an Avro record schema.

    They have the ids and comments it holds.
    """
    try:
        node = json.loads(text)
        kind, _ = _Reader().read(node, "", "")
    except (json.JSONDecodeError, RecursionError) as error:
        raise SchemaError(f"The Avro schema is not valid: {error}", _HINT) from error
    if not pt.is_struct(kind):
        raise SchemaError("The Avro schema of a table is not a record", _HINT)
    return list(kind)


class _Reader:
    """Reads one schema and remembers its named types.

    A named type may be used again by its name.
    """

    def __init__(self) -> None:
        self._named: dict[str, pa.DataType] = {}
        self.local: set[str] = set()
        """Paths of the columns that are called local timestamps."""

    def read(self, node: Any, path: str, namespace: str) -> tuple[pa.DataType, bool]:
        """Return a schema node's type, and whether it may be null."""
        if isinstance(node, list):
            return self._union(node, path, namespace)
        if isinstance(node, str):
            return self._by_name(node, path, namespace), False
        if not isinstance(node, dict) or "type" not in node:
            _refuse(path, f"{node!r} is no Avro type")
        if isinstance(node["type"], dict | list):
            return self.read(node["type"], path, namespace)
        return self._type(node, path, namespace), False

    def _type(self, node: Json, path: str, namespace: str) -> pa.DataType:
        kind = node["type"]
        if kind in ("record", "error"):
            return self._record(node, path, namespace)
        if kind in ("array", "map"):
            return self._collection(node, path, namespace)
        if kind in ("enum", "fixed"):
            stored = pa.string() if kind == "enum" else _fixed_type(node, path)
            return self._name(node, namespace, stored)
        if kind == "bytes":
            return _decimal(node, path) or pa.binary()
        word = str(node.get("logicalType"))
        if kind == "long" and node.get(_ADJUSTED) is False and word in _LOCAL:
            return _LOCAL[word]
        if kind == "long" and word.startswith("local-timestamp-"):
            self.local.add(path)
        return _LOGICAL.get((kind, word)) or self._by_name(kind, path, namespace)

    def _collection(self, node: Json, path: str, namespace: str) -> pa.DataType:
        if node["type"] == "array":
            element = self._field("element", node.get("items"), f"{path}.{LIST_ELEMENT}", namespace)
            return pa.list_(_with_id(element, node, "element-id"))
        value = self._field("value", node.get("values"), f"{path}.{MAP_VALUE}", namespace)
        key = _with_id(pa.field("key", pa.string(), False), node, "key-id")
        return pa.map_(key, _with_id(value, node, "value-id"))

    def _union(self, node: list[Any], path: str, namespace: str) -> tuple[pa.DataType, bool]:
        branches = [branch for branch in node if branch != "null"]
        if len(branches) != 1:
            _refuse(path, f"a union of {len(branches)} types")
        kind, nullable = self.read(branches[0], path, namespace)
        return kind, nullable or len(branches) < len(node)

    def _field(self, name: str, node: Any, path: str, namespace: str) -> pa.Field:
        kind, nullable = self.read(node, path, namespace)
        return pa.field(name, kind, nullable)

    def _record(self, node: Json, path: str, namespace: str) -> pa.DataType:
        full = _full_name(node, namespace)
        inner = full.rpartition(".")[0]
        entries, fields = node.get("fields"), []
        if not isinstance(entries, list) or not entries:
            _refuse(path, "a record without fields")
        for entry in entries:
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                _refuse(path, f"{entry!r} is no field")
            name = entry["name"]
            field = self._field(name, entry.get("type"), f"{path}.{name}".lstrip("."), inner)
            doc = entry.get("doc")
            if isinstance(doc, str) and doc:
                field = field.with_metadata({DOC: doc.encode()})
            fields.append(_with_id(field, entry, "field-id"))
        return self._name(node, namespace, pa.struct(fields))

    def _name(self, node: Json, namespace: str, kind: pa.DataType) -> pa.DataType:
        # only now: a record that contains itself has no Arrow type, and finds no such name
        self._named[_full_name(node, namespace)] = kind
        return kind

    def _by_name(self, name: str, path: str, namespace: str) -> pa.DataType:
        kind = _PRIMITIVES.get(name)
        if kind is None:
            kind = self._named.get(name if "." in name or not namespace else f"{namespace}.{name}")
        if kind is None:
            kind = self._named.get(name)
        if kind is None:
            _refuse(path, f"the unknown or recursive type {name!r}")
        return kind


def _full_name(node: Json, namespace: str) -> str:
    name = str(node.get("name", ""))
    space = str(node.get("namespace") or namespace)
    return name if "." in name or not space else f"{space}.{name}"


def _with_id(field: pa.Field, node: Json, attribute: str) -> pa.Field:
    number = node.get(attribute)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        return field
    return field.with_metadata({**(field.metadata or {}), FIELD_ID: str(number).encode()})


def _fixed_type(node: Json, path: str) -> pa.DataType:
    width = node.get("size")
    if not isinstance(width, int) or width < 1:
        _refuse(path, f"a fixed type of size {width!r}")
    return _decimal(node, path) or pa.binary(width)


def _decimal(node: Json, path: str) -> pa.DataType | None:
    if node.get("logicalType") != "decimal":
        return None
    precision, scale = node.get("precision"), node.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int):
        _refuse(path, "a decimal without a precision")
    if not 0 <= scale <= precision <= 38 or precision < 1:
        _refuse(path, f"a decimal of precision {precision} and scale {scale}")
    return pa.decimal128(precision, scale)


def _refuse(path: str, what: str) -> NoReturn:
    where = f"Column {path} of the Avro schema" if path else "The Avro schema"
    raise SchemaError(f"{where} has {what}", _HINT, column=path)
