"""What one instant changes in the metadata table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from hudi_core.metadata.payload import Payload
from hudi_core.metadata.records import MetadataRecord, RecordType
from hudi_core.model.files import PartitionPath


@dataclass(frozen=True, slots=True)
class AlikeRecords:
    """New records that differ in their keys alone.

    Of very many keys, no object for each.

    Each key is there once; ``type`` and ``payload`` are those of a
    :class:`~hudi_core.metadata.records.MetadataRecord`.
    """

    keys: pa.StringArray
    type: RecordType
    payload: Payload


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """What becomes of the records of one partition of the metadata table.

    ``records`` are new or to be merged, each key once, in any order; no key of ``deleted`` is among
    them. Of a record index kept by partitions, only ``owned`` is used: the change of each
    partition's keys.
    """

    records: tuple[MetadataRecord, ...] = ()
    deleted: tuple[str, ...] = ()
    alike: tuple[AlikeRecords, ...] = ()
    owned: Mapping[PartitionPath, PartitionChange] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.deleted or self.new or any(self.owned.values()))

    @property
    def new(self) -> int:
        """Number of its records."""
        return len(self.records) + sum(len(some.keys) for some in self.alike)


Changes: TypeAlias = Mapping[str, PartitionChange]
"""Changes by partition of the metadata table."""
