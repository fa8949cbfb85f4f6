"""A writer of Hudi tables that knows neither their formats nor field ids, as Hudi of Java."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.schema.arrow_types import children, with_children
from hudi_core.services.opening import open_table
from hudi_core.storage.properties_file import update_properties

NO_SERVICES = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def _without_ids(field: pa.Field) -> pa.Field:
    below = children(field.type)
    kind = with_children(field.type, [_without_ids(one) for _, one in below]) if below else None
    return pa.field(field.name, kind or field.type, field.nullable)


class _Writer(pq.ParquetWriter):  # type: ignore[misc]
    """Writes columns without field ids."""

    def __init__(self, where: Any, schema: pa.Schema, **given: Any) -> None:
        self._columns = pa.schema([_without_ids(field) for field in schema])
        super().__init__(where, self._columns, **given)

    def write_table(self, table: pa.Table, **given: Any) -> None:
        super().write_table(table.cast(self._columns), **given)


@contextmanager
def other_engine(path: Path) -> Iterator[hudi.Table]:
    """The table as an engine has it that does not know its format."""
    storage, name = open_table(str(path), {}).client.storage, hudi.Table.open(path).format
    update_properties(storage, {"hoodie.table.format": "native"})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pq, "ParquetWriter", _Writer)
        try:
            yield hudi.Table.open(path)
        finally:
            update_properties(storage, {"hoodie.table.format": name})
