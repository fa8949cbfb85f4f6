"""Statistics of existing data files, in present column types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.base_file.footer import opened_file
from hudi_core.base_file.footer_statistics import footer_statistics
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.promoted_bounds import promoted_bounds
from hudi_core.model.stats import ColumnStats
from hudi_core.schema.arrow_types import leaves


def stored_statistics(
    client: TableMetaClient, path: str, wanted: Mapping[str, pa.DataType]
) -> dict[str, ColumnStats]:
    """Statistics of a data file by leaf path, without columns it lacks."""
    with opened_file(client, path) as file:
        footer, own = file.metadata, leaves(file.metadata.schema.to_arrow_schema())
        if len(own) != len(footer.schema):
            return {}
        found = footer_statistics(own, footer)
    return {
        name: _as_of_now(found[name], field.type, wanted[name])
        for name, field in own
        if name in wanted
    }


def _as_of_now(found: ColumnStats, stored: pa.DataType, wanted: pa.DataType) -> ColumnStats:
    low, high = found.min_value, found.max_value
    if low is None or high is None:
        return found
    if (pt.is_timestamp(stored) or pt.is_time(stored)) and stored.unit == "ns":
        low, high = int(low) // 1000, -(-int(high) // 1000)
    low, high = promoted_bounds(low, high, stored, wanted)
    return replace(found, min_value=low, max_value=high)
