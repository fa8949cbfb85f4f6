"""The Avro schemas of instant files, derived from their values.

Names, order and unions are those of Hudi 1.x (``hudi-format`` section 3); readers written in Java
resolve by them. A field that may be ``None`` is a union with null, which is its default; what Hudi
has otherwise is in the tables below. The attribute ``avro.java.string`` makes generic Java readers
return ``String`` and means nothing elsewhere.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from hudi_core.model.actions import (
    CleanerPlan,
    CleanMetadata,
    ClusteringSlice,
    CompactionOperation,
    CompactionPlan,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackRequest,
)
from hudi_core.timeline.serde.records import RecordField, record_fields

_AvroType: TypeAlias = str | dict[str, Any] | list[Any]

_NAMESPACE: Final = "org.apache.hudi.avro.model"
_STRING: Final = {"type": "string", "avro.java.string": "String"}
_SCALARS: Final[Mapping[type, _AvroType]] = {
    str: _STRING,
    int: "long",
    float: "double",
    bool: "boolean",
}
_INTS: Final = frozenset(
    {"version", "log_version", "total_files_deleted", "num_output_file_groups"}
)
"""Numbers of 32 bits."""
_NAMES: Final[Mapping[type, str]] = {ClusteringSlice: "HoodieSliceInfo"}
"""Records that are not called as their values are."""
_NULLABLE: Final = frozenset(
    {
        "partition_to_write_stats",
        "partition_to_replace_file_ids",
        "extra_metadata",
        "rollback_requests",
        "total_scan_time",
        "total_create_time",
        "total_upsert_time",
    }
)
"""Fields that readers find null where the value knows none."""
_PRESENT: Final = frozenset({"version", "num_output_file_groups", "preserve_hoodie_metadata"})
"""Unions with null whose default is not null, where the value has one; null comes second then."""
_DEFAULTS: Final[Mapping[tuple[type, str], object]] = {
    (CleanerPlan, "version"): 1,
    (CleanMetadata, "version"): 1,
    (CompactionPlan, "version"): 1,
    (CleanerPlan, "last_completed_commit_timestamp"): "",
    (CleanMetadata, "last_completed_commit_timestamp"): "",
    (RestorePlan, "instants_to_rollback"): [],
    (RestoreMetadata, "restore_instant_info"): [],
    (RollbackMetadata, "instants_rollback"): [],
    (RollbackRequest, "files_to_be_deleted"): [],
}
"""Defaults of fields in Hudi, where they are not those of the values, or not left out."""
_WITHOUT_DEFAULT: Final = frozenset(
    {(CompactionOperation, "base_instant_time"), (CompactionOperation, "file_id")}
)
"""Unions with null that every record holds."""


@cache
def schema_of(kind: type) -> dict[str, Any]:
    """The schema of instant files that hold such a value."""
    return {**_record(kind, set()), "namespace": _NAMESPACE}


def schema_name(kind: type) -> str:
    """The name of a value's record, without namespace."""
    return _NAMES.get(kind, f"Hoodie{kind.__name__}")


def _record(kind: type, seen: set[type]) -> dict[str, Any]:
    seen.add(kind)
    fields = [_field(kind, field, seen) for field in record_fields(kind)]
    return {"type": "record", "name": schema_name(kind), "fields": fields}


def _field(kind: type, field: RecordField, seen: set[type]) -> dict[str, Any]:
    avro, key = _type(field.hint, field.name, seen), (kind, field.name)
    default = None if field.default is None else field.default()
    found: dict[str, Any] = {"name": field.record_name, "type": avro}
    if field.name in _PRESENT and default is not None:
        return {**found, "type": [avro, "null"], "default": _DEFAULTS.get(key, default)}
    if field.is_optional or field.name in _NULLABLE:
        found["type"] = ["null", avro]
        return found if key in _WITHOUT_DEFAULT else {**found, "default": None}
    return {**found, "default": _DEFAULTS[key]} if key in _DEFAULTS else found


def _type(hint: Any, name: str, seen: set[type]) -> _AvroType:
    if hint in _SCALARS:
        return "int" if hint is int and name in _INTS else _SCALARS[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return {"type": "array", "items": _type(arguments[0], name, seen)}
    if origin is Mapping:
        values = _type(arguments[1], name, seen)
        return {"type": "map", "values": values, "avro.java.string": "String"}
    # a record is defined where it comes first and named from then on
    made = schema_name(hint) if hint in seen else _record(hint, seen)
    return ["null", made] if hint is RollbackMetadata else made  # those of a restore
