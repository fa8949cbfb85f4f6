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
from tests.formats.old_lists import required_elements, with_old_lists

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


class _AvroWriter(_Writer):
    """Writes lists of two levels, as writers by way of Avro do by default."""

    def __init__(self, where: Any, schema: pa.Schema, **given: Any) -> None:
        self._to, self._file = where, pa.BufferOutputStream()
        super().__init__(self._file, pa.schema(map(required_elements, schema)), **given)

    def close(self) -> None:
        is_open = self.is_open
        super().close()
        if is_open:
            self._to.write(with_old_lists(self._file.getvalue().to_pybytes()))


@contextmanager
def other_engine(path: Path, *, by_avro: bool = False) -> Iterator[hudi.Table]:
    """The table as an engine has it that does not know its format.

    ``by_avro``: whether lists have two levels in its files.
    """
    storage, name = open_table(str(path), {}).client.storage, hudi.Table.open(path).format
    update_properties(storage, {"hoodie.table.format": "native"})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pq, "ParquetWriter", _AvroWriter if by_avro else _Writer)
        try:
            yield hudi.Table.open(path)
        finally:
            update_properties(storage, {"hoodie.table.format": name})
