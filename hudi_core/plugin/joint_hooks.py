"""Asks the formats of a table one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from hudi_core.errors import IncompleteCommitError, TableServiceError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.actions import RestorePlan
from hudi_core.model.client import HeldMetadata, MetaClientView
from hudi_core.model.format import FormatCommit
from hudi_core.plugin.hook_methods import HookMethods
from hudi_core.plugin.joint import JointCommit, split_versions

Answer = TypeVar("Answer")


class OneAfterTheOther:
    """The ways in which the hooks of several formats are called.

    ``hosts`` are in the order of the table.
    """

    def __init__(self, hosts: Mapping[str, HookMethods]) -> None:
        self.hosts = hosts

    def _each(
        self, meta_client: MetaClientView, ask: Callable[[HookMethods, TableMetaClient], Answer]
    ) -> dict[str, Answer]:
        return {
            name: ask(host, self._client(meta_client, name)) for name, host in self.hosts.items()
        }

    def _in_turn(
        self,
        hook: str,
        meta_client: MetaClientView,
        given: Mapping[str, Any],
        *,
        last_first: bool = False,
    ) -> dict[str, Any]:
        """Call a hook of all, each with its own expected version."""
        answers = {}
        for name in reversed(tuple(self.hosts)) if last_first else tuple(self.hosts):
            call = getattr(self.hosts[name], hook)
            answers[name] = call(**self._arguments(name, meta_client, given))
        return {name: answers[name] for name in self.hosts}

    def _taken_back(
        self,
        hook: str,
        meta_client: MetaClientView,
        plan: RestorePlan,
        given: Mapping[str, Any],
    ) -> None:
        """Call the last format first, after all have checked the plan."""
        self._in_turn("check_restore", meta_client, {"restore_plan": plan}, last_first=True)
        done: list[str] = []
        for name in reversed(tuple(self.hosts)):
            try:
                getattr(self.hosts[name], hook)(**self._arguments(name, meta_client, given))
            except TableServiceError as refused:
                if not done:
                    raise
                raise IncompleteCommitError(
                    f"The {name} format refuses what the {' and '.join(done)} format has done "
                    f"already: {refused.what}",
                    "No file was deleted. `hudi table repair --force` finishes it from the Hudi "
                    "timeline alone, and rebuilds the metadata of all formats.",
                    instant=given["instant"].requested_time,
                ) from refused
            done.append(name)

    def _arguments(
        self, name: str, meta_client: MetaClientView, given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The arguments of a hook for one format, without the views."""
        own = {key: value for key, value in given.items() if key != "view_manager"}
        if "expected_version" in own:
            own["expected_version"] = split_versions(own["expected_version"]).get(name)
        return {**own, "meta_client": self._client(meta_client, name)}

    @staticmethod
    def _client(meta_client: MetaClientView, name: str) -> TableMetaClient:
        """The client of the table as one of a single format."""
        if not isinstance(meta_client, TableMetaClient):
            raise TypeError(f"a table of several formats needs a TableMetaClient: {meta_client!r}")
        config = replace(meta_client.config, table_format=name)
        return meta_client.as_format(config, _place(meta_client.held, name))


def _place(held: HeldMetadata | None, name: str) -> HeldMetadata | None:
    """A format's own place for what it reads under the lock."""
    if held is None:
        return None
    if held.value is None:
        held.value = {}
    places, earlier = held.value, held.earlier
    assert isinstance(places, dict)  # noqa: S101 - no other code keeps something there
    if name not in places:
        before = earlier.get(name) if isinstance(earlier, dict) else None
        places[name] = HeldMetadata(earlier=before.value if before is not None else None)
    found: HeldMetadata = places[name]
    return found


# --- hooks that do nothing else; ``Any``, as the base class has their signatures -----------------


def asks_all(hook: str, *, last_first: bool = False) -> Any:
    """A hook that calls that of every format, and answers nothing."""

    def ask(self: OneAfterTheOther, *, meta_client: MetaClientView, **given: Any) -> None:
        self._in_turn(hook, meta_client, given, last_first=last_first)

    return ask


def publishes_in_all(hook: str, *, last_first: bool = False) -> Any:
    """A hook that calls that of every format, and joins their receipts."""

    def publish(
        self: OneAfterTheOther, *, meta_client: MetaClientView, **given: Any
    ) -> FormatCommit:
        return JointCommit.of(self._in_turn(hook, meta_client, given, last_first=last_first))

    return publish
