"""What one instant changes in the metadata table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from hudi_core.metadata.records import MetadataRecord


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
    """

    records: tuple[MetadataRecord, ...] = ()
    deleted: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.records or self.deleted)


Changes: TypeAlias = Mapping[str, PartitionChange]
"""Changes by partition of the metadata table."""
