"""Facts shown by `hudi table`, in the form of its JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hudi_core.cli.timeline import instant_document

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_core.table import Table

_FIELD_ID: Final = b"PARQUET:field_id"


def table_document(table: Table) -> dict[str, Any]:
    """Return settings, size and columns of a table.

    Sizes and counts are those of what a snapshot query reads now; the files of older versions are
    not in them.
    """
    config = table.config
    timeline = table.timeline
    writes = timeline.completed_writes()
    slices = table.file_slices()
    return {
        "path": table.path,
        "name": config.name,
        "format": table.format,
        "type": config.table_type.value,
        "version": config.version,
        "record_key": list(config.record_key_fields),
        "partition_by": list(config.partition_fields),
        "hive_style": config.hive_style,
        "key_generator": config.keygen_name,
        "ordering_field": ",".join(config.ordering_fields) or None,
        "merge_mode": config.merge_mode.value,
        "timezone": config.timezone,
        "zone": str(config.zone),
        "writes": len(writes),
        "pending": sum(not instant.is_completed for instant in timeline.instants),
        "latest_write": instant_document(writes[-1], archived=False) if writes else None,
        "partitions": len({one.partition_path for one in slices}),
        "file_groups": len(slices),
        "bytes": sum(one.total_size for one in slices),
        "columns": [_column(field) for field in table.schema],
    }


def _column(field: pa.Field) -> dict[str, Any]:
    field_id = (field.metadata or {}).get(_FIELD_ID)
    return {
        "id": int(field_id) if field_id is not None else None,
        "name": field.name,
        "type": str(field.type),
        "nullable": field.nullable,
    }
