"""Record keys of stored files: read, or made again (RFC-21).

Who needs the keys of a file asks here, and does not know which of the two it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.errors import DataFileError, InvalidOptionError, RecordKeyError
from hudi_core.keygen import bare_key_field, key_generator
from hudi_core.meta_client import TableMetaClient
from hudi_core.schema.alignment import align, counterparts
from hudi_core.schema.table_schema import RECORD_KEY, TableSchema


@dataclass(frozen=True)
class FileKeys:
    """How record keys of files are had; sent to executors.

    ``schema`` is ``None`` for a table whose keys are read, not made: its columns are not needed.
    """

    base_path: str
    config: TableConfig
    schema: TableSchema | None

    @classmethod
    def of(cls, client: TableMetaClient) -> FileKeys:
        """Those of an open table."""
        if not client.config.makes_keys:
            return cls(client.base_path, client.config, None)
        return cls(client.base_path, client.config, _schema(client))

    @classmethod
    def made_by(cls, client: TableMetaClient) -> FileKeys:
        """Those that the table's columns make, whether it stores keys or not."""
        config = client.config
        if not config.record_key_fields:
            raise InvalidOptionError(
                TableKeys.record_key_fields.key,
                None,
                "the table has no record key, and keys that are generated when rows are written "
                "cannot be made again of a row",
                "Only tables with key columns can have virtual keys.",
            )
        makes = config if config.makes_keys else replace(config, virtual_keys=True)
        return cls(client.base_path, makes, _schema(client))

    @property
    def are_made(self) -> bool:
        """Whether keys are made of other columns."""
        return self.config.makes_keys

    @cached_property
    def _fields(self) -> list[pa.Field]:
        if not self.are_made or self.schema is None:
            return [pa.field(RECORD_KEY, pa.string())]
        tops = dict.fromkeys(name.partition(".")[0] for name in self.config.record_key_fields)
        return [self.schema.arrow.field(name) for name in tops]

    @property
    def made_of(self) -> list[str]:
        """Names of the top-level columns that keys are made of."""
        return [field.name for field in self._fields]

    @property
    def same_column(self) -> str | None:
        """A column of strings that equals the record key, if any."""
        name = bare_key_field(self.config)
        if not self.are_made or self.schema is None or name is None:
            return None
        return name if pa.types.is_string(self.schema.arrow.field(name).type) else None

    def columns(self, stored: Sequence[pa.Field], path: str) -> list[str]:
        """Names of a file's columns that make up its keys."""
        found = counterparts(stored, self._fields)
        for wanted, own in zip(self._fields, found, strict=True):
            if own is None and self.are_made:
                raise RecordKeyError(
                    f"The data file {path} of the table at {self.base_path} has no column "
                    f"{wanted.name}, of which its virtual record keys are made",
                    "Columns of the key have to be in every file: take this one out by rolling its "
                    "instant back, or copy the rows into a new table with another key.",
                    columns=(wanted.name,),
                    path=path,
                )
            if own is None:
                raise DataFileError(self.base_path, f"{path} has no column {wanted.name}")
        return [own.name for own in found if own is not None]

    def of_rows(self, rows: pa.Table, stored: Sequence[pa.Field], path: str) -> pa.ChunkedArray:
        """The record keys of rows of a file."""
        if not self.are_made:
            (name,) = self.columns(stored, path)
            return rows.column(name).cast(pa.string())
        return self.made(align(rows, stored, pa.schema(self._fields)), path)

    def made(self, rows: pa.Table, path: str) -> pa.ChunkedArray:
        """The record keys that rows in the table's types make."""
        assert self.schema is not None  # noqa: S101 - only keys that are read have none
        generator = key_generator(self.config, self.schema, knows_partitions=False)
        try:
            made = [
                generator.record_keys(batch) for batch in rows.select(self.made_of).to_batches()
            ]
        except RecordKeyError as error:
            raise RecordKeyError(
                f"Virtual record keys of {path} cannot be made: {error.what}",
                "Write the rows of its partition again, each with a key: insert_overwrite.",
                path=path,
            ) from error
        return pa.chunked_array(made, pa.string())


def _schema(client: TableMetaClient) -> TableSchema:
    """Columns among which those of the key are.

    They never change: the schema at creation spares a look at the timeline.
    """
    config = client.config
    text = config.create_schema
    return TableSchema.from_avro(text, config.field_ids) if text else client.schema
