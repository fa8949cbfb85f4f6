"""One method for each hook of a format, made from its declaration.

``view_manager`` is supplied here; what hooks return is guarded as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from weakref import ref

from hudi_core.errors import TableClosedError
from hudi_core.hookspecs import HOOKS, Hook
from hudi_core.hookspecs.table_format import FormatCalls
from hudi_core.metadata.lister import table_lister
from hudi_core.model.client import FileSystemViewManager, MetaClientView, SliceView
from hudi_core.model.protocols import TimelineView
from hudi_core.plugin.calls import HookCalls
from hudi_core.plugin.format_options import checked_options
from hudi_core.plugin.guarded_index import (
    GuardedLock,
    GuardedMetadataFactory,
    GuardedTimelineFactory,
    guarded_strategy,
)
from hudi_core.storage.safe_path import require_safe_path
from hudi_core.view.file_system import ViewManager

_DEFAULTS: Final[Mapping[str, Any]] = {"write_statuses": (), "expected_version": None}
_VIEWS: Final = "view_manager"


class HookMethods(FormatCalls):
    """The hooks of one format, as methods."""

    def __init__(self, calls: HookCalls) -> None:
        self.calls = calls


def _method(hook: Hook) -> Callable[..., Any]:
    """The method of the host that calls a hook."""
    names = [name for name in hook.arguments if name != _VIEWS]
    defaults = {name: value for name, value in _DEFAULTS.items() if name in names}
    has_views, guarded = _VIEWS in hook.arguments, _GUARDED.get(hook.name)

    def call(host: HookMethods, *given: Any, **named: Any) -> Any:
        if len(given) > len(names):
            raise TypeError(f"{hook.name} takes {len(names)} arguments, not {len(given)}")
        arguments: dict[str, Any] = defaults | dict(zip(names, given, strict=False)) | named
        if has_views:
            arguments[_VIEWS] = _views(hook, host, arguments["meta_client"])
        found = host.calls.answer(hook.name, **arguments)
        return found if guarded is None else guarded(host, found)

    contract = inspect.signature(hook.function)
    own = [
        one.replace(
            kind=one.POSITIONAL_OR_KEYWORD, default=_DEFAULTS.get(name, inspect.Parameter.empty)
        )
        for name, one in contract.parameters.items()
        if name != _VIEWS
    ]
    call.__name__ = hook.name
    call.__signature__ = contract.replace(parameters=own)  # type: ignore[attr-defined]
    return call


def _views(hook: Hook, host: HookMethods, client: MetaClientView) -> FileSystemViewManager:
    return _Views(host.calls.name, ref(host), client) if hook.is_fenced else _TableViews(client)


def _folders(host: HookMethods, found: tuple[str, ...] | None) -> tuple[str, ...]:
    for one in found or ():
        host.calls.guard.require("get_metadata_folders", one, (str,), "a tuple of str")
        require_safe_path(one)
    return found or ()


_GUARDED: Final[Mapping[str, Callable[[HookMethods, Any], Any]]] = {
    "get_options": lambda host, found: (
        None if found is None else checked_options(host.calls.guard, found)
    ),
    "get_metadata_folders": _folders,
    "get_timeline_factory": lambda host, found: GuardedTimelineFactory(host.calls.guard, found),
    "get_metadata_factory": lambda host, found: GuardedMetadataFactory(
        host.calls.guard, found, host.get_timeline_factory
    ),
    "get_lock_provider": lambda host, found: (
        None if found is None else GuardedLock(host.calls.guard, found)
    ),
    "get_conflict_resolution_strategy": lambda host, found: (
        None if found is None else guarded_strategy(host.calls.guard, found)
    ),
}
"""What becomes of the answers of a format."""

for _hook in HOOKS.values():
    # the host calls these two in its own way
    if _hook.name not in ("get_capabilities", "close"):
        setattr(HookMethods, _hook.name, _method(_hook))


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
