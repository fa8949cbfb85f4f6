"""One typed method for each hook of a format.

``view_manager`` is supplied here; what hooks return is guarded as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import ref

from hudi_core.config.format_option import FormatOption
from hudi_core.errors import TableClosedError
from hudi_core.metadata.lister import table_lister
from hudi_core.model.actions import (
    CleanerPlan,
    CleanMetadata,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    SavepointMetadata,
)
from hudi_core.model.client import (
    FileSystemViewManager,
    MetaClientView,
    SliceView,
    TableSettings,
)
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteStatus
from hudi_core.model.format import (
    ConflictResolutionStrategy,
    FormatCommit,
    MetadataFactory,
    Publication,
    TimelineFactory,
)
from hudi_core.model.found_table import FoundTable
from hudi_core.model.instant import Instant
from hudi_core.model.protocols import LockProvider, TimelineView
from hudi_core.model.registration import Registration
from hudi_core.plugin.calls import HookCalls
from hudi_core.plugin.format_options import (
    checked_options,
)
from hudi_core.plugin.guarded import GuardedLock, GuardedTimelineFactory, guarded_strategy
from hudi_core.plugin.guarded_index import GuardedMetadataFactory
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.safe_path import require_safe_path
from hudi_core.view.file_system import ViewManager


class HookMethods:
    """The hooks of one format, as methods."""

    def __init__(self, calls: HookCalls) -> None:
        self.calls = calls

    # --- the format and its metadata -------------------------------------------------------------

    def create(self, meta_client: MetaClientView) -> FormatCommit:
        return self._receipt("create", meta_client, _TableViews(meta_client))

    def open(self, meta_client: MetaClientView) -> FormatCommit:
        return self._receipt("open", meta_client)

    def rebuild(self, meta_client: MetaClientView) -> FormatCommit:
        return self._receipt("rebuild", meta_client, _TableViews(meta_client))

    def get_options(self) -> tuple[FormatOption[Any], ...] | None:
        found: Sequence[FormatOption[Any]] | None = self.calls.answer("get_options")
        return None if found is None else checked_options(self.calls.guard, found)

    def check_schema(
        self, settings: TableSettings, schema: TableSchema, before: TableSchema | None
    ) -> None:
        self.calls.answer("check_schema", settings=settings, schema=schema, before=before)

    def check_files(self, meta_client: MetaClientView) -> None:
        views = _TableViews(meta_client)
        self.calls.answer("check_files", meta_client=meta_client, view_manager=views)

    def check_creation(self, meta_client: MetaClientView) -> None:
        self.calls.answer("check_creation", meta_client=meta_client)

    def get_metadata_folders(self, meta_client: MetaClientView) -> tuple[str, ...]:
        hook = "get_metadata_folders"
        found: tuple[str, ...] | None = self.calls.answer(hook, meta_client=meta_client)
        for one in found or ():
            self.calls.guard.require(hook, one, (str,), "a tuple of str")
            require_safe_path(one)
        return found or ()

    def get_registration(self, meta_client: MetaClientView) -> Registration | None:
        found: Registration | None = self.calls.answer("get_registration", meta_client=meta_client)
        return found

    def find_table(self, meta_client: MetaClientView) -> FoundTable | None:
        found: FoundTable | None = self.calls.answer("find_table", meta_client=meta_client)
        return found

    def find_publication(self, meta_client: MetaClientView, instant: Instant) -> Publication | None:
        found: Publication | None = self.calls.answer(
            "find_publication", meta_client=meta_client, instant=instant
        )
        return found

    def get_timeline_factory(self) -> TimelineFactory:
        factory: TimelineFactory = self.calls.answer("get_timeline_factory")
        return GuardedTimelineFactory(self.calls.guard, factory)

    def get_metadata_factory(self) -> MetadataFactory:
        factory: MetadataFactory = self.calls.answer("get_metadata_factory")
        return GuardedMetadataFactory(self.calls.guard, factory, self.get_timeline_factory)

    def get_lock_provider(
        self, meta_client: MetaClientView, lock_options: Mapping[str, str]
    ) -> LockProvider | None:
        provider: LockProvider | None = self.calls.answer(
            "get_lock_provider", meta_client=meta_client, lock_options=lock_options
        )
        return None if provider is None else GuardedLock(self.calls.guard, provider)

    def get_conflict_resolution_strategy(
        self, meta_client: MetaClientView
    ) -> ConflictResolutionStrategy | None:
        strategy: ConflictResolutionStrategy | None = self.calls.answer(
            "get_conflict_resolution_strategy", meta_client=meta_client
        )
        return None if strategy is None else guarded_strategy(self.calls.guard, strategy)

    # --- actions ---------------------------------------------------------------------------------

    def check_write(
        self, meta_client: MetaClientView, commit_metadata: CommitMetadata, instant: Instant
    ) -> None:
        self._tell("check_write", meta_client, commit_metadata=commit_metadata, instant=instant)

    def complete_write(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        write_statuses: Sequence[WriteStatus] = (),
        expected_version: str | None = None,
    ) -> FormatCommit:
        return self._receipt(
            "complete_write",
            meta_client,
            commit_metadata=commit_metadata,
            instant=instant,
            write_statuses=write_statuses,
            expected_version=expected_version,
        )

    def complete_clustering(
        self,
        meta_client: MetaClientView,
        replace_commit_metadata: ReplaceCommitMetadata,
        instant: Instant,
        write_statuses: Sequence[WriteStatus] = (),
        expected_version: str | None = None,
    ) -> FormatCommit:
        return self._receipt(
            "complete_clustering",
            meta_client,
            replace_commit_metadata=replace_commit_metadata,
            instant=instant,
            write_statuses=write_statuses,
            expected_version=expected_version,
        )

    def complete_schema_change(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        expected_version: str | None = None,
    ) -> FormatCommit:
        return self._receipt(
            "complete_schema_change",
            meta_client,
            commit_metadata=commit_metadata,
            instant=instant,
            expected_version=expected_version,
        )

    def before_clean(
        self,
        meta_client: MetaClientView,
        clean_plan: CleanerPlan,
        instant: Instant,
        expected_version: str | None = None,
    ) -> None:
        self._tell(
            "before_clean",
            meta_client,
            clean_plan=clean_plan,
            instant=instant,
            expected_version=expected_version,
        )

    def complete_clean(
        self,
        meta_client: MetaClientView,
        clean_metadata: CleanMetadata,
        instant: Instant,
        expected_version: str | None = None,
    ) -> FormatCommit:
        return self._receipt(
            "complete_clean",
            meta_client,
            clean_metadata=clean_metadata,
            instant=instant,
            expected_version=expected_version,
        )

    def archive_instants(
        self,
        meta_client: MetaClientView,
        archived_instants: Sequence[Instant],
        expected_version: str | None = None,
    ) -> None:
        self._tell(
            "archive_instants",
            meta_client,
            archived_instants=archived_instants,
            expected_version=expected_version,
        )

    def before_rollback(
        self,
        meta_client: MetaClientView,
        instant: Instant,
        expected_version: str | None = None,
    ) -> None:
        self._tell(
            "before_rollback",
            meta_client,
            instant=instant,
            expected_version=expected_version,
        )

    def complete_rollback(
        self,
        meta_client: MetaClientView,
        rollback_metadata: RollbackMetadata,
        instant: Instant,
        expected_version: str | None = None,
    ) -> FormatCommit:
        return self._receipt(
            "complete_rollback",
            meta_client,
            rollback_metadata=rollback_metadata,
            instant=instant,
            expected_version=expected_version,
        )

    def complete_savepoint(
        self,
        meta_client: MetaClientView,
        savepoint_metadata: SavepointMetadata,
        instant: Instant,
        expected_version: str | None = None,
    ) -> FormatCommit:
        return self._receipt(
            "complete_savepoint",
            meta_client,
            savepoint_metadata=savepoint_metadata,
            instant=instant,
            expected_version=expected_version,
        )

    def complete_delete_savepoint(
        self,
        meta_client: MetaClientView,
        instant: Instant,
        expected_version: str | None = None,
    ) -> FormatCommit:
        return self._receipt(
            "complete_delete_savepoint",
            meta_client,
            instant=instant,
            expected_version=expected_version,
        )

    def check_restore(self, meta_client: MetaClientView, restore_plan: RestorePlan) -> None:
        self._tell("check_restore", meta_client, restore_plan=restore_plan)

    def before_restore(
        self,
        meta_client: MetaClientView,
        restore_plan: RestorePlan,
        instant: Instant,
        expected_version: str | None = None,
    ) -> None:
        self._tell(
            "before_restore",
            meta_client,
            restore_plan=restore_plan,
            instant=instant,
            expected_version=expected_version,
        )

    def complete_restore(
        self,
        meta_client: MetaClientView,
        restore_metadata: RestoreMetadata,
        instant: Instant,
        expected_version: str | None = None,
    ) -> FormatCommit:
        return self._receipt(
            "complete_restore",
            meta_client,
            restore_metadata=restore_metadata,
            instant=instant,
            expected_version=expected_version,
        )

    def _receipt(
        self,
        hook: str,
        meta_client: MetaClientView,
        views: FileSystemViewManager | None = None,
        **arguments: object,
    ) -> FormatCommit:
        receipt: FormatCommit = self._tell(hook, meta_client, views, **arguments)
        return receipt

    def _tell(
        self,
        hook: str,
        meta_client: MetaClientView,
        views: FileSystemViewManager | None = None,
        **arguments: object,
    ) -> Any:
        views = views or _Views(self.calls.name, ref(self), meta_client)
        return self.calls.answer(hook, meta_client=meta_client, view_manager=views, **arguments)


@dataclass(frozen=True, slots=True)
class _TableViews:
    """Views of a table whose format has no trustworthy metadata yet."""

    meta_client: MetaClientView

    def view(self, timeline: TimelineView | None = None) -> SliceView:
        """Return the view as of ``timeline``.

        By default of all that step 1 has completed.
        """
        client = self.meta_client
        return ViewManager(client.read_commit, table_lister(client), client.timeline).view(timeline)


@dataclass(frozen=True, slots=True)
class _Views:
    """Views of a table for its format's hooks, read on demand.

    They do not hold the format: one that keeps them is closed all the same.
    """

    name: str
    host: ref[HookMethods]
    meta_client: MetaClientView

    def view(self, timeline: TimelineView | None = None) -> SliceView:
        """Return the view as of ``timeline``, by default the fenced one."""
        client, host = self.meta_client, self.host()
        if host is None:
            raise TableClosedError(self.name)
        lister = host.get_metadata_factory().create(client)
        fenced = host.get_timeline_factory().active_timeline
        return ViewManager(client.read_commit, lister, lambda: fenced(client)).view(timeline)
