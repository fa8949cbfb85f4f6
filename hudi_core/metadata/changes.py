"""What one instant changes in the metadata table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from hudi_core.metadata.partition_types import RecordType
from hudi_core.metadata.records import MetadataRecord, Payload


@dataclass(frozen=True, slots=True)
class AlikeRecords:
    """New records that differ in their keys alone: of very many keys, no object for each.

    Attributes
    ----------
    keys
        Each once.
    type, payload
        As of a :class:`~hudi_core.metadata.records.MetadataRecord`.
    """

    keys: pa.StringArray
    type: RecordType
    payload: Payload


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """What becomes of the records of one partition of the metadata table.

    Attributes
    ----------
    records
        New records, and what is to be merged into those that are there; each key once, in any
        order.
    deleted
        Keys that go, none of them among the records.
    alike
        Further records.
    """

    records: tuple[MetadataRecord, ...] = ()
    deleted: tuple[str, ...] = ()
    alike: tuple[AlikeRecords, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.deleted or self.new)

    @property
    def new(self) -> int:
        """Number of its records."""
        return len(self.records) + sum(len(some.keys) for some in self.alike)


Changes: TypeAlias = Mapping[str, PartitionChange]
"""Changes by partition of the metadata table."""
