"""The open table behind a :class:`~hudi_core.table.Table`, and what its methods share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from hudi_core.config.options import GivenOptions, is_secret_name
from hudi_core.config.read import ReadConfig
from hudi_core.config.resolve import options_as_strings
from hudi_core.config.sql import SqlLimits
from hudi_core.config.sync import SyncConfig
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.engine.choice import chosen_engine, engine_of
from hudi_core.errors import HudiError
from hudi_core.model.client import MetaClientView
from hudi_core.model.result import CommitResult
from hudi_core.read.changes.changed_rows import ChangedRows
from hudi_core.read.changes.incremental import IncrementalQuery
from hudi_core.read.filters import RowFilter
from hudi_core.read.query import LatestState, SnapshotQuery
from hudi_core.read.query_times import QueryTime, completed_time, requested_time
from hudi_core.services.after_commit import InlineServices
from hudi_core.services.changed_options import still_given
from hudi_core.services.clustering import cluster_after_commit
from hudi_core.services.compaction import compact_after_commit
from hudi_core.services.opening import open_table
from hudi_core.services.partition_ttl import expire_after_commit
from hudi_core.services.progress import Progress, counted, no_progress
from hudi_core.storage.properties_file import WatchedProperties
from hudi_core.sync.tool import require_syncable, sync_after_commit
from hudi_core.table.arguments import NO_EXTRAS, Columns, Extras, Options, names_of
from hudi_core.table_handle import OpenTable
from hudi_core.txn.last_hold import LastHold
from hudi_core.txn.table_lock import TableLock, table_lock
from hudi_core.write.client import WriteClient
from hudi_core.write.validation import Validation, Validator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")
Opened = TypeVar("Opened")


class TableSession:
    """An open table as the last call saw it, and its options."""

    def __init__(self, opened: OpenTable, options: Mapping[str, str]) -> None:
        self.opened = opened
        self.options = GivenOptions(options)
        self.latest = LatestState()
        self._stored = WatchedProperties()
        self._left = LastHold()
        self._parsed: tuple[GivenOptions, WriteConfig] | None = None

    @property
    def path(self) -> str:
        """The base path, by which it is opened again; refused once closed."""
        self.opened.host.calls.require_open()
        return self.opened.client.base_path

    def merged(self, options: Options | None) -> GivenOptions:
        """The options of a call, beside those of the table."""
        return self.options | options_as_strings(options)

    def config(self, merged: GivenOptions) -> WriteConfig:
        """Options of a write; parsed again only where they have changed."""
        parsed = self._parsed
        if parsed is None or parsed[0] != merged:
            self._parsed = parsed = merged, WriteConfig.from_options(merged)
        return parsed[1]

    def reopen(self, options: Mapping[str, str] | None = None) -> None:
        """Open the table again after a change, perhaps with other options."""
        if options is not None:
            self.options = GivenOptions(options)
        self.opened = open_table(self.path, self.options)

    # --- reads -----------------------------------------------------------------------------------

    def present(self) -> OpenTable:
        """The stored table at its present timeline, for one query.

        The timeline is listed before the properties are read, so that these are at least as new:
        what they say of files holds for those of every commit that is listed. Only where they have
        changed, as by a move of the files, a conversion, a rewriting of keys or an upgrade of
        another writer, the table is opened again, and its timeline, which may be elsewhere by now,
        is listed again.
        """
        while True:
            opened, timeline, failure = self.opened, None, None
            try:
                timeline = opened.client.timeline()
            except HudiError as error:
                failure = error  # the folder may have become another one
            config = opened.client.config
            properties = self._stored.read(opened.client.storage)
            if properties != config.raw:
                self.options = still_given(self.options, config, properties)
                self.opened = open_table(self.path, self.options, properties)
            elif timeline is not None:
                # one timeline for the query and for what lists the files
                return opened.seeing(timeline)
            elif failure is not None:
                raise failure

    def schema(self) -> pa.Schema:
        """The present columns, without meta columns."""
        opened = self.present()
        return opened.client.schema_at(opened.timeline()).arrow

    def snapshot(self, spark: SparkSession | None = None) -> SnapshotQuery:
        """A query of states, by Spark where a session is given."""
        opened = self.present()
        if spark is not None:
            opened = opened.on(engine_of(spark))
        return self.latest.query(opened)

    def at(self, as_of: QueryTime | None) -> str | None:
        """The state that a query, or else an option, asks for."""
        return ReadConfig.as_of.read(self.options) if as_of is None else requested_time(as_of)

    def changes(
        self,
        begin: QueryTime | None,
        end: QueryTime | None,
        columns: Columns | None,
        row_filter: RowFilter | None,
    ) -> ChangedRows:
        """What the commits of a window changed."""
        opened = self.present()
        query = IncrementalQuery(opened.client, opened.timeline(), opened.lister())
        first, last = (
            option.read(self.options) if given is None else completed_time(given)
            for option, given in ((ReadConfig.begin, begin), (ReadConfig.end, end))
        )
        return ChangedRows(query, (first, last), names_of(columns), row_filter)

    # --- writes ----------------------------------------------------------------------------------

    def writing(
        self,
        options: Options | None,
        engine: Engine | None,
        extra_metadata: Mapping[str, str] | None,
        idempotency: tuple[str, int] | None,
        validators: Sequence[Validator],
    ) -> TableCall:
        """A call that writes."""
        extras = Extras(extra_metadata, idempotency, validators)
        return TableCall(self, options, engine, extras=extras)

    def writer(
        self, options: Options | None, engine: Engine, extras: Extras = NO_EXTRAS
    ) -> WriteClient:
        """The writer of one call."""
        merged, opened = self.merged(options), self.opened
        if merged != opened.client.options:
            opened = open_table(self.path, merged, opened.client.config.raw)
        config = self.config(merged)
        config = replace(config, extras=config.extras.given(*extras[:2]))
        require_syncable(opened, merged)
        services, lock = InlineServices(config.services), table_lock(opened, config)
        limits = SqlLimits.from_options(merged)
        validation = Validation(config.validators, extras.validators, limits)
        writer = WriteClient(opened, lock, engine, config, services, known=self._left)
        writer.validation = None if validation.is_empty else validation
        return writer

    def done(self, writer: WriteClient, write: Callable[[], CommitResult]) -> CommitResult:
        """The result of a write, after what follows it.

        Later reads use the writer's table.
        """
        try:
            result = write()
        finally:
            self.opened = writer.table
        expire_after_commit(writer)
        self.opened = writer.table
        given = writer.table, writer.lock, writer.config, writer.engine
        compact_after_commit(*given, left=self._left.timeline)
        cluster_after_commit(*given)
        return self.synced(result)

    # --- services --------------------------------------------------------------------------------

    def for_service(
        self,
        options: Options | None = None,
        progress: Progress = no_progress,
        engine: Engine | None = None,
    ) -> tuple[OpenTable, WriteConfig]:
        """The present table for a service on an engine, and its options."""
        merged = self.merged(options)
        opened = open_table(self.path, merged).on(chosen_engine(engine))
        return counted(opened, progress), self.config(merged)

    def locked(self) -> tuple[OpenTable, TableLock, WriteConfig]:
        """The table as it is now, with its lock and options."""
        opened, config = self.for_service()
        return opened, table_lock(opened, config), config

    def synced(self, result: Result) -> Result:
        """The result of a commit, after the syncs that follow it."""
        sync_after_commit(self.opened, self.opened.client.options, result)
        return result

    def pointed(self, result: Result, opened: OpenTable | None = None) -> Result:
        """The result of a service, after the syncs that follow it.

        Entries that point at a state are synced: the service may have deleted files of the one that
        they know. Others lag in nothing.
        """
        opened = self.opened if opened is None else opened
        options = opened.client.options
        if SyncConfig.wanted(options):
            registration = opened.host.get_registration(opened.client)
            if registration is not None and registration.pointer is not None:
                sync_after_commit(opened, options, result)
        return result


@dataclass(frozen=True, slots=True)
class TableCall:
    """One call of a method, with the arguments that many methods take."""

    session: TableSession
    options: Options | None = None
    engine: Engine | None = None
    progress: Progress = no_progress
    dry_run: bool = False
    extras: Extras = NO_EXTRAS

    @property
    def merged(self) -> GivenOptions:
        """Its options, beside those of the table."""
        return self.session.merged(self.options)

    def for_service(self) -> tuple[OpenTable, WriteConfig]:
        """The present table for this service, and its options."""
        return self.session.for_service(self.options, self.progress, self.engine)

    def take(self, engine: Engine, data: Any) -> Any:
        """Rows as the engine takes them."""
        return engine.take(data, self.session.schema)

    def writer(self, engine: Engine) -> WriteClient:
        """Its writer."""
        return self.session.writer(self.options, engine, self.extras)

    def changed(self, result: Result, options: Mapping[str, str]) -> Result:
        """The result of a change, after which the table has these options.

        A dry run changes neither.
        """
        if not self.dry_run:
            self.session.reopen(options)
        return result


# --- outside of this process ----------------------------------------------------------------------


def facts_of(client: MetaClientView) -> Mapping[str, str | list[str]]:
    """What a table is, as the last call saw it.

    Nothing is read for it.
    """
    config = client.config
    return {
        "path": client.base_path,
        "name": config.name,
        "format": config.table_format,
        "record_key": list(config.record_key_fields),
        "partition_by": list(config.partition_fields),
    }


def as_html(facts: Mapping[str, str | list[str]]) -> str:
    """Facts as rows of HTML."""
    rows = (
        f"<tr><th>{name.replace('_', ' ')}</th>"
        f"<td>{escape(fact if isinstance(fact, str) else ', '.join(fact))}</td></tr>"
        for name, fact in facts.items()
    )
    return f"<table>{''.join(rows)}</table>"


def pickled(
    session: TableSession, reopen: Callable[[str, Mapping[str, str]], Opened]
) -> tuple[Callable[..., Opened], tuple[object, ...]]:
    """A pickle of a table: its path, and its options without secrets."""
    kept = {name: text for name, text in session.options.items() if not is_secret_name(name)}
    return _unpickled, (reopen, session.path, kept, sorted(session.options.keys() - kept.keys()))


def _unpickled(
    reopen: Callable[[str, Mapping[str, str]], Opened],
    path: str,
    options: Mapping[str, str],
    left_out: Sequence[str],
) -> Opened:
    """A table from a pickle; the environment has the secrets."""
    try:
        return reopen(path, options)
    except HudiError as error:
        if not left_out:
            raise
        raise HudiError(
            f"The table {path} cannot be opened from a pickle, which leaves out secrets "
            f"({', '.join(left_out)}): {error.what}",
            "Set them in the environment of this process, or open the table by its path with them.",
            path=path,
            left_out=tuple(left_out),
        ) from error
