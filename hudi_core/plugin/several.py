"""Several formats of one table, as one format.

The protocol, the services and the readers know one format. Of a table with several this class is
it: it passes each hook on to every format, in the order in which the table names them, and makes
one answer of theirs. So there is no second protocol, and what one format owes, all of them owe.

* **Complete** is what every format holds. A commit travels from the first format to the last, and
  what is taken out of the lineages (a rollback, a restore) from the last to the first. So the last
  format holds what is complete and nothing else; the others may be ahead of it by the one instant
  that is on its way.
* **Pending** is what one of them lacks. Recovery replays the hook; a format that holds the instant
  says so, and the next one gets it, by a compare-and-set on its own parent. The parents of a commit
  are recorded together, under the lock. An instant that one format holds and another lacks is
  brought to its end before anything else: no check of another write would see it.
* **Given up** is an instant once every format that lacks it is fenced against it. Where all hold it
  by then, it stays; else it is taken out of those that hold it, before a file is deleted.
* **Files** are listed from the table's own metadata, which has those of either state.
* **Abilities** are those that all have.

Each format sees a table of its own: its name in the settings, its own options, and its own place
for what it reads under the lock. :mod:`tests.model.two_formats` takes every step of two of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from hudi_core.hookspecs import TableFormat
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.actions import (
    CleanerPlan,
    CleanMetadata,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    SavepointMetadata,
)
from hudi_core.model.capability import FormatCapabilities
from hudi_core.model.client import MetaClientView, TableSettings
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteStatus
from hudi_core.model.format import (
    ConflictResolutionStrategy,
    FormatCommit,
    MetadataFactory,
    Publication,
    TimelineFactory,
)
from hudi_core.model.instant import Instant
from hudi_core.model.protocols import LockProvider
from hudi_core.model.registration import Registration
from hudi_core.plugin.hook_methods import HookMethods
from hudi_core.plugin.joint import join_versions, joint_capabilities
from hudi_core.plugin.joint_hooks import OneAfterTheOther
from hudi_core.plugin.joint_timeline import JointStrategy, JointTimelineFactory, TableFiles
from hudi_core.schema.table_schema import TableSchema


class SeveralFormats(OneAfterTheOther, TableFormat):
    """The formats of a table with several, behind one host.

    Parameters
    ----------
    hosts
        Each format, by its name, in the order of the table.
    """

    spi_version = "1.0"

    # --- what they can do ------------------------------------------------------------------------

    def get_capabilities(self) -> FormatCapabilities:
        """What every one of them declares."""
        each = {name: host.calls.capabilities for name, host in self.hosts.items()}
        return joint_capabilities(each)

    def check_schema(
        self, *, settings: TableSettings, schema: TableSchema, before: TableSchema | None
    ) -> None:
        """Ask all of them, before anything is written."""
        for host in self.hosts.values():
            host.check_schema(settings, schema, before)

    def check_files(self, *, meta_client: MetaClientView, **_: Any) -> None:
        """Ask all of them."""
        self._each(meta_client, lambda host, client: host.check_files(client))

    def check_creation(self, *, meta_client: MetaClientView) -> None:
        """Ask all of them, before anything is written."""
        self._each(meta_client, lambda host, client: host.check_creation(client))

    def check_write(
        self,
        *,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        **_: Any,
    ) -> None:
        """Ask all of them, before step 1."""
        self._each(
            meta_client, lambda host, client: host.check_write(client, commit_metadata, instant)
        )

    # --- their metadata --------------------------------------------------------------------------

    def create(self, *, meta_client: MetaClientView, **_: Any) -> FormatCommit:
        """Make the metadata of all."""
        return self._receipts(meta_client, lambda host, client: host.create(client))

    def open(self, *, meta_client: MetaClientView, **_: Any) -> FormatCommit:
        """The present state of each."""
        return self._receipts(meta_client, lambda host, client: host.open(client))

    def rebuild(self, *, meta_client: MetaClientView, **_: Any) -> FormatCommit:
        """Make the metadata of all anew."""
        return self._receipts(meta_client, lambda host, client: host.rebuild(client))

    def close(self) -> None:
        """Close all of them, also where one fails."""
        with ExitStack() as closing:
            for host in self.hosts.values():
                closing.callback(host.calls.close)

    def find_publication(
        self, *, meta_client: MetaClientView, instant: Instant
    ) -> Publication | None:
        """How all of them hold an instant; ``None`` where one does not."""
        found: dict[str, Publication] = {}
        for name, host in self.hosts.items():
            held = host.find_publication(self._client(meta_client, name), instant)
            if held is None:
                return None
            found[name] = held
        times = (one.completion_time for one in found.values() if one.completion_time is not None)
        return Publication(
            instant.requested_time,
            instant.action.completed_action,
            join_versions({name: one.version for name, one in found.items()}),
            next(times, None),
            is_expired=any(one.is_expired for one in found.values()),
        )

    def holders(self, meta_client: MetaClientView, instant: Instant) -> tuple[str, ...]:
        """Names of the formats that hold an instant."""
        found = self._each(meta_client, lambda host, client: host.find_publication(client, instant))
        return tuple(name for name, held in found.items() if held is not None)

    def get_timeline_factory(self) -> TimelineFactory:
        """What all of them hold."""
        factories = {name: host.get_timeline_factory() for name, host in self.hosts.items()}
        return JointTimelineFactory(factories, self._client)

    def get_metadata_factory(self) -> MetadataFactory:
        """The files, by the table's own metadata."""
        return TableFiles()

    def get_metadata_folders(self, *, meta_client: MetaClientView) -> tuple[str, ...]:
        """The folders of all."""
        found = self._each(meta_client, lambda host, client: host.get_metadata_folders(client))
        return tuple(dict.fromkeys(folder for each in found.values() for folder in each))

    def get_registration(self, *, meta_client: MetaClientView) -> Registration | None:
        """How metastores know it: as the first format that says so."""
        for name, host in self.hosts.items():
            found = host.get_registration(self._client(meta_client, name))
            if found is not None:
                return found
        return None

    def get_lock_provider(
        self, *, meta_client: MetaClientView, lock_options: Mapping[str, str]
    ) -> LockProvider | None:
        """The first lock that is offered and excludes other processes."""
        offered = (
            host.get_lock_provider(self._client(meta_client, name), lock_options)
            for name, host in self.hosts.items()
        )
        return next((one for one in offered if one is not None and one.excludes_processes), None)

    def get_conflict_resolution_strategy(
        self, *, meta_client: MetaClientView
    ) -> ConflictResolutionStrategy | None:
        """What any of them takes for a conflict."""
        asked = self._each(
            meta_client, lambda host, client: host.get_conflict_resolution_strategy(client)
        )
        kept: list[ConflictResolutionStrategy] = []
        for one in asked.values():
            if one is not None and one not in kept:
                kept.append(one)
        return JointStrategy(tuple(kept)) if len(kept) > 1 else next(iter(kept), None)

    # --- writes ----------------------------------------------------------------------------------

    def complete_write(
        self,
        *,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        write_statuses: Sequence[WriteStatus],
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        """Publish a write in one after the other."""
        return self._published(
            meta_client,
            expected_version,
            lambda host, client, expected: host.complete_write(
                client, commit_metadata, instant, write_statuses, expected
            ),
        )

    def complete_clustering(
        self,
        *,
        meta_client: MetaClientView,
        replace_commit_metadata: ReplaceCommitMetadata,
        instant: Instant,
        write_statuses: Sequence[WriteStatus],
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        """Publish a clustering in one after the other."""
        return self._published(
            meta_client,
            expected_version,
            lambda host, client, expected: host.complete_clustering(
                client, replace_commit_metadata, instant, write_statuses, expected
            ),
        )

    def complete_schema_change(
        self,
        *,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        """Publish a change of columns in one after the other."""
        return self._published(
            meta_client,
            expected_version,
            lambda host, client, expected: host.complete_schema_change(
                client, commit_metadata, instant, expected
            ),
        )

    # --- services --------------------------------------------------------------------------------

    def before_clean(
        self,
        *,
        meta_client: MetaClientView,
        clean_plan: CleanerPlan,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> None:
        """Have all of them stop naming files, before the first is deleted."""
        self._in_turn(
            meta_client,
            expected_version,
            lambda host, client, expected: host.before_clean(client, clean_plan, instant, expected),
        )

    def complete_clean(
        self,
        *,
        meta_client: MetaClientView,
        clean_metadata: CleanMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        """Publish a clean in one after the other."""
        return self._published(
            meta_client,
            expected_version,
            lambda host, client, expected: host.complete_clean(
                client, clean_metadata, instant, expected
            ),
        )

    def archive_instants(
        self,
        *,
        meta_client: MetaClientView,
        archived_instants: Sequence[Instant],
        expected_version: str | None,
        **_: Any,
    ) -> None:
        """Let each expire archived instants behind its own watermark."""
        self._in_turn(
            meta_client,
            expected_version,
            lambda host, client, expected: host.archive_instants(
                client, archived_instants, expected
            ),
        )

    def before_rollback(
        self,
        *,
        meta_client: MetaClientView,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> None:
        """Fence all against an instant, or take it out, last first."""

        def leave(host: HookMethods, client: TableMetaClient, expected: str | None) -> None:
            host.before_rollback(client, instant, expected)

        if instant.is_completed:
            self._taken_back(meta_client, expected_version, instant, leave)
        else:
            self._in_turn(meta_client, expected_version, leave)

    def complete_rollback(
        self,
        *,
        meta_client: MetaClientView,
        rollback_metadata: RollbackMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        """Publish a rollback in one after the other."""
        return self._published(
            meta_client,
            expected_version,
            lambda host, client, expected: host.complete_rollback(
                client, rollback_metadata, instant, expected
            ),
        )

    def complete_savepoint(
        self,
        *,
        meta_client: MetaClientView,
        savepoint_metadata: SavepointMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        """Pin the state in all of them."""
        return self._published(
            meta_client,
            expected_version,
            lambda host, client, expected: host.complete_savepoint(
                client, savepoint_metadata, instant, expected
            ),
        )

    def complete_delete_savepoint(
        self,
        *,
        meta_client: MetaClientView,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        """Unpin the state in all of them."""
        return self._published(
            meta_client,
            expected_version,
            lambda host, client, expected: host.complete_delete_savepoint(
                client, instant, expected
            ),
        )

    def before_restore(
        self,
        *,
        meta_client: MetaClientView,
        restore_plan: RestorePlan,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> None:
        """Have all of them return to the savepoint, the last format first."""
        self._taken_back(
            meta_client,
            expected_version,
            instant,
            lambda host, client, expected: host.before_restore(
                client, restore_plan, instant, expected
            ),
        )

    def complete_restore(
        self,
        *,
        meta_client: MetaClientView,
        restore_metadata: RestoreMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        """Publish a restore in one after the other."""
        return self._published(
            meta_client,
            expected_version,
            lambda host, client, expected: host.complete_restore(
                client, restore_metadata, instant, expected
            ),
        )
