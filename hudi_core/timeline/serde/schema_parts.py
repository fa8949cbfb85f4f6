"""What the Avro schemas of instant files are made of.

The attribute ``avro.java.string`` makes generic Java readers return ``String`` and means nothing
elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

AvroType: TypeAlias = str | dict[str, Any] | list[Any]

NAMESPACE: Final = "org.apache.hudi.avro.model"
STRING: Final[AvroType] = {"type": "string", "avro.java.string": "String"}
VERSION: Final[Mapping[str, Any]] = {"name": "version", "type": ["int", "null"], "default": 1}
"""Field of most records: the version of their content, 1 where nothing is written."""


def array(items: AvroType) -> dict[str, Any]:
    """Return the type of an array."""
    return {"type": "array", "items": items}


def mapping(values: AvroType) -> dict[str, Any]:
    """Return the type of a map, whose keys are strings."""
    return {"type": "map", "values": values, "avro.java.string": "String"}


def record(name: str, *fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the type of a record inside another one."""
    return {"type": "record", "name": name, "fields": [dict(field) for field in fields]}


def top_record(name: str, *fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an instant file."""
    return {**record(name, *fields), "namespace": NAMESPACE}


def required(name: str, kind: AvroType) -> dict[str, Any]:
    """Return a field that every record holds."""
    return {"name": name, "type": kind}


def list_of(name: str, items: AvroType) -> dict[str, Any]:
    """Return a field that holds an array, empty where nothing is written."""
    return {"name": name, "type": array(items), "default": []}


def optional(kind: AvroType, *names: str) -> tuple[dict[str, Any], ...]:
    """Return one nullable ``kind`` field per name, null by default."""
    return tuple({"name": name, "type": ["null", kind], "default": None} for name in names)
