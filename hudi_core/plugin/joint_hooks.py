"""Asks the formats of a table one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from hudi_core.errors import IncompleteCommitError, TableServiceError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.client import HeldMetadata, MetaClientView
from hudi_core.model.format import FormatCommit
from hudi_core.model.instant import Instant
from hudi_core.plugin.hook_methods import HookMethods
from hudi_core.plugin.joint import JointCommit, split_versions

Answer = TypeVar("Answer")


class OneAfterTheOther:
    """The ways in which the hooks of several formats are called.

    Parameters
    ----------
    hosts
        Each format, by its name, in the order of the table.
    """

    def __init__(self, hosts: Mapping[str, HookMethods]) -> None:
        self.hosts = hosts

    def _each(
        self, meta_client: MetaClientView, ask: Callable[[HookMethods, TableMetaClient], Answer]
    ) -> dict[str, Answer]:
        return {
            name: ask(host, self._client(meta_client, name)) for name, host in self.hosts.items()
        }

    def _receipts(
        self,
        meta_client: MetaClientView,
        ask: Callable[[HookMethods, TableMetaClient], FormatCommit],
    ) -> FormatCommit:
        return JointCommit.of(self._each(meta_client, ask))

    def _in_turn(
        self,
        meta_client: MetaClientView,
        expected_version: str | None,
        tell: Callable[[HookMethods, TableMetaClient, str | None], Answer],
    ) -> dict[str, Answer]:
        expected = split_versions(expected_version)
        return {
            name: tell(host, self._client(meta_client, name), expected.get(name))
            for name, host in self.hosts.items()
        }

    def _published(
        self,
        meta_client: MetaClientView,
        expected_version: str | None,
        tell: Callable[[HookMethods, TableMetaClient, str | None], FormatCommit],
    ) -> FormatCommit:
        return JointCommit.of(self._in_turn(meta_client, expected_version, tell))

    def _taken_back(
        self,
        meta_client: MetaClientView,
        expected_version: str | None,
        instant: Instant,
        tell: Callable[[HookMethods, TableMetaClient, str | None], None],
    ) -> None:
        """Call the last format first, which alone may refuse."""
        expected = split_versions(expected_version)
        done: list[str] = []
        for name in reversed(tuple(self.hosts)):
            try:
                tell(self.hosts[name], self._client(meta_client, name), expected.get(name))
            except TableServiceError as refused:
                if not done:
                    raise
                raise IncompleteCommitError(
                    f"The {name} format refuses what the {' and '.join(done)} format has done "
                    f"already: {refused.what}",
                    "No file was deleted. `hudi table repair --force` finishes it from the Hudi "
                    "timeline alone, and rebuilds the metadata of all formats.",
                    instant=instant.requested_time,
                ) from refused
            done.append(name)

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
    assert isinstance(places, dict)  # noqa: S101 - nobody else keeps something there
    if name not in places:
        before = earlier.get(name) if isinstance(earlier, dict) else None
        places[name] = HeldMetadata(earlier=before.value if before is not None else None)
    found: HeldMetadata = places[name]
    return found
