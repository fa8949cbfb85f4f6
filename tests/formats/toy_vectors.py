"""The toy format with tables whose rows are deleted by their positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hudi_core.spi import (
    Capability,
    CommitMetadata,
    FileIndex,
    FileStatus,
    FileSystemViewManager,
    FormatCapabilities,
    FormatCommit,
    Instant,
    MetaClientView,
    NamedFile,
    PartitionPath,
    outgoing_groups,
    written_files,
)
from hudi_core.spi.files import Positions, deleted_positions, table_lister
from tests.formats.toy_format import Files, ToyFactory, head, record
from tests.formats.toy_services import MergingToy, is_log, record_slices


def is_split(client: MetaClientView) -> bool:
    return client.config.merge_on_read_mode == "split"


class SplitIndex(FileIndex):
    """The files of the metadata table, and those that the toy format names."""

    def __init__(self, client: MetaClientView) -> None:
        self.client, self.index = client, table_lister(client)

    def list_partitions(self) -> Sequence[PartitionPath]:
        return self.index.list_partitions()

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        return self.index.list_files(partitions)

    def named(self) -> Iterator[NamedFile]:
        for path, dead in head(self.client).files.items():
            status = self.client.data.head(path)
            yield NamedFile(path, 0 if status is None else status.size, deleted_rows=len(dead))

    def named_files(self) -> Iterator[NamedFile] | None:
        return self.named() if is_split(self.client) else None

    def deleted_positions(self, paths: Sequence[str]) -> Mapping[str, Positions]:
        files = head(self.client).files
        return {path: np.array(files[path], np.int64) for path in paths if path in files}


class SplitFactory(ToyFactory):
    def create(self, meta_client: MetaClientView) -> FileIndex:
        return SplitIndex(meta_client)


class SplitToy(MergingToy):
    """The hooks of split tables, and of those whose logs have rows."""

    def get_capabilities(self) -> FormatCapabilities:
        return FormatCapabilities.of(*super().get_capabilities(), Capability.DELETION_VECTORS)

    def get_metadata_factory(self) -> SplitFactory:
        return SplitFactory()

    def dead_rows(
        self, client: MetaClientView, body: CommitMetadata, views: FileSystemViewManager
    ) -> Files:
        """The rows that a write deletes; of a compaction, those that others have deleted since."""
        found = deleted_positions(client, body, views)
        return {path: rows.tolist() for path, rows in found.items()}

    def record_split(
        self,
        client: MetaClientView,
        body: CommitMetadata,
        instant: Instant,
        expected: str | None,
        dead: Files,
    ) -> FormatCommit:
        """Record base files in the place of those of their groups, and rows that are dead."""
        added = [str(one.path) for one in written_files(body) if not is_log(str(one.path))]
        groups = outgoing_groups(body)
        name, columns = body.operation_type, body.schema_json
        return record(client, instant, expected, name, added, groups, columns, dead=dead)

    def complete_write(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **more: Any,
    ) -> FormatCommit:
        given = meta_client, commit_metadata, instant, expected_version
        if not is_split(meta_client):
            return record_slices(*given)
        dead = self.dead_rows(meta_client, commit_metadata, more["view_manager"])
        return self.record_split(*given, dead)

    complete_compaction = complete_write
