"""Clusterings on the timeline: their plans, and the file groups these name.

A plan on disk may have been written by anybody who can write the table's folder. To keep writers
off its file groups no more is needed than their names; before it is run, it has to name nothing but
base files and log files of the table in their partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from hudi_core.actions.stored_paths import is_data_path, relative_path
from hudi_core.errors import CorruptMetadataError, InstantNotFoundError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.actions import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    RequestedReplaceMetadata,
)
from hudi_core.model.commit import WriteOperation
from hudi_core.model.extra_metadata import RUN_AT_ONCE_KEY
from hudi_core.model.files import (
    BaseFileName,
    FileGroupId,
    FileId,
    LogFileName,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.protocols import TimelineView
from hudi_core.storage.location import parse_location
from hudi_core.timeline.serde import decode_requested_replace, encode

LogsOfFiles: TypeAlias = Mapping[str, frozenset[str]]
"""Paths of base files, each with those of the logs of its slice."""


@dataclass(frozen=True)
class PendingClustering:
    """A clustering that is scheduled or under way.

    ``instant`` is as far as the clustering has come; ``body`` is what its requested file holds,
    ``path`` that file, for errors.
    """

    instant: Instant
    body: RequestedReplaceMetadata
    path: str

    @property
    def plan(self) -> ClusteringPlan:
        """What it rewrites; nothing for a file without a plan."""
        return self.body.clustering_plan or ClusteringPlan()

    @property
    def is_scheduled(self) -> bool:
        """Whether another process than its scheduler may run it."""
        return RUN_AT_ONCE_KEY not in (self.body.extra_metadata or {})

    @cached_property
    def file_groups(self) -> frozenset[FileGroupId]:
        """The file groups that it is about to replace."""
        return frozenset(
            FileGroupId(PartitionPath(one.partition_path or ""), FileId(one.file_id or ""))
            for group in self.plan.input_groups or ()
            for one in group.slices or ()
        )

    def own_groups(self, root: str) -> Iterator[tuple[PartitionPath, LogsOfFiles, int]]:
        """Yield partition, files and number of outputs of each group.

        Base files are named by their paths relative to the table, and have the paths of their logs.
        """
        seen: set[str] = set()
        for group in self.plan.input_groups or ():
            files: dict[str, frozenset[str]] = {}
            for one in group.slices or ():
                path = self._own_path(one, root)
                if path in seen:
                    raise self._forged(f"it names {path!r} twice")
                seen.add(path)
                files[path] = frozenset(self._own_logs(one, root))
            yield self._partition(group), files, max(1, group.num_output_file_groups or 1)

    def _partition(self, group: ClusteringGroup) -> PartitionPath:
        partitions = {one.partition_path or "" for one in group.slices or ()}
        if len(partitions) != 1:
            raise self._forged("a group has not the files of one partition")
        return PartitionPath(partitions.pop())

    def _own_path(self, one: ClusteringSlice, root: str) -> str:
        path = one.data_file_path or ""
        relative = relative_path(parse_location(root), path)
        name = BaseFileName.parse(relative.rpartition("/")[2])
        if (
            name is None
            or not is_data_path(relative)
            or name.file_id != one.file_id
            or relative != join_path(one.partition_path or "", str(name))
        ):
            raise self._forged(f"it names {path!r}, which is no base file of its file group")
        if one.bootstrap_file_path:
            raise self._forged(f"{path!r} is built on another file")
        return relative

    def _own_logs(self, one: ClusteringSlice, root: str) -> Iterator[str]:
        for path in one.delta_file_paths or ():
            # Hudi names them with their folders or without
            text = path.rpartition("/")[2]
            name, own = LogFileName.parse(text), join_path(one.partition_path or "", text)
            is_own = path == text or relative_path(parse_location(root), path) == own
            if name is None or not is_own or name.file_id != one.file_id:
                raise self._forged(f"it names {path!r}, which is no log file of its file group")
            yield own

    def _forged(self, reason: str) -> CorruptMetadataError:
        return CorruptMetadataError(
            self.path,
            f"as a clustering plan, {reason}",
            "Nothing was changed. Remove the plan if it is not from a writer you trust: "
            f"`hudi rollback PATH {self.instant.requested_time}`.",
        )


def plan_body(plan: ClusteringPlan, *, at_once: bool) -> bytes:
    """The requested file of a clustering.

    ``at_once`` means that the maker of the plan runs it too.
    """
    extra = {RUN_AT_ONCE_KEY: "true"} if at_once else {}
    return encode(RequestedReplaceMetadata(WriteOperation.CLUSTER.value, plan, extra))


def read_clustering(client: TableMetaClient, instant: Instant) -> PendingClustering:
    """A clustering with its plan."""
    active, requested = client.active, instant.to(State.REQUESTED)
    path = f"{client.storage.root}/{active.path(requested)}"
    try:
        body = decode_requested_replace(active.read(requested), path)
    except InstantNotFoundError as error:
        raise CorruptMetadataError(
            path,
            "the plan of a pending clustering is missing",
            f"Restore it, or give the clustering up: `hudi rollback {client.base_path} "
            f"{instant.requested_time}`.",
        ) from error
    return PendingClustering(instant, body, path)


def pending_clusterings(
    client: TableMetaClient, timeline: TimelineView
) -> tuple[PendingClustering, ...]:
    """The clusterings of a timeline that are not complete, oldest first."""
    return tuple(
        read_clustering(client, one)
        for one in timeline.instants
        if one.action is Action.CLUSTERING and not one.is_completed
    )


def groups_under_clustering(
    client: TableMetaClient, timeline: TimelineView
) -> Mapping[FileGroupId, Instant]:
    """File groups that pending clusterings are about to replace, with the clustering."""
    return {
        group: one.instant
        for one in pending_clusterings(client, timeline)
        for group in one.file_groups
    }
