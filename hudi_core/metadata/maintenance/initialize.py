"""The first building of partitions of the metadata table.

Each partition is one commit of its own, and the table is listed once for all of them. Readers do
not use a partition before the table's properties name it. Everything here runs under the table's
lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.metadata.log.completeness import BULK_INSERT, shards_stated
from hudi_core.metadata.log.file_bytes import (
    encode_base_file,
    encode_first_log_file,
    encode_partition_mark,
)
from hudi_core.metadata.log.records import MetadataRecord
from hudi_core.metadata.log.writer import (
    NewFile,
    begin_deltacommit,
    complete_deltacommit,
    log_stat,
    shard_numbers,
)
from hudi_core.metadata.partition_types import shard_file_id
from hudi_core.metadata.partitions.base import GroupCountFacts, MetadataPartition
from hudi_core.metadata.partitions.listed import ListedTable
from hudi_core.metadata.state import MetadataState
from hudi_core.model.commit import NO_PREVIOUS_COMMIT, WriteStat
from hudi_core.model.files import PARTITION_METADATA_FILE, BaseFileName, LogFileName, join_path
from hudi_core.model.instant_time import InstantTime


@dataclass
class PartitionBuilder:
    """Builds partitions of a metadata table from one listing of the table.

    ``tables`` and the definitions of ``table`` include what was built so far. ``files`` are the
    paths put below the metadata table, but for its timeline.
    """

    tables: MetadataState
    table: ListedTable
    files: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, tables: MetadataState, config: MetadataConfig) -> PartitionBuilder:
        """The builder of a table, under options."""
        return cls(tables, ListedTable(tables.client, config, tables.definitions))

    @property
    def built(self) -> MetadataState:
        """The tables with what was built, and with its definitions."""
        return replace(self.tables, definitions=self.table.definitions)

    def build(self, partition: MetadataPartition, time: InstantTime) -> None:
        """Build one partition as the deltacommit of a time.

        It has no files yet.

        Readers do not use it before the table's properties name it.
        """
        self.put(partition, time, list(partition.build(self.table)))

    def put(
        self, partition: MetadataPartition, time: InstantTime, records: Sequence[MetadataRecord]
    ) -> None:
        """Put the records of a partition, made of :attr:`table`.

        See :meth:`build`.
        """
        name = partition.name
        by_value = partition.is_by_value(self.table.definitions)
        self.tables = begin_deltacommit(self.tables, time)
        files = [NewFile(join_path(name, PARTITION_METADATA_FILE), encode_partition_mark(time))]
        now = self.tables.next_time()
        for owner, own in partition.by_owner(self.table, records).items():
            count = partition.group_count(GroupCountFacts(self.table.config, owner, len(own)))
            shards = shard_numbers([record.key for record in own], count, by_value)
            held = set(shards)
            for shard in range(count):
                log = LogFileName(shard_file_id(name, shard, owner), time, 1, "0-0-0")
                # a group without a base file is named by its log, so that its loss is noticed
                files.append(_first_log(name, log, is_named=shard not in held))
            numbered = sorted(zip(shards, range(len(own)), strict=True))
            for shard, found in groupby(numbered, key=lambda pair: pair[0]):
                base = BaseFileName(
                    shard_file_id(name, shard, owner), f"{shard}-0-0", time, ".hfile"
                )
                some = [own[number] for _, number in found]
                files.append(self._base_file(name, base, now, some))
        self.files += [one.path for one in files]
        # no file group is there that it did not make
        stated = shards_stated({name: {}})
        self.tables = complete_deltacommit(self.tables, time, files, BULK_INSERT, stated)

    def _base_file(
        self,
        partition: str,
        parsed: BaseFileName,
        now: InstantTime,
        records: Sequence[MetadataRecord],
    ) -> NewFile:
        name = str(parsed)
        data = encode_base_file(records, self.tables.metadata.config, name, now)
        path = join_path(partition, name)
        stat = WriteStat(
            file_id=parsed.file_id,
            path=path,
            prev_commit=NO_PREVIOUS_COMMIT,
            num_writes=len(records),
            num_inserts=len(records),
            total_write_bytes=len(data),
            file_size_in_bytes=len(data),
            partition_path=partition,
        )
        return NewFile(path, data, stat)


def _first_log(partition: str, name: LogFileName, *, is_named: bool) -> NewFile:
    path, data = join_path(partition, str(name)), encode_first_log_file(name.instant)
    stat = log_stat(name, partition, len(data), NO_PREVIOUS_COMMIT)
    return NewFile(path, data, stat if is_named else None)
