"""The toy format with one mistake each, and the check of the kit that is meant for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.spi import (
    Capability,
    CleanerPlan,
    CommitMetadata,
    FileColumns,
    FileGroupId,
    FileIndex,
    FileStatus,
    FileSystemViewManager,
    FormatCapabilities,
    FormatCommit,
    Instant,
    LockProvider,
    MetaClientView,
    PartitionPath,
    Publication,
    TimelineView,
    ValueRanges,
)
from hudi_core.spi.files import table_lister
from tests.formats import toy_format as toy

NEVER: Final = "99991231235959999"


class CommitsTwice(toy.ToyFormat):
    """Makes a version for each call, whether it holds the instant or not."""

    def complete_write(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        base = toy.head(meta_client)
        if base.find(instant) is not None:
            return toy.make(meta_client, replace(base, number=base.number + 1))
        return super().complete_write(meta_client, commit_metadata, instant, expected_version)


class HidesAnInstant(toy.ToyFormat):
    """Finds the newest instant in no version."""

    def find_publication(self, meta_client: MetaClientView, instant: Instant) -> Publication | None:
        last = toy.head(meta_client).records[-1:]
        if last and last[0].time == instant.requested_time:
            return None
        return super().find_publication(meta_client=meta_client, instant=instant)


class AnyParent(toy.ToyFormat):
    """Commits on whatever state there is."""

    def complete_write(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        return super().complete_write(meta_client, commit_metadata, instant, None)


class ForgetsTheRollback(toy.ToyFormat):
    """Goes on naming the files that a rollback is about to delete."""

    def before_rollback(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> None:
        """Nothing."""


class DeletesLiveFiles(toy.ToyFormat):
    """Lets a clean delete files of the present state."""

    def before_clean(self, meta_client: MetaClientView, clean_plan: CleanerPlan, **_: Any) -> None:
        """Nothing."""


class DeletesByItself(toy.ToyFormat):
    """Deletes the files of a clean before they are expired."""

    def before_clean(self, meta_client: MetaClientView, clean_plan: CleanerPlan, **_: Any) -> None:
        for path in clean_plan.paths():
            (Path(str(meta_client.base_path)) / path).unlink()


class ForgetsTheWatermark(toy.ToyFormat):
    """Forgets archived instants, and that they are complete."""

    def archive_instants(
        self,
        meta_client: MetaClientView,
        archived_instants: Sequence[Instant],
        expected_version: str | None,
        **_: Any,
    ) -> None:
        base = toy.head(meta_client)
        gone = {one.requested_time for one in archived_instants}
        kept = tuple(one for one in base.records if one.time not in gone)
        toy.make(meta_client, replace(base, number=base.number + 1, records=kept))


class EmptyWhereLost(toy.ToyFactory):
    """A factory that makes the metadata of an empty table where there is none."""

    def active_timeline(self, meta_client: MetaClientView) -> TimelineView:
        if toy.newest(meta_client.storage) is None:
            toy.make(meta_client, toy.Version(1))
        return super().active_timeline(meta_client)


class NoRowsForLostMetadata(toy.ToyFormat):
    """Takes lost metadata for that of an empty table."""

    def get_timeline_factory(self) -> EmptyWhereLost:
        return EmptyWhereLost()


class BelievesStrangers(toy.ToyFormat):
    """Goes on after a commit of another writer."""

    def open(self, meta_client: MetaClientView, **given: Any) -> FormatCommit:
        base = toy.head(meta_client)
        if base.made_by != toy.OURS:
            number = base.number + 1
            return toy.make(meta_client, replace(base, number=number, made_by=toy.OURS))
        return toy.receipt(meta_client, base)


class Everybody:
    """A lock that everybody has at once."""

    def try_lock(self, timeout_s: float) -> bool:
        return True

    def unlock(self) -> None:
        """Nothing."""

    @property
    def excludes_other_processes(self) -> bool:
        return True


class OpenLock(toy.ToyFormat):
    """Offers a lock that excludes nobody."""

    def get_lock_provider(self, **given: Any) -> LockProvider | None:
        return Everybody()  # type: ignore[return-value]


class LeavesOut:
    """An index that lists all files of a partition but the last."""

    def create(self, meta_client: MetaClientView) -> FileIndex:
        index = table_lister(meta_client)
        whole = index.list_files

        class Partial(FileIndex):
            def list_partitions(self) -> Any:
                return index.list_partitions()

            def list_files(self, partitions: Sequence[PartitionPath]) -> Any:
                return {name: tuple(found)[:-1] for name, found in whole(partitions).items()}

        return Partial()


class PartialListing(toy.ToyFormat):
    """Lists all files of a partition but one."""

    def get_metadata_factory(self) -> Any:
        return LeavesOut()


class UnfencedTimeline(toy.ToyFormat):
    """Shows what only step 1 holds."""

    def get_timeline_factory(self) -> Any:
        class Whole:
            def active_timeline(self, meta_client: MetaClientView) -> Any:
                return meta_client.timeline()

        return Whole()


class TakesAgain(toy.ToyFormat):
    """Takes a fenced-off instant again."""

    def before_rollback(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> None:
        super().before_rollback(meta_client, instant, expected_version)
        base = toy.head(meta_client)
        toy.make(meta_client, replace(base, number=base.number + 1, revoked=()))


class UndoesOneInstant(toy.ToyFormat):
    """Has forgotten how to go back any further, once it has gone back."""

    def before_rollback(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> None:
        before = toy.head(meta_client)
        super().before_rollback(meta_client, instant, expected_version)
        base = toy.head(meta_client)
        if len(base.records) < len(before.records):
            records = tuple(replace(one, before=base.files) for one in base.records)
            toy.make(meta_client, replace(base, number=base.number + 1, records=records))


class UndoesTheUnknown(toy.ToyFormat):
    """Takes what the watermark alone covers for undone, and goes on naming its files."""

    def get_capabilities(self) -> FormatCapabilities:
        return FormatCapabilities.of(*super().get_capabilities(), Capability.CONVERSION)

    def rebuild(
        self, meta_client: MetaClientView, view_manager: FileSystemViewManager
    ) -> FormatCommit:
        base = toy.newest(meta_client.storage)
        slices = view_manager.view().latest_slices()
        files = {str(one.base_file.path): () for one in slices if one.base_file}
        done = [one for one in meta_client.timeline().instants if one.is_completed]
        now = max((one.effective_completion_time for one in done), default=None)
        number = 1 if base is None else base.number + 1
        return toy.make(meta_client, toy.Version(number, files, watermark=now))

    def find_publication(self, meta_client: MetaClientView, instant: Instant) -> Publication | None:
        if instant.requested_time in toy.head(meta_client).revoked:
            return None
        return super().find_publication(meta_client, instant)


class CoversYoungerWrites(toy.ToyFormat):
    """Takes all up to an archived clean for archived."""

    def archive_instants(
        self,
        meta_client: MetaClientView,
        archived_instants: Sequence[Instant],
        expected_version: str | None,
        **_: Any,
    ) -> None:
        base = toy.head(meta_client)
        last = max(one.effective_completion_time for one in archived_instants)
        kept = tuple(one for one in base.records if one.completion > last)
        toy.make(meta_client, replace(base, number=base.number + 1, records=kept, watermark=last))


class ForgetsTooMuch(toy.ToyFormat):
    """Takes for complete whatever comes, once something was archived."""

    def archive_instants(
        self,
        meta_client: MetaClientView,
        archived_instants: Sequence[Instant],
        expected_version: str | None,
        **_: Any,
    ) -> None:
        super().archive_instants(meta_client, archived_instants, expected_version)
        base = toy.head(meta_client)
        toy.make(meta_client, replace(base, number=base.number + 1, watermark=NEVER))


class RebuiltForGood(UndoesTheUnknown):
    """Takes for complete whatever comes, once its metadata was rebuilt."""

    def rebuild(
        self, meta_client: MetaClientView, view_manager: FileSystemViewManager
    ) -> FormatCommit:
        super().rebuild(meta_client, view_manager)
        base = toy.head(meta_client)
        return toy.make(meta_client, replace(base, number=base.number + 1, watermark=NEVER))


class Told(FileIndex):
    """The index of the toy format, for those who say something else in one place."""

    def __init__(self, meta_client: MetaClientView) -> None:
        self.index: FileIndex = table_lister(meta_client)

    def list_partitions(self) -> Sequence[PartitionPath]:
        return self.index.list_partitions()

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        return self.index.list_files(partitions)

    def file_ranges(self, files: FileColumns, column: str, kind: pa.DataType) -> ValueRanges | None:
        return self.index.file_ranges(files, column, kind)

    def partition_ranges(
        self, partitions: Sequence[PartitionPath], column: str, kind: pa.DataType
    ) -> ValueRanges | None:
        return self.index.partition_ranges(partitions, column, kind)


def narrowed(found: ValueRanges | None, kind: pa.DataType) -> ValueRanges | None:
    """Ranges of whole numbers that end one too early."""
    if found is None or not pa.types.is_integer(kind):
        return found
    return replace(found, maximum=pc.subtract(found.maximum, pa.scalar(1, kind)))


class NarrowFiles(Told):
    def file_ranges(self, files: FileColumns, column: str, kind: pa.DataType) -> ValueRanges | None:
        return narrowed(super().file_ranges(files, column, kind), kind)


class NarrowPartitions(Told):
    def partition_ranges(
        self, partitions: Sequence[PartitionPath], column: str, kind: pa.DataType
    ) -> ValueRanges | None:
        return narrowed(super().partition_ranges(partitions, column, kind), kind)


class NoNulls(Told):
    def file_ranges(self, files: FileColumns, column: str, kind: pa.DataType) -> ValueRanges | None:
        found = super().file_ranges(files, column, kind)
        return found and replace(found, may_be_null=np.zeros(len(found), np.bool_))


class NoGroups(Told):
    def groups_of_values(self, column: str, values: pa.Array) -> frozenset[FileGroupId] | None:
        return frozenset() if column == "count" else None


class FirstFiles(Told):
    def list_columns(self, partitions: Sequence[PartitionPath]) -> FileColumns:
        listed = self.list_files(partitions)
        return FileColumns.of_statuses({path: tuple(files)[:1] for path, files in listed.items()})


def telling(index: type[Told]) -> type[object]:
    """The toy format with an index of files of its own."""

    class Factory:
        def create(self, meta_client: MetaClientView) -> FileIndex:
            return index(meta_client)

    class Format(toy.ToyFormat):
        def get_metadata_factory(self) -> Any:
            return Factory()

    return Format


class NarrowFileRanges(telling(NarrowFiles)):  # type: ignore[misc]
    """Says of files that their numbers end one earlier than they do."""


class NarrowPartitionRanges(telling(NarrowPartitions)):  # type: ignore[misc]
    """Says of partitions that their numbers end one earlier than they do."""


class SeesNoNulls(telling(NoNulls)):  # type: ignore[misc]
    """Says of files that there is no null in them."""


class NamesNoGroup(telling(NoGroups)):  # type: ignore[misc]
    """Says of every value of a column that no file group holds it."""


class ListsFirstFiles(telling(FirstFiles)):  # type: ignore[misc]
    """Lists one file of each partition where files are asked for as columns."""


@dataclass(frozen=True)
class Mistake:
    """A format with a mistake, and what finds it.

    ``check``: id of the check that is meant for it. ``words``: what is printed beside the sentence
    of the check.
    """

    format: type[object]
    check: str
    words: str = ""


MISTAKES: Final = (
    Mistake(CommitsTwice, "F04"),
    Mistake(HidesAnInstant, "F03"),
    Mistake(AnyParent, "F16"),
    Mistake(ForgetsTheRollback, "F32"),
    Mistake(DeletesLiveFiles, "F19"),
    Mistake(DeletesByItself, "F47"),
    Mistake(ForgetsTheWatermark, "F48"),
    Mistake(NoRowsForLostMetadata, "F21"),
    Mistake(BelievesStrangers, "F22"),
    Mistake(OpenLock, "F28"),
    Mistake(PartialListing, "F29"),
    Mistake(UnfencedTimeline, "F33"),
    Mistake(TakesAgain, "F17"),
    Mistake(UndoesOneInstant, "F57"),
    Mistake(UndoesTheUnknown, "F58"),
    Mistake(NarrowFileRanges, "F59"),
    Mistake(NamesNoGroup, "F59", "('count', '=', 3) after the first writes"),
    Mistake(ListsFirstFiles, "F59"),
    Mistake(NarrowPartitionRanges, "F60", "the range of the partition"),
    Mistake(SeesNoNulls, "F60", "a null is left out of the file"),
    Mistake(ForgetsTooMuch, "F61"),
    Mistake(CoversYoungerWrites, "F62"),
    Mistake(RebuiltForGood, "F61"),
)
