"""The toy format with services and one mistake each, and what finds it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from hudi_core.spi import (
    Capability,
    CleanerPlan,
    CommitMetadata,
    CommitStateUnknownError,
    FileGroupId,
    FormatCapabilities,
    FormatCommit,
    Instant,
    MetaClientView,
    Publication,
    ReplaceCommitMetadata,
    RestorePlan,
    SavepointMetadata,
    TableServiceError,
    hookimpl,
    written_files,
)
from tests.formats import toy_format as toy
from tests.formats.toy_services import MergingToy, ServingToy, files_as_of
from tests.formats.wrong_formats import Mistake


def every_version(client: MetaClientView) -> Iterator[toy.Version]:
    """All versions that there ever were, those that were gone back behind included."""
    for one in client.storage.list(toy.FOLDER):
        path = f"{toy.FOLDER}/{one.name}"
        yield toy.from_json(client.storage.read(path, toy.MAX_BYTES), path)


class ReadsEveryVersion(ServingToy):
    """Takes for complete what any version has, whether it is in the lineage or not."""

    def find_publication(self, meta_client: MetaClientView, instant: Instant) -> Publication | None:
        for version in every_version(meta_client):
            found = version.lineage().publication(instant, str(version.number))
            if found is not None:
                return found
        return None


class TrustsAnException(ServingToy):
    """Takes a write for failed whose commit raised, and deletes its files."""

    def complete_write(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        try:
            return super().complete_write(meta_client, commit_metadata, instant, expected_version)
        except CommitStateUnknownError:
            for one in written_files(commit_metadata):
                (Path(str(meta_client.base_path)) / str(one.path)).unlink(missing_ok=True)
            raise


class AddsClusteredFiles(ServingToy):
    """Names the files of a clustering beside those whose rows they have."""

    def complete_clustering(
        self,
        meta_client: MetaClientView,
        replace_commit_metadata: ReplaceCommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        added = [str(one.path) for one in written_files(replace_commit_metadata)]
        return toy.record(meta_client, instant, expected_version, "CLUSTER", added)


class ForgetsSavepoints(ServingToy):
    """Lets a clean delete files of savepoints."""

    def before_clean(self, meta_client: MetaClientView, clean_plan: CleanerPlan, **_: Any) -> None:
        toy.ToyFormat().before_clean(meta_client, clean_plan)


class LosesAFileBySavepoints(ServingToy):
    """Takes a savepoint for a change of the state, in which a file gets lost."""

    def complete_savepoint(
        self,
        meta_client: MetaClientView,
        savepoint_metadata: SavepointMetadata,
        instant: Instant,
        expected_version: str | None,
        **given: Any,
    ) -> FormatCommit:
        made = super().complete_savepoint(
            meta_client, savepoint_metadata, instant, expected_version, **given
        )
        base = toy.head(meta_client)
        files = dict([*files_as_of(base, instant.requested_time).items()][:-1])
        toy.make(meta_client, replace(base, number=base.number + 1, files=files))
        return made


class KeepsDeletedSavepoints(ServingToy):
    """Goes on refusing to clean files of a savepoint that was deleted."""

    def complete_delete_savepoint(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> FormatCommit:
        base = toy.head(meta_client)
        return toy.receipt(meta_client, base)


class RestoresFilesAlone(ServingToy):
    """Goes back to the files of a state, and keeps the instants that came after it."""

    def before_restore(
        self,
        meta_client: MetaClientView,
        restore_plan: RestorePlan,
        expected_version: str | None,
        **given: Any,
    ) -> None:
        before = toy.head(meta_client)
        super().before_restore(meta_client, restore_plan, expected_version, **given)
        base = toy.head(meta_client)
        if base != before:
            toy.make(
                meta_client,
                replace(base, number=base.number + 1, records=before.records, revoked=()),
            )


class RestoresOnce(ServingToy):
    """Refuses the plan of a restore that it is given again after a crash."""

    def before_restore(
        self,
        meta_client: MetaClientView,
        restore_plan: RestorePlan,
        expected_version: str | None,
        **given: Any,
    ) -> None:
        times = {one.commit_time for one in restore_plan.instants_to_rollback}
        if times <= {*toy.head(meta_client).revoked}:
            raise TableServiceError("That state has been restored already", "Do nothing.")
        super().before_restore(meta_client, restore_plan, expected_version, **given)


class CleansTwice(ServingToy):
    """Makes a version for each call after a clean."""

    def complete_clean(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> FormatCommit:
        base = toy.head(meta_client)
        if base.find(instant) is None:
            return super().complete_clean(meta_client, instant, expected_version)
        return toy.make(meta_client, replace(base, number=base.number + 1))


class ForgetsAHookMarker:
    """A plugin of the contract without a base class, in which a marker is missing."""

    @hookimpl
    def get_capabilities(self) -> FormatCapabilities:
        return ServingToy().get_capabilities()

    def complete_write(self) -> None:
        """Nothing: nobody would call it."""


class KeepsWhatIsReplaced(ServingToy):
    """Goes on naming the file groups that an overwriting replaces."""

    def complete_write(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        added = [str(one.path) for one in written_files(commit_metadata)]
        written: set[FileGroupId] = {toy.group_of(one) for one in added}
        return toy.record(meta_client, instant, expected_version, "", added, written)


class ForgetsCompactions(ServingToy):
    """Declares log files, and has no hooks for their compactions."""

    def get_capabilities(self) -> FormatCapabilities:
        return FormatCapabilities.of(*super().get_capabilities(), Capability.MERGE_ON_READ)


class DropsCompactions(MergingToy):
    """Takes note of no compaction, as no row changes."""

    def complete_compaction(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        return toy.receipt(meta_client, toy.head(meta_client))


class DropsLogCompactions(MergingToy):
    """Takes note of no log compaction, as no row and no base file changes."""

    def complete_log_compaction(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        return toy.receipt(meta_client, toy.head(meta_client))


class KeepsMergedLogs(MergingToy):
    """Names the base file of a compaction beside the slice that it merges."""

    def complete_compaction(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        added = [str(one.path) for one in written_files(commit_metadata)]
        return toy.record(meta_client, instant, expected_version, "COMPACT", added)


class TakesLogsForBaseFiles(MergingToy):
    """Puts every file that a write brings in the place of its group, logs too."""

    def complete_write(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **given: Any,
    ) -> FormatCommit:
        return toy.ToyFormat.complete_write(
            self, meta_client, commit_metadata, instant, expected_version, **given
        )


WRONG_SERVICES: Final = (
    Mistake(ReadsEveryVersion, "F13"),
    Mistake(ForgetsSavepoints, "F36"),
    Mistake(AddsClusteredFiles, "F49"),
    Mistake(KeepsDeletedSavepoints, "F50", "The clean would delete"),
    Mistake(LosesAFileBySavepoints, "F50"),
    Mistake(RestoresFilesAlone, "F51"),
    Mistake(KeepsWhatIsReplaced, "F52", "the format's own reader has too much"),
    Mistake(RestoresOnce, "F53", "That state has been restored already"),
    Mistake(CleansTwice, "F54", "another answer the second time"),
    Mistake(ForgetsAHookMarker, "F55", "not marked with @hookimpl"),
    Mistake(ForgetsCompactions, "F55", "it lacks complete_compaction, complete_log_compaction"),
    Mistake(TrustsAnException, "F56"),
    Mistake(DropsCompactions, "F63"),
    Mistake(DropsLogCompactions, "F63"),
    Mistake(KeepsMergedLogs, "F63"),
    Mistake(TakesLogsForBaseFiles, "F63"),
)
