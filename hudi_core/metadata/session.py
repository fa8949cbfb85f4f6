"""A metadata table that is kept in step with its table (RFC-15).

What an action changes is recorded in every partition that the metadata table has, before the
action completes. Everything here runs under the table's lock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.metadata.changes import Changes
from hudi_core.metadata.index_definitions import IndexDefinitions, put_definitions
from hudi_core.metadata.partitions.base import MetadataPartition
from hudi_core.metadata.partitions.registry import partitions_of
from hudi_core.metadata.state import MetadataState
from hudi_core.metadata.writer import write_deltacommit
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.metering import Metric


@dataclass(frozen=True, slots=True)
class MetadataSession:
    """Keeps one metadata table while the table's lock is held."""

    tables: MetadataState
    config: MetadataConfig

    @property
    def partitions(self) -> list[MetadataPartition]:
        """Those that have to be kept."""
        return partitions_of(self.tables.partitions.all)

    def write(
        self, time: InstantTime, changes: Changes, definitions: IndexDefinitions
    ) -> MetadataState:
        """Commit the changes of an instant about to complete."""
        tables = self.tables
        if definitions != tables.definitions:
            put_definitions(tables.client.storage, definitions)
            tables = replace(tables, definitions=definitions)
        by_value = [one.name for one in self.partitions if one.is_by_value(definitions)]
        least, _ = self.config.partitioned_index_groups
        with tables.client.meter.time(Metric.SYNC):
            return write_deltacommit(tables, time, changes, by_value, least)
