"""Single Avro records without a container around them."""

from __future__ import annotations

import io
import json
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import fastavro
from fastavro.schema import SchemaParseException

from hudi_core.errors import CorruptMetadataError

# --- writer schemas, parsed -----------------------------------------------------------------------
# A file's own schema decides how its bytes are read, and a table folder can be written by anybody
# who can write the bucket. So a schema is rebuilt from its structure alone before it is used:
# logical types, aliases and defaults are left out; recursion and deep nesting are refused (the
# decoder recurses as deep as the bytes say); and so are parts that take no bytes (a few bytes could
# claim endless many of them).


ParsedSchema: TypeAlias = dict[str, Any]
"""A schema as fastavro's reader and writer take it."""

MAX_DEPTH: Final = 64
"""Deepest nesting of types accepted in a schema."""
_PRIMITIVES: Final = frozenset({"boolean", "int", "long", "float", "double", "bytes", "string"})
_COMPLEX: Final = ("record", "array", "map", "enum", "fixed")


class _BadSchemaError(ValueError):
    """A schema that cannot be used, with the reason."""


class WriterSchema(NamedTuple):
    """The schema of one file, ready for decoding."""

    name: str
    parsed: ParsedSchema


def parse_writer_schema(text: str, path: str) -> WriterSchema:
    """Return the record schema that the JSON ``text`` spells."""
    try:
        return _parse(text)
    except _BadSchemaError as error:
        raise CorruptMetadataError(path, f"its Avro schema {error}") from error


@lru_cache(maxsize=64)
def _parse(text: str) -> WriterSchema:
    # a table's files carry few different schemas, and parsing one costs more than a small record
    try:
        tree = json.loads(text)
    except ValueError as error:
        raise _BadSchemaError("is not JSON") from error
    except RecursionError as error:
        raise _BadSchemaError("is nested too deeply") from error
    schema, _ = _Structure().copy(tree, namespace="", depth=0)
    if not isinstance(schema, dict) or schema["type"] != "record":
        raise _BadSchemaError("is not one of a record")
    try:
        parsed = fastavro.parse_schema(schema)
    except (SchemaParseException, ValueError, TypeError, KeyError) as error:
        raise _BadSchemaError(f"cannot be parsed: {error}") from error
    assert isinstance(parsed, dict)  # noqa: S101 - a dict parses to a dict
    return WriterSchema(schema["name"].rpartition(".")[2], parsed)


class _Structure:
    """Copies the structure of one schema, type by type.

    :meth:`copy` returns the copy and the number of levels in it. By induction every copied type
    takes at least one byte in a datum, but for ``null``, which only a union may hold.
    """

    def __init__(self) -> None:
        self._heights: dict[str, int] = {}
        self._open: set[str] = set()

    def copy(self, tree: object, namespace: str, depth: int) -> tuple[Any, int]:
        if depth > MAX_DEPTH:
            raise _BadSchemaError("is nested too deeply")
        copied: Any
        match tree:
            case str():
                copied, height = self._named(tree, namespace)
            case [*branches] if branches:
                copied, height = self._union(branches, namespace, depth)
            case {"type": "record"}:
                copied, height = self._record(tree, namespace, depth)
            case {"type": "array", "items": items}:
                inner, height = self.copy(items, namespace, depth + 1)
                copied = {"type": "array", "items": inner}
            case {"type": "map", "values": values}:
                inner, height = self.copy(values, namespace, depth + 1)
                copied = {"type": "map", "values": inner}
            case {"type": "enum", "symbols": [*symbols]}:
                name = self._define(tree, namespace)
                copied, height = {"type": "enum", "name": name, "symbols": symbols}, 0
            case {"type": "fixed", "size": int(size)} if size > 0:
                name = self._define(tree, namespace)
                copied, height = {"type": "fixed", "name": name, "size": size}, 0
            case {"type": inner} if inner not in _COMPLEX:
                # {"type": "string", ...} is a long way to say "string"
                return self.copy(inner, namespace, depth + 1)
            case _:
                raise _BadSchemaError("has a part that is no type, or one that takes no bytes")
        # types that are named nest deeper than the text does
        if height >= MAX_DEPTH:
            raise _BadSchemaError("is nested too deeply")
        return copied, height + 1

    def _named(self, name: str, namespace: str) -> tuple[str, int]:
        if name in _PRIMITIVES:
            return name, 0
        full = _full_name(name, namespace)
        if full in self._open:
            raise _BadSchemaError(f"is recursive ({full} holds itself)")
        if full not in self._heights:
            raise _BadSchemaError(f"names the unknown type {name!r}")
        return full, self._heights[full]

    def _union(self, branches: list[object], namespace: str, depth: int) -> tuple[Any, int]:
        if any(isinstance(branch, list) for branch in branches):
            raise _BadSchemaError("has a union in a union")
        copied = [
            ("null", 0) if branch == "null" else self.copy(branch, namespace, depth + 1)
            for branch in branches
        ]
        return [branch for branch, _ in copied], max(height for _, height in copied)

    def _record(self, tree: object, namespace: str, depth: int) -> tuple[Any, int]:
        assert isinstance(tree, dict)  # noqa: S101 - matched by the caller
        full = self._define(tree, namespace)
        fields = tree.get("fields")
        if not isinstance(fields, list) or not fields:
            raise _BadSchemaError(f"has the record {full} without fields")
        self._open.add(full)
        copied, height = [], 0
        for field in fields:
            match field:
                case {"name": str(name), "type": inner_tree}:
                    inner, inner_height = self.copy(inner_tree, full.rpartition(".")[0], depth + 1)
                    copied.append({"name": name, "type": inner})
                    height = max(height, inner_height)
                case _:
                    raise _BadSchemaError(f"has a field of {full} without name or type")
        self._open.discard(full)
        self._heights[full] = height + 1
        return {"type": "record", "name": full, "fields": copied}, height

    def _define(self, tree: object, namespace: str) -> str:
        match tree:
            case {"name": str(name), "namespace": str(own)} if name:
                full = _full_name(name, own)
            case {"name": str(name)} if name:
                full = _full_name(name, namespace)
            case _:
                raise _BadSchemaError("has a type without a name")
        if full in self._heights or full in self._open:
            raise _BadSchemaError(f"defines {full} twice")
        self._heights[full] = 1
        return full


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


# --- datums ---------------------------------------------------------------------------------------


_DAMAGE: Final = (
    EOFError,
    IndexError,
    KeyError,
    MemoryError,
    OverflowError,
    TypeError,
    ValueError,
    SchemaParseException,
)
"""What fastavro raises on bytes that do not fit the schema."""


def decode_datum(
    datum: bytes, schema: ParsedSchema, path: str, *, named: bool = False
) -> dict[str, Any]:
    """Return the record in bare Avro bytes, under the writer's schema.

    With ``named``, a value of a union with several records is a pair of the record's full name and
    the record. Bytes left over after the record are an error.
    """
    source = io.BytesIO(datum)
    try:
        record = fastavro.schemaless_reader(
            source, schema, None, return_record_name=named, return_record_name_override=named
        )
    except _DAMAGE as error:
        raise CorruptMetadataError(path, f"its record cannot be decoded ({error!r})") from error
    if source.tell() != len(datum):
        raise CorruptMetadataError(path, "its record is shorter than the file says")
    if not isinstance(record, dict):
        raise CorruptMetadataError(path, "it does not hold a record")
    return record


def encode_datum(record: object, schema: ParsedSchema) -> bytes:
    """Return the Avro bytes of a record, in the form :func:`decode_datum` returns."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, record)
    return out.getvalue()
