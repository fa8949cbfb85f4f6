"""The toy format with one mistake each, and the check of the kit that is meant for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from hudi_core.spi import (
    Capability,
    CleanerPlan,
    CommitMetadata,
    FileIndex,
    FileSystemViewManager,
    FormatCapabilities,
    FormatCommit,
    Instant,
    LockProvider,
    MetaClientView,
    PartitionPath,
    Publication,
    TimelineView,
)
from hudi_core.spi.files import table_lister
from tests.formats import toy_format as toy


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
        files = sorted(str(one.base_file.path) for one in slices if one.base_file)
        done = [one for one in meta_client.timeline().instants if one.is_completed]
        now = max((one.effective_completion_time for one in done), default=None)
        number = 1 if base is None else base.number + 1
        return toy.make(meta_client, toy.Version(number, tuple(files), watermark=now))

    def find_publication(self, meta_client: MetaClientView, instant: Instant) -> Publication | None:
        if instant.requested_time in toy.head(meta_client).revoked:
            return None
        return super().find_publication(meta_client, instant)


@dataclass(frozen=True)
class Mistake:
    """A format with a mistake, and what finds it.

    Attributes
    ----------
    format
        The format.
    check
        Id of the check that is meant for it.
    words
        What is printed beside the sentence of the check.
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
)
