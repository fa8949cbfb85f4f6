"""File groups that a write replaced, and that are the table's again.

The write left the active timeline while files of them were stored: earlier releases, and other
engines, archive it where a savepoint was in the way of the clean. Their rows are old versions of
others, or were overwritten. What has been written to them since stays: a later version of a row
counts where no other file group has its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.actions.clean_of_files import retained_since, savepointed_files
from hudi_core.actions.clean_plan import (
    CleanRules,
    PartitionClean,
    Retention,
    make_clean_plan,
)
from hudi_core.actions.cleaned import replaced_by_archived
from hudi_core.actions.clustering_plan import PlannedGroup
from hudi_core.base_file.footer import read_columns
from hudi_core.config.kinds import CleanPolicy
from hudi_core.config.write import WriteConfig
from hudi_core.engine.choice import engine_for
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.capability import Capability
from hudi_core.model.difference import Difference
from hudi_core.model.files import BaseFile, FileGroup, PartitionPath
from hudi_core.model.instant import Action
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.schema.table_schema import COMMIT_TIME, RECORD_KEY
from hudi_core.services.clustering import ClusteringService
from hudi_core.services.differences import Source
from hudi_core.table_handle import OpenTable
from hudi_core.txn.clean import clean
from hudi_core.txn.table_lock import TableLock
from hudi_core.txn.table_service import locked_for_service
from hudi_core.view.file_system import FileSystemView
from hudi_core.view.replaced import replaced_groups
from hudi_core.view.storage_lister import StorageLister


@dataclass(frozen=True, slots=True)
class ReturnedGroup:
    """A file group that an archived write replaced, with its stored slices."""

    group: FileGroup
    by: InstantTime

    @property
    def files(self) -> tuple[BaseFile, ...]:
        """Its base files, the newest first."""
        slices = self.group.slices
        return tuple(one.base_file for one in slices if one.base_file is not None)

    @property
    def is_written(self) -> bool:
        """Whether something was written to it since."""
        return self.group.latest.base_instant > self.by

    @property
    def difference(self) -> Difference:
        """The validation's entry for it."""
        since = " and was written to since" if self.is_written else ""
        return Difference(
            Source.TIMELINE,
            f"file group {self.group.id.file_id} in {self.group.id.partition_path!r}",
            f"gone, as replacecommit {self.by} replaced it",
            f"that commit is archived, and the group is the table's again{since}",
        )


def returned_groups(
    client: TableMetaClient, timeline: TimelineView, view: FileSystemView
) -> list[ReturnedGroup]:
    """The present file groups that archived writes replaced.

    ``view`` has the files as storage has them at ``timeline``.
    """
    archived = replaced_by_archived(client, timeline)
    return [
        ReturnedGroup(group, archived[group.id])
        for group in (view.file_groups() if archived else ())
        if group.id in archived and group.id not in view.replaced
    ]


def find_returned(table: OpenTable) -> list[ReturnedGroup]:
    """The groups of :func:`returned_groups`; lists all folders of a table."""
    client = table.client
    timeline = client.timeline()
    lister = StorageLister(client.data, client.config.is_partitioned, client.run_map)
    view = FileSystemView(lister, timeline, replaced_groups(timeline, client.read_commit))
    return returned_groups(client, timeline, view)


def mend_returned(
    table: OpenTable, lock: TableLock, config: WriteConfig, found: Sequence[ReturnedGroup]
) -> None:
    """Take the rows that came back out of the table again.

    Groups that were not written to lose their files, as by a clean. Others, and those whose files a
    savepoint keeps, are replaced once more, with the rows that count: as by a clustering, which
    needs a table with meta columns. What can be mended in neither way is left.

    Commits of other writers to the format may be there, where it can take them in, and stay what
    they are: until the groups are gone, rows cannot be taken in.
    """
    over_foreign = Capability.TAKE_IN in table.host.capabilities
    with locked_for_service(table, lock, config, over_foreign=over_foreign) as state:
        client, timeline = state.client, state.timeline
        kept = savepointed_files(client, timeline)

        def is_kept(one: ReturnedGroup) -> bool:
            path = one.group.id.partition_path
            return any((path, file.status.name) in kept for file in one.files)

        gone = [one for one in found if not one.is_written and not is_kept(one)]
        partitions: dict[PartitionPath, PartitionClean] = {}
        for one in gone:
            path = one.group.id.partition_path
            known = partitions.get(path, PartitionClean())
            paths = (*known.paths, *(file.path for file in one.files))
            partitions[path] = PartitionClean(
                paths, whole_since=max(one.by, known.whole_since or one.by)
            )
        plan = make_clean_plan(
            client.storage.root,
            Retention(CleanRules(CleanPolicy.KEEP_LATEST_FILE_VERSIONS), None),
            partitions,
            timeline,
            [one.requested_time for one in timeline.completed().of_actions(Action.SAVEPOINT)],
            retained_since=retained_since(client, timeline),
        )
        if plan is not None:
            clean(state, lock, plan, over_foreign=over_foreign)
    left = [one for one in found if one not in gone]
    if left and _can_be_replaced(table):
        quiet = replace(config, services=replace(config.services, enabled=False))
        service = ClusteringService(
            table.as_stored().afresh,
            lock,
            engine_for(None),
            quiet,
            choose=lambda now, _: list(_without_old_rows(now, left)),
        )
        service.cluster()


def _can_be_replaced(table: OpenTable) -> bool:
    """Whether rows have their times, and no format names their files."""
    config = table.client.config
    return (
        Capability.SINGLE_STEP in table.host.capabilities
        and config.populate_meta_fields
        and not config.virtual_keys
        and config.buckets is None
    )


def _without_old_rows(table: OpenTable, left: Sequence[ReturnedGroup]) -> Iterator[PlannedGroup]:
    """Yield groups to rewrite, without the rows that do not count."""
    returned = {one.group.id: one for one in left}
    partitions = sorted({one.partition_path for one in returned})
    others: dict[PartitionPath, list[pa.ChunkedArray]] = {}
    slices = table.views().view().latest_slices(partitions)
    for one in slices:
        if one.group not in returned and one.base_file is not None:
            rows = read_columns(table.client, one.base_file.path, [RECORD_KEY])
            others.setdefault(one.partition_path, []).append(rows.column(RECORD_KEY))
    for one in slices:
        if one.group in returned and one.base_file is not None:
            rows = read_columns(table.client, one.base_file.path, [RECORD_KEY, COMMIT_TIME])
            chunks = [chunk for keys in others.get(one.partition_path, ()) for chunk in keys.chunks]
            elsewhere = pa.chunked_array(chunks, pa.string())
            keys = rows.column(RECORD_KEY)
            is_old = pc.or_(
                pc.less(rows.column(COMMIT_TIME), returned[one.group].by),
                pc.is_in(keys, value_set=elsewhere),
            )
            # of a key that a file has twice, which inserts may add, none is lost
            old = {*keys.filter(is_old).to_pylist()} - {*keys.filter(pc.invert(is_old)).to_pylist()}
            yield PlannedGroup(one.partition_path, (one.base_file,), 1, frozenset(old))
