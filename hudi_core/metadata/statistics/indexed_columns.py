"""The columns whose ranges a table keeps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.table import TableConfig
from hudi_core.metadata.index_definitions import IndexDefinitions
from hudi_core.metadata.partition_types import COLUMN_STATS
from hudi_core.metadata.statistics.bound_forms import BoundForm, bound_form
from hudi_core.schema.table_schema import COMMIT_TIME, PARTITION_PATH, RECORD_KEY, TableSchema

META_INDEXED: Final = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)
"""The meta columns whose ranges are kept."""

IndexedColumns = Mapping[str, BoundForm]
"""Columns whose ranges are kept, by dotted path, in the order in which they are listed, with the
form of their bounds."""


@dataclass(frozen=True, slots=True)
class IndexableColumns:
    """The columns of a table that may have ranges.

    ``meta`` are the meta columns that always have ranges, empty for a table without meta columns;
    ``names`` are the top-level ones of ``forms``, which is in the order of the schema.
    """

    forms: IndexedColumns
    meta: IndexedColumns
    names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        schema: TableSchema,
        config: TableConfig,
        definitions: IndexDefinitions,
        *,
        local: Collection[str] = (),
    ) -> IndexableColumns:
        """The columns of a schema that may have ranges.

        ``local`` has the paths of timestamps that the schema calls local in Avro's JSON, from which
        other engines read it.
        """
        typed = definitions.has_bound_types(COLUMN_STATS, config)
        forms = {
            path: form
            for path, field in schema.fields.items()
            if (form := bound_form(field.type, has_value_types=typed, is_local=path in local))
        }
        found = bound_form(pa.string(), has_value_types=typed)
        has_meta = config.indexes_meta_columns
        meta = dict.fromkeys(META_INDEXED, found) if found is not None and has_meta else {}
        return cls(forms, meta, tuple(name for name in schema.names if name in forms))

    def wanted(self, config: MetadataConfig, known: Sequence[str] = ()) -> IndexedColumns:
        """The columns whose ranges are kept under some options.

        Three meta columns, and the columns that the options name or else the first ones; beside
        them those that have been kept so far. What is inside of other columns is kept where it is
        named.
        """
        return self.among([*self.asked(config), *known])

    def asked(self, config: MetadataConfig) -> Sequence[str]:
        """The columns that the options name, or else the first ones."""
        return config.stats_columns or self.names[: config.max_stats_columns]

    def among(self, paths: Iterable[str]) -> IndexedColumns:
        """The meta columns, and those of some columns that may have ranges."""
        found = dict(self.meta)
        for path in paths:
            if path in self.forms:
                found.setdefault(path, self.forms[path])
        return found
