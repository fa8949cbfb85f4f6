"""The toy format with one mistake each about dead rows, and the check that is meant for it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from hudi_core.spi import (
    CommitMetadata,
    FileIndex,
    FileStatus,
    FileSystemViewManager,
    FormatCommit,
    Instant,
    MetaClientView,
    NamedFile,
    PartitionPath,
    ReplaceCommitMetadata,
    RestorePlan,
)
from tests.formats import toy_format as toy
from tests.formats.toy_services import is_log
from tests.formats.toy_vectors import SplitFactory, SplitIndex, SplitToy
from tests.formats.wrong_formats import Mistake


def with_files(client: MetaClientView, before: toy.Version, files: toy.Files) -> None:
    """Put other files into the head, if that is another one than before."""
    base = toy.head(client)
    if base != before:
        toy.make(client, replace(base, number=base.number + 1, files=files))


class DropsVectors(SplitToy):
    """Names the files of a write, and no dead rows."""

    def dead_rows(self, *_: Any) -> toy.Files:
        return {}


class ChangesVectors(SplitToy):
    """Makes something else of the rows that a write deletes, see below."""

    @abstractmethod
    def changed(self, before: toy.Files, after: toy.Files, dead: toy.Files) -> toy.Files:
        """What is dead in the files after a write."""

    def record_split(
        self,
        client: MetaClientView,
        body: CommitMetadata,
        instant: Instant,
        expected: str | None,
        dead: toy.Files,
    ) -> FormatCommit:
        before = toy.head(client)
        made = super().record_split(client, body, instant, expected, dead)
        with_files(client, before, self.changed(before.files, toy.head(client).files, dead))
        return toy.receipt(client, toy.head(client)) if dead else made


class ReplacesVectors(ChangesVectors):
    """Puts the rows that a write deletes in the place of those that were dead before."""

    def changed(self, before: toy.Files, after: toy.Files, dead: toy.Files) -> toy.Files:
        return {**after, **dead}


class MovesPositions(SplitToy):
    """Counts positions from one."""

    def dead_rows(self, *given: Any) -> toy.Files:
        dead = super().dead_rows(*given)
        return {path: [row + 1 for row in rows] for path, rows in dead.items()}


class KeepsVectorsBesideTheUnion(ChangesVectors):
    """Names the dead rows of before beside those that have them all."""

    def changed(self, before: toy.Files, after: toy.Files, dead: toy.Files) -> toy.Files:
        return {**after, **{path: [*before[path], *after[path]] for path in dead}}


class CountingIndex(SplitIndex):
    def named(self) -> Iterator[NamedFile]:
        return (replace(one, deleted_rows=0) for one in super().named())


class CountingFactory(SplitFactory):
    def create(self, meta_client: MetaClientView) -> FileIndex:
        return CountingIndex(meta_client)


class CountsDeadRows(SplitToy):
    """Counts dead rows among those that are live."""

    def get_metadata_factory(self) -> CountingFactory:
        return CountingFactory()


class ForgetsVectorsByRollbacks(SplitToy):
    """Goes back to files, and not to the dead rows that they had."""

    def before_rollback(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> None:
        before = toy.head(meta_client)
        super().before_rollback(meta_client, instant, expected_version)
        files = dict.fromkeys(toy.head(meta_client).files, ())
        with_files(meta_client, before, files)


class KeepsVectorsOverRestores(SplitToy):
    """Goes back to files by a restore, and keeps all rows dead that have died since."""

    def before_restore(
        self,
        meta_client: MetaClientView,
        restore_plan: RestorePlan,
        expected_version: str | None,
        **given: Any,
    ) -> None:
        before = toy.head(meta_client)
        super().before_restore(meta_client, restore_plan, expected_version, **given)
        files = {
            path: before.files.get(path, dead) for path, dead in toy.head(meta_client).files.items()
        }
        with_files(meta_client, before, files)


class ForgetsVectorsByClusterings(SplitToy):
    """Takes a clustering for one of the whole table: nothing is dead after it."""

    def complete_clustering(
        self,
        meta_client: MetaClientView,
        replace_commit_metadata: ReplaceCommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **given: Any,
    ) -> FormatCommit:
        before = toy.head(meta_client)
        super().complete_clustering(
            meta_client, replace_commit_metadata, instant, expected_version, **given
        )
        with_files(meta_client, before, dict.fromkeys(toy.head(meta_client).files, ()))
        return toy.receipt(meta_client, toy.head(meta_client))


class TakesVectorsAlong(SplitToy):
    """Has the rows of a compacted file be dead that were so in the one before it."""

    def dead_rows(
        self, client: MetaClientView, body: CommitMetadata, views: FileSystemViewManager
    ) -> toy.Files:
        if body.operation_type != "COMPACT":
            return super().dead_rows(client, body, views)
        former = {toy.group_of(path): dead[:1] for path, dead in toy.head(client).files.items()}
        paths = [str(one.path) for one in body.stats]
        return {path: former.get(toy.group_of(path), ()) for path in paths}


class CompactsAloneInTheTable(SplitToy):
    """Takes the file of a compaction for one without dead rows."""

    def dead_rows(
        self, client: MetaClientView, body: CommitMetadata, views: FileSystemViewManager
    ) -> toy.Files:
        return {} if body.operation_type == "COMPACT" else super().dead_rows(client, body, views)


class LogLessIndex(SplitIndex):
    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        return {
            path: [one for one in files if not is_log(one.name)]
            for path, files in super().list_files(partitions).items()
        }


class LogLessFactory(SplitFactory):
    def create(self, meta_client: MetaClientView) -> FileIndex:
        return LogLessIndex(meta_client)


class ListsNoLogs(SplitToy):
    """Lists the files that it names, without the logs that say what is dead in them."""

    def get_metadata_factory(self) -> LogLessFactory:
        return LogLessFactory()


WRONG_VECTORS: Final = (
    Mistake(DropsVectors, "F64"),
    Mistake(ReplacesVectors, "F64"),
    Mistake(MovesPositions, "F64"),
    Mistake(KeepsVectorsBesideTheUnion, "F65"),
    Mistake(CountsDeadRows, "F65"),
    Mistake(ForgetsVectorsByRollbacks, "F66"),
    Mistake(KeepsVectorsOverRestores, "F66"),
    Mistake(ForgetsVectorsByClusterings, "F67"),
    Mistake(TakesVectorsAlong, "F67"),
    Mistake(CompactsAloneInTheTable, "F68"),
    Mistake(ListsNoLogs, "F69"),
)
