"""The typed front of a table's format: one method per hook.

Every open table has its own host with its own plugin manager, which holds the table's one format
and the installed observers; :mod:`hudi_core.plugin.calls` says what happens around a call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hudi_core.config.format_option import FormatOption
from hudi_core.metadata.lister import table_lister
from hudi_core.model import actions
from hudi_core.model.capability import Capability, FormatCapabilities
from hudi_core.model.client import MetaClientView, SliceView, TableSettings
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
from hudi_core.plugin.calls import NOTHING, HookCalls
from hudi_core.plugin.capability import require
from hudi_core.plugin.format_options import (
    check_options,
    checked_options,
    given_options,
    stored_options,
)
from hudi_core.plugin.guarded import GuardedLock, GuardedTimelineFactory, guarded_strategy
from hudi_core.plugin.guarded_lister import GuardedMetadataFactory
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.safe_path import check_path
from hudi_core.view.manager import ViewManager


class FormatHost:
    """One table's format, and the observers around it.

    Every method named like a hook calls that hook; :mod:`hudi_core.hookspecs` says when, under
    which lock, and what it does; ``view_manager`` is supplied here. Each may raise the project's
    errors as the format raised them, ``PluginHookError`` for any other error of the format,
    ``PluginContractError`` for an answer of the wrong kind, and ``UnsupportedCapabilityError`` when
    the format does not declare the ability. So may what they return: factories, timelines, listers,
    locks and strategies.

    Parameters
    ----------
    plugin
        The format.
    observers
        Observers by name; the first one is outermost. One that breaks the contract is logged and
        left out.
    name
        Name of the format, in lower case.

    Raises
    ------
    PluginContractError
        The plugin breaks the contract in a way that can be seen at load.
    """

    def __init__(
        self, plugin: object, observers: Mapping[str, object] | None = None, *, name: str
    ) -> None:
        self.name = name
        self._calls = HookCalls(name, plugin, observers or {})

    @classmethod
    def load(cls, registry: FormatRegistry, name: str) -> FormatHost:
        """Load a format and the installed observers for one table.

        Parameters
        ----------
        registry
            Where to look.
        name
            Name of the format, compared without regard to case.

        Raises
        ------
        UnknownTableFormatError, PluginConflictError, PluginLoadError, InvalidOptionError
            See :meth:`FormatRegistry.load`.
        PluginContractError
            The plugin breaks the contract.
        """
        plugin = registry.load(name)
        return cls(plugin, registry.load_observers(), name=name.lower())

    # --- what the format can do ------------------------------------------------------------------

    @property
    def capabilities(self) -> FormatCapabilities:
        """What the format declares."""
        return self._calls.capabilities

    def require(self, *needed: Capability) -> None:
        """Refuse what the format does not declare; to be called before the first file is written.

        Raises
        ------
        UnsupportedCapabilityError
            Names what is missing.
        """
        require(self.name, self._calls.capabilities, needed)

    def check_options(self, options: Mapping[str, str]) -> None:
        """Refuse, or warn of, a user's options of the format.

        Parameters
        ----------
        options
            All options of the user's, as text.

        Raises
        ------
        InvalidOptionError
            One cannot be used.
        """
        given = given_options(self.name, options)
        declared = self.get_options() if given else None
        if declared is not None:
            check_options(self.name, declared, given)

    def stored_options(self, options: Mapping[str, str]) -> dict[str, str]:
        """The properties by which a new table keeps options of the format."""
        given = given_options(self.name, options)
        declared = self.get_options() if given else None
        return {} if declared is None else stored_options(self.name, declared, given)

    # --- the format and its metadata -------------------------------------------------------------

    def initialize(
        self, meta_client: MetaClientView, *, create: bool, rebuild: bool = False
    ) -> FormatCommit:
        views = _TableViews(meta_client) if create else _Views(self, meta_client)
        return self._calls.receipt("initialize", meta_client, views, create, rebuild)

    def get_options(self) -> tuple[FormatOption[Any], ...] | None:
        found: Sequence[FormatOption[Any]] | None = self._calls.answer(
            "get_options", kinds=(Sequence, NOTHING)
        )
        return None if found is None else checked_options(self._calls.guard, found)

    def check_schema(
        self, settings: TableSettings, schema: TableSchema, before: TableSchema | None = None
    ) -> None:
        self._calls.answer("check_schema", settings, schema, before, kinds=(NOTHING,))

    def check_files(self, meta_client: MetaClientView) -> None:
        views = _TableViews(meta_client)
        self._calls.answer("check_files", meta_client, views, kinds=(NOTHING,))

    def check_creation(self, meta_client: MetaClientView) -> None:
        self._calls.answer("check_creation", meta_client, kinds=(NOTHING,))

    def get_metadata_folders(self, meta_client: MetaClientView) -> tuple[str, ...]:
        found: tuple[str, ...] | None = self._calls.answer(
            "get_metadata_folders", meta_client, kinds=(tuple, NOTHING)
        )
        for one in found or ():
            self._calls.guard.require("get_metadata_folders", one, (str,), "a tuple of str")
            check_path(one)
        return found or ()

    def find_table(self, meta_client: MetaClientView) -> FoundTable | None:
        found: FoundTable | None = self._calls.answer(
            "find_table", meta_client, kinds=(FoundTable, NOTHING)
        )
        return found

    def find_publication(self, meta_client: MetaClientView, instant: Instant) -> Publication | None:
        found: Publication | None = self._calls.answer(
            "find_publication", meta_client, instant, kinds=(Publication, NOTHING)
        )
        return found

    def get_timeline_factory(self) -> TimelineFactory:
        factory: TimelineFactory = self._calls.answer(
            "get_timeline_factory", kinds=(TimelineFactory,)
        )
        return GuardedTimelineFactory(self._calls.guard, factory)

    def get_metadata_factory(self) -> MetadataFactory:
        factory: MetadataFactory = self._calls.answer(
            "get_metadata_factory", kinds=(MetadataFactory,)
        )
        return GuardedMetadataFactory(self._calls.guard, factory, self.get_timeline_factory)

    def get_lock_provider(
        self, meta_client: MetaClientView, lock_options: Mapping[str, str]
    ) -> LockProvider | None:
        provider: LockProvider | None = self._calls.answer(
            "get_lock_provider", meta_client, lock_options, kinds=(LockProvider, NOTHING)
        )
        return None if provider is None else GuardedLock(self._calls.guard, provider)

    def get_conflict_resolution_strategy(
        self, meta_client: MetaClientView
    ) -> ConflictResolutionStrategy | None:
        strategy: ConflictResolutionStrategy | None = self._calls.answer(
            "get_conflict_resolution_strategy",
            meta_client,
            kinds=(ConflictResolutionStrategy, NOTHING),
        )
        return None if strategy is None else guarded_strategy(self._calls.guard, strategy)

    # --- writes --------------------------------------------------------------------------------

    def check_write(
        self, meta_client: MetaClientView, commit_metadata: CommitMetadata, instant: Instant
    ) -> None:
        self._calls.answer(
            "check_write",
            meta_client,
            _Views(self, meta_client),
            commit_metadata,
            instant,
            kinds=(NOTHING,),
        )

    def complete_write(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        write_statuses: Sequence[WriteStatus] = (),
    ) -> FormatCommit:
        return self._calls.receipt(
            "complete_write",
            meta_client,
            _Views(self, meta_client),
            commit_metadata,
            instant,
            write_statuses,
        )

    def complete_clustering(
        self,
        meta_client: MetaClientView,
        replace_commit_metadata: ReplaceCommitMetadata,
        instant: Instant,
        write_statuses: Sequence[WriteStatus] = (),
    ) -> FormatCommit:
        return self._calls.receipt(
            "complete_clustering",
            meta_client,
            _Views(self, meta_client),
            replace_commit_metadata,
            instant,
            write_statuses,
        )

    def complete_schema_change(
        self, meta_client: MetaClientView, commit_metadata: CommitMetadata, instant: Instant
    ) -> FormatCommit:
        return self._calls.receipt(
            "complete_schema_change",
            meta_client,
            _Views(self, meta_client),
            commit_metadata,
            instant,
        )

    # --- clean and archive ---------------------------------------------------------------------

    def before_clean(
        self, meta_client: MetaClientView, clean_plan: actions.CleanerPlan, instant: Instant
    ) -> None:
        self._calls.answer(
            "before_clean",
            meta_client,
            _Views(self, meta_client),
            clean_plan,
            instant,
            kinds=(NOTHING,),
        )

    def complete_clean(
        self, meta_client: MetaClientView, clean_metadata: actions.CleanMetadata, instant: Instant
    ) -> FormatCommit:
        return self._calls.receipt(
            "complete_clean", meta_client, _Views(self, meta_client), clean_metadata, instant
        )

    def archive_instants(
        self, meta_client: MetaClientView, archived_instants: Sequence[Instant]
    ) -> None:
        self._calls.answer(
            "archive_instants",
            meta_client,
            _Views(self, meta_client),
            archived_instants,
            kinds=(NOTHING,),
        )

    # --- rollback ------------------------------------------------------------------------------

    def before_rollback(self, meta_client: MetaClientView, instant: Instant) -> None:
        self._calls.answer(
            "before_rollback", meta_client, _Views(self, meta_client), instant, kinds=(NOTHING,)
        )

    def complete_rollback(
        self,
        meta_client: MetaClientView,
        rollback_metadata: actions.RollbackMetadata,
        instant: Instant,
    ) -> FormatCommit:
        return self._calls.receipt(
            "complete_rollback", meta_client, _Views(self, meta_client), rollback_metadata, instant
        )

    # --- savepoint and restore -----------------------------------------------------------------

    def complete_savepoint(
        self,
        meta_client: MetaClientView,
        savepoint_metadata: actions.SavepointMetadata,
        instant: Instant,
    ) -> FormatCommit:
        return self._calls.receipt(
            "complete_savepoint",
            meta_client,
            _Views(self, meta_client),
            savepoint_metadata,
            instant,
        )

    def complete_delete_savepoint(
        self, meta_client: MetaClientView, instant: Instant
    ) -> FormatCommit:
        return self._calls.receipt(
            "complete_delete_savepoint", meta_client, _Views(self, meta_client), instant
        )

    def before_restore(
        self, meta_client: MetaClientView, restore_plan: actions.RestorePlan, instant: Instant
    ) -> None:
        self._calls.answer(
            "before_restore",
            meta_client,
            _Views(self, meta_client),
            restore_plan,
            instant,
            kinds=(NOTHING,),
        )

    def complete_restore(
        self,
        meta_client: MetaClientView,
        restore_metadata: actions.RestoreMetadata,
        instant: Instant,
    ) -> FormatCommit:
        return self._calls.receipt(
            "complete_restore", meta_client, _Views(self, meta_client), restore_metadata, instant
        )


@dataclass(frozen=True, slots=True)
class _TableViews:
    """Views of a table whose format has no metadata yet, or none that can be trusted."""

    meta_client: MetaClientView

    def view(self, timeline: TimelineView | None = None) -> SliceView:
        """Return the view as of ``timeline``; by default of all that step 1 has completed."""
        client = self.meta_client
        return ViewManager(client.read_commit, table_lister(client), client.timeline).view(timeline)


@dataclass(frozen=True, slots=True)
class _Views:
    """Views of a table for the hooks of its format; nothing is read until one is asked for."""

    host: FormatHost
    meta_client: MetaClientView

    def view(self, timeline: TimelineView | None = None) -> SliceView:
        """Return the view as of ``timeline``; by default of the fenced timeline as it is now."""
        client = self.meta_client
        lister = self.host.get_metadata_factory().create(client)
        fenced = self.host.get_timeline_factory().active_timeline
        return ViewManager(client.read_commit, lister, lambda: fenced(client)).view(timeline)
