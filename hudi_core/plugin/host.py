"""The typed front of a table's format: one method per hook.

Every open table has its own host with its own plugin manager, which holds the table's one format
and the installed observers; :mod:`hudi_core.plugin.calls` has what happens around a call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from hudi_core.config.format_option import FormatOption
from hudi_core.hookspecs import TableFormatHooks
from hudi_core.metadata.lister import table_lister
from hudi_core.model.capability import Capability, FormatCapabilities
from hudi_core.model.client import FileSystemViewManager, MetaClientView, SliceView
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteStatus
from hudi_core.model.format import (
    ConflictResolutionStrategy,
    FormatCommit,
    MetadataFactory,
    TimelineFactory,
)
from hudi_core.model.instant import Instant
from hudi_core.model.protocols import LockProvider, TimelineView
from hudi_core.plugin.calls import HookCalls
from hudi_core.plugin.capability import require
from hudi_core.plugin.format_options import (
    check_options,
    checked_options,
    given_options,
    stored_options,
)
from hudi_core.plugin.guarded import GuardedLock, GuardedTimelineFactory, guarded_strategy
from hudi_core.plugin.guarded_index import GuardedMetadataFactory
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.storage.safe_path import require_safe_path
from hudi_core.view.manager import ViewManager

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])


def hook(spec: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[FormatHost, P], T]:
    """A method of the host that calls a hook."""
    name = spec.__name__

    def call(host: FormatHost, /, *values: P.args, **named: P.kwargs) -> T:
        answer: T = host.calls.answer(name, *values, **named)
        return answer

    return _described(call, spec)


def hook_with_views(
    spec: Callable[Concatenate[Any, MetaClientView, FileSystemViewManager, P], T],
) -> Callable[Concatenate[FormatHost, MetaClientView, P], T]:
    """A method of the host that calls a hook, and supplies ``view_manager``."""
    name = spec.__name__

    def call(
        host: FormatHost, meta_client: MetaClientView, /, *values: P.args, **named: P.kwargs
    ) -> T:
        views = _Views(host, meta_client)
        answer: T = host.calls.answer(name, meta_client, views, *values, **named)
        return answer

    return _described(call, spec)


def _described(method: F, spec: Callable[..., object]) -> F:
    """Give a method its hook's name, docstring and signature."""
    signature = inspect.signature(spec)
    taken = [one for one in signature.parameters.values() if one.name != "view_manager"]
    method.__name__, method.__doc__ = spec.__name__, spec.__doc__
    method.__qualname__ = f"FormatHost.{spec.__name__}"
    vars(method)["__signature__"] = signature.replace(parameters=taken)
    return method


_complete_write = hook_with_views(TableFormatHooks.complete_write)
_complete_clustering = hook_with_views(TableFormatHooks.complete_clustering)


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
        self.calls = HookCalls(name, plugin, observers or {})

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
        return self.calls.capabilities

    def require(self, *needed: Capability) -> None:
        """Refuse what the format does not declare.

        To be called before the first file is written.

        Raises
        ------
        UnsupportedCapabilityError
            Names what is missing.
        """
        require(self.name, self.calls.capabilities, needed)

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
        receipt: FormatCommit = self.calls.answer("initialize", meta_client, views, create, rebuild)
        return receipt

    def get_options(self) -> tuple[FormatOption[Any], ...] | None:
        found: Sequence[FormatOption[Any]] | None = self.calls.answer("get_options")
        return None if found is None else checked_options(self.calls.guard, found)

    def check_files(self, meta_client: MetaClientView) -> None:
        views = _TableViews(meta_client)
        self.calls.answer("check_files", meta_client, views)

    def get_metadata_folders(self, meta_client: MetaClientView) -> tuple[str, ...]:
        found: tuple[str, ...] | None = self.calls.answer("get_metadata_folders", meta_client)
        for one in found or ():
            self.calls.guard.require("get_metadata_folders", one, (str,), "a tuple of str")
            require_safe_path(one)
        return found or ()

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
            "get_lock_provider", meta_client, lock_options
        )
        return None if provider is None else GuardedLock(self.calls.guard, provider)

    def get_conflict_resolution_strategy(
        self, meta_client: MetaClientView
    ) -> ConflictResolutionStrategy | None:
        strategy: ConflictResolutionStrategy | None = self.calls.answer(
            "get_conflict_resolution_strategy",
            meta_client,
        )
        return None if strategy is None else guarded_strategy(self.calls.guard, strategy)

    # --- hooks that take and give what the contract says -----------------------------------------

    check_schema = hook(TableFormatHooks.check_schema)
    check_creation = hook(TableFormatHooks.check_creation)
    get_registration = hook(TableFormatHooks.get_registration)
    find_table = hook(TableFormatHooks.find_table)
    find_publication = hook(TableFormatHooks.find_publication)

    check_write = hook_with_views(TableFormatHooks.check_write)

    def complete_write(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        write_statuses: Sequence[WriteStatus] = (),
    ) -> FormatCommit:
        return _complete_write(self, meta_client, commit_metadata, instant, write_statuses)

    def complete_clustering(
        self,
        meta_client: MetaClientView,
        replace_commit_metadata: ReplaceCommitMetadata,
        instant: Instant,
        write_statuses: Sequence[WriteStatus] = (),
    ) -> FormatCommit:
        return _complete_clustering(
            self, meta_client, replace_commit_metadata, instant, write_statuses
        )

    complete_schema_change = hook_with_views(TableFormatHooks.complete_schema_change)

    before_clean = hook_with_views(TableFormatHooks.before_clean)
    complete_clean = hook_with_views(TableFormatHooks.complete_clean)
    archive_instants = hook_with_views(TableFormatHooks.archive_instants)

    before_rollback = hook_with_views(TableFormatHooks.before_rollback)
    complete_rollback = hook_with_views(TableFormatHooks.complete_rollback)

    complete_savepoint = hook_with_views(TableFormatHooks.complete_savepoint)
    complete_delete_savepoint = hook_with_views(TableFormatHooks.complete_delete_savepoint)
    before_restore = hook_with_views(TableFormatHooks.before_restore)
    complete_restore = hook_with_views(TableFormatHooks.complete_restore)


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
    """Views of a table for its format's hooks, read on demand."""

    host: FormatHost
    meta_client: MetaClientView

    def view(self, timeline: TimelineView | None = None) -> SliceView:
        """Return the view as of ``timeline``, by default the fenced one."""
        client = self.meta_client
        lister = self.host.get_metadata_factory().create(client)
        fenced = self.host.get_timeline_factory().active_timeline
        return ViewManager(client.read_commit, lister, lambda: fenced(client)).view(timeline)
