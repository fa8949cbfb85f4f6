"""The toy format with all services: clustering, savepoints, restores; and with log files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from hudi_core.spi import (
    Action,
    Capability,
    CleanerPlan,
    CommitMetadata,
    FormatCapabilities,
    FormatCommit,
    Instant,
    MetaClientView,
    ReplaceCommitMetadata,
    RestorePlan,
    SavepointMetadata,
    State,
    TableServiceError,
    outgoing_groups,
    touched_groups,
    written_files,
)
from tests.formats.toy_format import (
    Files,
    Record,
    ToyFormat,
    Version,
    expect,
    head,
    make,
    ours,
    receipt,
)
from tests.formats.toy_format import record as record_instant

WRITES = ("commit", "deltacommit", "replacecommit")
SAVEPOINT = str(Action.SAVEPOINT)


def files_as_of(base: Version, time: str) -> Files:
    """The files right after a write."""
    at = next(n for n, one in enumerate(base.records) if (one.time, one.action) in of_write(time))
    later = base.records[at + 1 :]
    return later[0].before if later else base.files


def of_write(time: str) -> list[tuple[str, str]]:
    return [(time, action) for action in WRITES]


def taken_out(base: Version, gone: Iterable[Record], files: Files) -> Version:
    """The state without some instants, which never come back."""
    out = [*gone]
    return replace(
        base,
        number=base.number + 1,
        files=files,
        records=tuple(one for one in base.records if one not in out),
        revoked=(*base.revoked, *(one.time for one in out)),
    )


class ServingToy(ToyFormat):
    """The hooks of services."""

    def get_capabilities(self) -> FormatCapabilities:
        return FormatCapabilities.of(
            *super().get_capabilities(),
            Capability.CLUSTERING,
            Capability.SAVEPOINT,
            Capability.RESTORE,
        )

    def complete_clustering(
        self,
        meta_client: MetaClientView,
        replace_commit_metadata: ReplaceCommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        return record_instant(
            meta_client,
            instant,
            expected_version,
            replace_commit_metadata.operation_type,
            [str(one.path) for one in written_files(replace_commit_metadata)],
            touched_groups(replace_commit_metadata),
        )

    def complete_savepoint(
        self,
        meta_client: MetaClientView,
        savepoint_metadata: SavepointMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        return record_instant(meta_client, instant, expected_version)

    def complete_delete_savepoint(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> FormatCommit:
        base = ours(meta_client, head(meta_client))
        found = base.find(instant)
        if found is None:
            return receipt(meta_client, base)
        expect(base, expected_version)
        kept = tuple(one for one in base.records if one != found)
        return make(meta_client, replace(base, number=base.number + 1, records=kept))

    def before_clean(self, meta_client: MetaClientView, clean_plan: CleanerPlan, **_: Any) -> None:
        super().before_clean(meta_client, clean_plan)
        base = head(meta_client)
        for one in base.records:
            if one.action == SAVEPOINT:
                held = set(files_as_of(base, one.time)).intersection(clean_plan.paths())
                if held:
                    raise TableServiceError(
                        f"The clean would delete {min(held)} of the savepoint {one.time}",
                        "Nothing was deleted. Remove the plan.",
                    )

    def before_rollback(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> None:
        base = ours(meta_client, head(meta_client))
        found = base.find(instant)
        if found is None or instant.state is not State.COMPLETED:
            super().before_rollback(meta_client, instant, expected_version)
            return
        expect(base, expected_version)
        later = base.records[base.records.index(found) + 1 :]
        if any(one.action in WRITES for one in later):
            raise TableServiceError(
                f"Later versions of the toy table build on {instant.requested_time}",
                "Roll the later instants back first.",
            )
        make(meta_client, taken_out(base, [found], found.before))

    def before_restore(
        self,
        meta_client: MetaClientView,
        restore_plan: RestorePlan,
        expected_version: str | None,
        **_: Any,
    ) -> None:
        base = ours(meta_client, head(meta_client))
        times = [one.commit_time for one in restore_plan.instants_to_rollback]
        gone = [one for one in base.records if one.time in times and one.action in WRITES]
        missing = {*times} - {one.time for one in gone} - {*base.revoked}
        if any(time <= (base.watermark or "") for time in missing):
            raise TableServiceError(
                "The toy table has forgotten that state", "Restore a later one."
            )
        if gone:
            expect(base, expected_version)
            make(meta_client, taken_out(base, gone, gone[0].before))

    def complete_restore(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> FormatCommit:
        return record_instant(meta_client, instant, expected_version)


def is_log(path: str) -> bool:
    return path.rpartition("/")[2].startswith(".")


def record_slices(
    client: MetaClientView, metadata: CommitMetadata, instant: Instant, expected: str | None
) -> FormatCommit:
    """Record base files and logs: a base file takes the place of a slice, a log comes to one."""

    def is_later_log(base: Version, path: str) -> bool:
        """Whether it was not complete yet when the compaction was planned."""
        if not (is_log(path) and metadata.operation_type == "COMPACT"):
            return False
        time = path.rpartition("_")[0].rpartition("_")[2].partition(".")[0]
        done = next((one.completion for one in base.records if one.time == time), "")
        return done > instant.requested_time

    return record_instant(
        client,
        instant,
        expected,
        metadata.operation_type,
        [str(one.path) for one in written_files(metadata)],
        outgoing_groups(metadata),
        metadata.schema_json,
        is_later_log,
    )


class MergingToy(ServingToy):
    """The hooks of tables with log files."""

    def get_capabilities(self) -> FormatCapabilities:
        return FormatCapabilities.of(*super().get_capabilities(), Capability.MERGE_ON_READ)

    def complete_write(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        return record_slices(meta_client, commit_metadata, instant, expected_version)

    def complete_compaction(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        return record_slices(meta_client, commit_metadata, instant, expected_version)

    def complete_log_compaction(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        return record_slices(meta_client, commit_metadata, instant, expected_version)
