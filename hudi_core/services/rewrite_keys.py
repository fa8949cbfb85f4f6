"""Record keys taken out of files, or put back (RFC-21).

First the table is switched, under its lock: from then on new files have the new form, and readers
understand files of both. Then files of the other form are rewritten, some at a time, by clusterings
of one file each: what an interrupted run has done stays, and the next one goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Final

from hudi_core.actions.clustering_plan import PlannedGroup
from hudi_core.config.clustering import ClusteringConfig
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.errors import TableServiceError
from hudi_core.file_slice.slice_rows import StoredSlices
from hudi_core.keygen.foreign_keys import require_consent
from hudi_core.model.files import BaseFile
from hudi_core.model.instant import COMPACTIONS, PLANNED_ACTIONS, Action
from hudi_core.plugin.capability import table_needs
from hudi_core.services.clustering import Clustering, ClusteringService
from hudi_core.services.mending.differences import compare_keys, holds_keys, log_lacks_keys
from hudi_core.storage.properties_file import update_properties
from hudi_core.table_handle import OpenTable
from hudi_core.txn.table_service import locked_for_service


class KeyStorage(StrEnum):
    """Where the record keys of a table are."""

    STORED = "stored"
    """In its files."""
    TRANSITION = "transition"
    """In its files, for others: they are made, and compared."""
    VIRTUAL = "virtual"
    """Nowhere: they are made."""

    @classmethod
    def of(cls, config: TableConfig) -> KeyStorage:
        """That of a table with meta columns."""
        if not config.virtual_keys:
            return cls.STORED
        return cls.TRANSITION if config.keeps_virtual_keys else cls.VIRTUAL


_PROPERTIES: Mapping[KeyStorage, Mapping[str, str | None]] = {
    # a table that once had virtual keys says so: older files of it do not hold any
    KeyStorage.STORED: {
        TableKeys.virtual_keys.key: "false",
        TableKeys.keeps_virtual_keys.key: None,
        TableKeys.populate_meta_fields.key: None,
        ManagedKeys.virtual_since.key: None,
    },
    KeyStorage.TRANSITION: {
        TableKeys.virtual_keys.key: "true",
        TableKeys.keeps_virtual_keys.key: "true",
        TableKeys.populate_meta_fields.key: None,
        ManagedKeys.virtual_since.key: None,
    },
    KeyStorage.VIRTUAL: {
        TableKeys.virtual_keys.key: "true",
        TableKeys.keeps_virtual_keys.key: None,
        TableKeys.populate_meta_fields.key: "false",
    },
}


_RUN_BY: Final = {Action.CLUSTERING: "cluster", **dict.fromkeys(COMPACTIONS, "compact")}
"""Commands that run what is planned."""
_CHANGED: Final = frozenset(
    name
    for key in (
        TableKeys.virtual_keys,
        TableKeys.keeps_virtual_keys,
        TableKeys.populate_meta_fields,
        ManagedKeys.virtual_since,
    )
    for name in key.names
)
"""Options and properties that a switch changes."""


def without_key_storage(options: Mapping[str, str]) -> dict[str, str]:
    """Return options that do not say where a table keeps its keys."""
    return {name: value for name, value in options.items() if name not in _CHANGED}


@dataclass(frozen=True, slots=True)
class KeyRewrite:
    """What was, or would be, done to the keys of a table.

    ``rows`` were compared, and their stored keys are all equal to the made ones. ``new_size`` is
    the bytes of the files in place of those rewritten; ``None`` of a plan. ``instants`` are the
    commits that did it.
    """

    path: str
    before: KeyStorage
    after: KeyStorage
    rows: int
    files: int
    size: int
    new_size: int | None = None
    instants: tuple[str, ...] = ()

    @property
    def is_needed(self) -> bool:
        """Whether anything changes."""
        return self.before is not self.after or self.files > 0


@dataclass(slots=True)
class KeyRewriting:
    """Changes where a table keeps its record keys.

    With ``keeps_files`` the files stay as they are, and only new ones are written in the new form.
    """

    service: ClusteringService
    to: KeyStorage
    keeps_files: bool = False

    def plan(self) -> KeyRewrite:
        """What :meth:`run` would do; reads all stored keys.

        Refuses stored keys that are not those the columns make, and a record key that other engines
        would make otherwise.
        """
        table = self.service.table.as_stored().on(self.service.engine)
        self._require_possible(table)
        before = KeyStorage.of(table.client.config)
        rows = 0 if before is self.to is KeyStorage.VIRTUAL else _require_equal(table)
        files = [] if self._keeps_files else self._of_other_form(table)
        size = sum(file.total_size for file in files)
        return KeyRewrite(table.client.base_path, before, self.to, rows, len(files), size)

    def run(self) -> KeyRewrite:
        """Change where the keys are; a later run resumes it.

        What :meth:`plan` refuses changes nothing. After ``CommitConflictError`` (another write
        changed a file that was being rewritten) what was done before stays.
        """
        planned = self.plan()
        # the table was opened as it was: where its keys are it says itself from now on
        self._drop_options()
        if self.to is KeyStorage.STORED and planned.before is KeyStorage.VIRTUAL:
            self._switch(KeyStorage.TRANSITION)
        elif self.to is not KeyStorage.STORED and planned.before is not self.to:
            self._switch(self.to)
        done = replace(planned, files=0, size=0, new_size=0)
        for one in () if self._keeps_files else self._rewritten():
            result = one.result
            done = replace(
                done,
                files=done.files + one.files,
                size=done.size + one.size,
                new_size=(done.new_size or 0) + (0 if result is None else result.bytes_written),
                instants=(*done.instants, one.instant or ""),
            )
        if self.to is KeyStorage.STORED and planned.before is not KeyStorage.STORED:
            self._switch(KeyStorage.STORED)
        return done

    def _drop_options(self) -> None:
        service = self.service
        client = service.table.client
        kept = replace(client, options=without_key_storage(client.options))
        service.table = replace(service.table, client=kept)

    @property
    def _keeps_files(self) -> bool:
        return self.keeps_files or self.to is KeyStorage.TRANSITION

    def _rewritten(self) -> Iterator[Clustering]:
        """Rewrite files until all are of one form, commit by commit."""
        service = self.service
        at_a_time = max(1, service.config.clustering.max_groups)
        # writers that began before the switch may add some meanwhile
        while left := self._of_other_form(service.table):
            paths = [file.path for file in left]
            for start in range(0, len(paths), at_a_time):
                service.table = service.table.as_stored().afresh
                service.choose = _Chosen(frozenset(paths[start : start + at_a_time]))
                yield service.cluster()
            service.table = service.table.as_stored().afresh

    def _require_possible(self, table: OpenTable) -> None:
        client = table.client
        client.require_writable()
        config = client.config
        if not config.populate_meta_fields:
            raise TableServiceError(
                f"The table at {client.base_path} has no meta columns "
                f"({TableKeys.populate_meta_fields.key}=false): no row says when it was written, "
                "so that its keys alone cannot be stored",
                "Copy its rows into a new table: new.bulk_insert(table.to_batches()).",
            )
        wanted = replace(config, virtual_keys=self.to is not KeyStorage.STORED)
        table.host.require(*table_needs(wanted))
        if self.to is KeyStorage.VIRTUAL and KeyStorage.of(config) is not self.to:
            is_made = replace(wanted, keeps_virtual_keys=False)
            require_consent(is_made, client.schema, client.options)
        if config.buckets is not None and not self._keeps_files:
            raise TableServiceError(
                f"The table at {client.base_path} has buckets, each of which is one file group: "
                "its files cannot be rewritten on their own",
                "Take --keep-files: each is rewritten when a write changes it.",
            )
        planned = client.timeline().pending().where(lambda one: one.action in PLANNED_ACTIONS)
        for one in () if self._keeps_files else planned:
            time, command = one.requested_time, _RUN_BY[one.action]
            raise TableServiceError(
                f"The {one.action} {time} of the table at {client.base_path} is scheduled, and "
                "names files that are to be rewritten",
                f"Run it (`hudi {command} {client.base_path} --run`), or give it up "
                f"(`hudi rollback {client.base_path} {time}`).",
            )
        if self.keeps_files and self.to is KeyStorage.STORED:
            raise TableServiceError(
                "Files without record keys cannot stay in a table that stores them",
                "Leave --keep-files out.",
            )

    def _of_other_form(self, table: OpenTable) -> list[BaseFile]:
        """Present files that hold keys and should not, or vice versa.

        Those too of which a log does.
        """
        slices = [one.base_with_logs for one in table.views().view().latest_slices()]
        files = [one for one in slices if one is not None]
        stored = StoredSlices(table.client, table.timeline()).for_tasks
        is_other = partial(_is_of_other_form, stored, self.to is not KeyStorage.VIRTUAL)
        are_other = table.on(self.service.engine).client.map_files(is_other, files)
        return [file for file, other in zip(files, are_other, strict=True) if other]

    def _switch(self, to: KeyStorage) -> None:
        service = self.service
        service.table = service.table.as_stored().afresh
        with locked_for_service(service.table, service.lock, service.config) as state:
            if to is KeyStorage.STORED and self._of_other_form(state.table):
                raise TableServiceError(
                    f"Another writer added files without record keys to {state.client.base_path}",
                    "Run it again: it rewrites what is left.",
                )
            changes = dict(_PROPERTIES[to])
            if to is KeyStorage.VIRTUAL:
                since = state.client.clock.next_time(state.timeline)
                changes[ManagedKeys.virtual_since.key] = since
            service.lock.require_lease()
            update_properties(state.client.storage, changes)
        service.table = service.table.as_stored().afresh


def _is_of_other_form(stored: StoredSlices, has_keys: bool, file: BaseFile) -> bool:
    if holds_keys(stored.client, file.path) is not has_keys:
        return True
    return any(log_lacks_keys(stored, one, has_keys) for one in file.logs)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Chooses files by their paths, each for a group of its own."""

    paths: frozenset[str]

    def __call__(self, table: OpenTable, config: ClusteringConfig) -> list[PlannedGroup]:  # noqa: ARG002 - no option chooses
        return [
            PlannedGroup(one.partition_path, (file,), 1)
            for one in table.views().view().latest_slices()
            if (file := one.base_with_logs) is not None and file.path in self.paths
        ]


def _require_equal(table: OpenTable) -> int:
    """Number of rows whose stored keys are all those that are made."""
    slices = table.views().view().latest_slices()
    found = compare_keys(StoredSlices(table.client, table.timeline()), slices)
    wrong = [one for one in found if one.differences]
    if wrong:
        raise TableServiceError(
            f"{sum(one.differences for one in wrong):,} rows of the table at "
            f"{table.client.base_path} have another record key than their columns make: {wrong[0]}",
            "Writes would take them for other rows. Write these rows again (insert_overwrite), or "
            "keep the stored keys.",
            files=tuple(one.path for one in wrong),
        )
    return sum(one.rows for one in found)
