"""Virtual keys that other engines make otherwise, without a word.

Measured with Hudi-Spark 1.2 on tables of its own: of rows that it reads back it makes keys of dates
(as days), of decimals and of bytes that are not those it made of the incoming rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.schema.table_schema import TableSchema


def require_consent(config: TableConfig, schema: TableSchema, options: Mapping[str, str]) -> None:
    """Refuse virtual keys that other engines make otherwise, unless options accept it."""
    key = TableKeys.accepts_other_keys
    if not config.virtual_keys or config.keeps_virtual_keys or key.read(options):
        return
    reasons = [
        f"{name} is of type {field.type}"
        for name in config.record_key_fields
        if (field := schema.field(name)) is not None and _is_spelled_otherwise(field.type)
    ]
    if config.key_concatenator is not None and len(config.record_key_fields) > 1:
        reasons.append(f"{TableKeys.key_concatenator.key} is known here alone")
    if reasons:
        raise key.refused(
            "false",
            f"other engines would make other keys of the same rows ({'; '.join(reasons)}), and add "
            "them again in silence",
            "Set it to true if no other engine writes the table; or store the keys.",
        )


def _is_spelled_otherwise(kind: pa.DataType) -> bool:
    matches = (pt.is_date, pt.is_time, pt.is_decimal, pt.is_binary, pt.is_fixed_size_binary)
    return any(match(kind) for match in matches)
