"""Which partitions can hold rows that a filter accepts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from hudi_core.config.kinds import KeyGeneratorType
from hudi_core.config.table import TableConfig
from hudi_core.errors import PartitionValueError, UnsafePathError
from hudi_core.model.files import PartitionPath
from hudi_core.model.schema import PARTITION_PATH
from hudi_core.storage.partition_path import PartitionPathCodec

_VALUE_IN_PATH: Final = frozenset({KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX})
"""Key generators that put the column's own value into the path, not something made from it."""
_KEYGEN_PROPERTIES: Final = frozenset(
    {"hoodie.table.keygenerator.type", "hoodie.table.keygenerator.class"}
)
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class PartitionPruner:
    """Decides from partition paths alone, before anything is listed.

    A path says something about ``_hoodie_partition_path`` always, and about a partition column
    where its text stands for one value only: texts, integers, booleans and dates. What it does not
    say for certain (nulls and empty texts share one path; Hudi has written timestamps in several
    forms) never excludes a partition.

    Parameters
    ----------
    config
        The table's configuration.
    schema
        Columns of the rows, as filters see them.
    """

    def __init__(self, config: TableConfig, schema: pa.Schema) -> None:
        self._fields = config.partition_fields
        self._schema = schema
        self._codec = PartitionPathCodec(
            config.partition_fields, config.hive_style, config.url_encode
        )
        # a table of an early release that does not name its key generator may have any
        named = not config.raw or not _KEYGEN_PROPERTIES.isdisjoint(config.raw)
        self._says_value = named and config.keygen_type in _VALUE_IN_PATH

    def values(self, path: PartitionPath) -> Mapping[str, str | None]:
        """Return the texts of a path by partition field; empty where it does not decode."""
        if not self._fields:
            return {}
        try:
            values = self._codec.decode(path)
        except (PartitionValueError, UnsafePathError):
            return {}
        return (
            dict(zip(self._fields, values, strict=False))
            if len(values) == len(self._fields)
            else {}
        )

    def keep(
        self, partitions: Sequence[PartitionPath], expression: pc.Expression | None
    ) -> tuple[PartitionPath, ...]:
        """Return the partitions that may hold rows ``expression`` accepts, in the same order."""
        if expression is None or not self._fields:
            return tuple(partitions)
        # fragments are never opened here: Arrow simplifies the filter by what each is known to hold
        file_format, nowhere = ds.ParquetFileFormat(), pafs.LocalFileSystem()
        fragments = [
            file_format.make_fragment(str(n), nowhere, partition_expression=self._known(path))
            for n, path in enumerate(partitions)
        ]
        dataset = ds.FileSystemDataset(fragments, self._schema, file_format, nowhere)
        kept = sorted(int(found.path) for found in dataset.get_fragments(filter=expression))
        return tuple(partitions[n] for n in kept)

    def _known(self, path: PartitionPath) -> pc.Expression:
        known = pc.scalar(True)
        if PARTITION_PATH in self._schema.names:
            known = pc.field(PARTITION_PATH) == pa.scalar(path, pa.string())
        if self._says_value:
            for name, text in self.values(path).items():
                value = self._typed(name, text)
                if value is not None:
                    known = known & (pc.field(name) == value)
        return known

    def _typed(self, name: str, text: str | None) -> pa.Scalar | None:
        # a slash is part of a value, or was a dash of a date before Hudi made folders of it
        if text is None or "/" in text or name not in self._schema.names:
            return None
        kind = self._schema.field(name).type
        certain = (
            pa.types.is_string(kind)
            or (pa.types.is_integer(kind) and _INTEGER.fullmatch(text))
            or (pa.types.is_boolean(kind) and text in ("true", "false"))
            or (pa.types.is_date32(kind) and _DATE.fullmatch(text))
        )
        if not certain:
            return None
        try:
            return pa.scalar(text).cast(kind)
        except pa.ArrowInvalid:
            return None
