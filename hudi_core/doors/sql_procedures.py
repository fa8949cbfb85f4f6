"""Hudi's SQL procedures as functions: what ``CALL show_commits(...)`` does, on a session.

Names, parameters and columns are those of Hudi 1.2. Spark passes no ``CALL`` to a catalog that is
not written for the JVM, so they are called from Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from hudi_core.config.clustering import ClusteringConfig
from hudi_core.config.resolve import given_options, options_as_strings
from hudi_core.config.services import ServicesConfig
from hudi_core.config.ttl import TtlConfig
from hudi_core.doors.procedure_arguments import (
    EXECUTE,
    SCHEDULE,
    clustering_operation,
    listed,
    options_of,
)
from hudi_core.doors.procedure_rows import (
    CLEANS,
    CLUSTERING,
    COMMITS,
    COMMITS_METADATA,
    EXTRA_METADATA,
    RUN_CLEAN,
    SAVEPOINTS,
    TIMELINE,
    Columns,
    clean_row,
    commit_row,
    completed,
    row_of,
    savepoint_rows,
    undone,
    writes,
)
from hudi_core.engine.choice import catalog_of, engine_of
from hudi_core.errors import InstantNotFoundError, NotATableError
from hudi_core.model.instant import Action
from hudi_core.services.opening import open_table
from hudi_core.table import Options, Table
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import instant_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_BOOLEAN: Final = pa.bool_()


def procedures(spark: SparkSession, options: Options | None = None) -> Procedures:
    """Hudi's procedures on the tables of a session.

    Parameters
    ----------
    spark
        The session; its catalog says where tables are that were created ``USING hudi``.
    options
        Hudi options for all of them, and those of the store.
    """
    return Procedures(spark, options)


class Procedures:
    """Hudi's procedures; see :func:`procedures`.

    ``table`` is a name in the session's catalog, or the path of a table. Every method returns a
    DataFrame with the columns of Hudi's procedure, the newest instant first. Those that change the
    table raise the error where it fails; Hudi's say ``false``.
    """

    def __init__(self, spark: SparkSession, options: Options | None = None) -> None:
        self._spark, self._options = spark, dict(given_options(options))

    # --- what happened ---------------------------------------------------------------------------

    def show_commits(self, table: str, limit: int = 10) -> DataFrame:
        """Completed writes, with what each of them wrote."""
        opened = self._opened(table)
        rows = [commit_row(one, opened.client.read_commit(one)) for one in writes(opened, limit)]
        return self._frame(rows, COMMITS)

    def show_commits_metadata(self, table: str, limit: int = 10) -> DataFrame:
        """Completed writes, with a row for every file."""
        opened = self._opened(table)
        rows = [
            row_of(COMMITS_METADATA, instant=one, partition=partition, stat=stat)
            for one in writes(opened, limit)
            for partition, stats in opened.client.read_commit(one).partition_to_write_stats.items()
            for stat in stats
        ]
        return self._frame(rows[:limit], COMMITS_METADATA)

    def show_commit_extra_metadata(
        self,
        table: str,
        limit: int = 100,
        instant_time: str | None = None,
        metadata_key: str | None = None,
    ) -> DataFrame:
        """What the last commit, or a named one, keeps for its caller."""
        opened = self._opened(table)
        found = [
            one
            for one in writes(opened)
            if instant_time is None or one.requested_time == instant_time
        ]
        if not found:
            raise InstantNotFoundError(instant_time or "of a commit", opened.client.active.folder)
        kept = opened.client.read_commit(found[0]).extra_metadata
        rows = [
            row_of(EXTRA_METADATA, instant=found[0], key=key, text=text)
            for key, text in kept.items()
            if metadata_key is None or key == metadata_key.strip()
        ]
        return self._frame(rows[:limit], EXTRA_METADATA)

    def show_timeline(
        self,
        table: str,
        limit: int = 20,
        showArchived: bool = False,  # noqa: N803 - Hudi's
    ) -> DataFrame:
        """Instants of all kinds in all states.

        Hudi's columns ``requested_time`` and ``inflight_time``, which are times of change of files,
        are left out.
        """
        opened = self._opened(table)
        # a savepoint has the time of its commit
        seen = {instant_key(one): (one, "ACTIVE") for one in opened.timeline().instants}
        if showArchived:
            for archived in opened.client.archived.load():
                seen.setdefault(instant_key(archived.instant), (archived.instant, "ARCHIVED"))
        taken_back = undone(opened)
        rows = [
            row_of(TIMELINE, instant=one, kind=kind, info=taken_back.get(time))
            for (time, _), (one, kind) in sorted(seen.items(), reverse=True)
        ]
        return self._frame(rows[:limit], TIMELINE)

    def show_cleans(self, table: str, limit: int = 10) -> DataFrame:
        """Completed cleans."""
        opened = self._opened(table)
        rows = [clean_row(opened, one) for one in completed(opened, Action.CLEAN)[:limit]]
        return self._frame(rows, CLEANS)

    def show_savepoints(self, table: str, limit: int = 10) -> DataFrame:
        """Savepoints, with a row for every file that they keep."""
        opened = self._opened(table)
        rows = [
            row
            for one in completed(opened, Action.SAVEPOINT)[:limit]
            for row in savepoint_rows(opened, one)
        ]
        return self._frame(rows, SAVEPOINTS)

    # --- services --------------------------------------------------------------------------------

    def run_clean(
        self,
        table: str,
        *,
        clean_policy: str | None = None,
        retain_commits: int | None = None,
        hours_retained: int | None = None,
        file_versions_retained: int | None = None,
        options: str | None = None,
    ) -> DataFrame:
        """Delete file slices that are not retained.

        There is no row where there was nothing to do.
        """
        given = {
            ServicesConfig.clean_policy.key: clean_policy,
            ServicesConfig.commits_retained.key: retain_commits,
            ServicesConfig.hours_retained.key: hours_retained,
            ServicesConfig.file_versions_retained.key: file_versions_retained,
        }
        handle = self._table(table)
        done = handle.clean(options=options_of(given, options))
        if done.instant is None:
            return self._frame([], RUN_CLEAN)
        row = clean_row(self._opened(table), done.instant, RUN_CLEAN)
        return self._frame([row], RUN_CLEAN)

    def run_clustering(
        self,
        table: str,
        *,
        order: str | None = None,
        order_strategy: str | None = None,
        selected_partitions: str | None = None,
        op: str | None = None,
        instants: str | None = None,
        show_involved_partition: bool = False,
        options: str | None = None,
    ) -> DataFrame:
        """Rewrite small files, on the executors of the session.

        ``op`` is ``schedule``, ``execute`` or ``scheduleAndExecute``; by default ``execute`` where
        ``instants`` (separated by commas) are named, else ``scheduleAndExecute``. Without
        ``instants``, ``execute`` runs all that are scheduled.
        """
        plan = {
            "order": order,
            "order_strategy": order_strategy,
            "selected_partitions": selected_partitions,
        }
        operation = clustering_operation(op, instants, plan)
        given = options_of(
            {
                ClusteringConfig.sort_columns.key: order,
                ClusteringConfig.layout.key: order_strategy,
                ClusteringConfig.partitions.key: selected_partitions,
            },
            options,
        )
        handle, engine = self._table(table), engine_of(self._spark)
        if operation == EXECUTE:
            named = listed(instants) if instants is not None else [None]
            done = [
                one
                for instant in named
                for one in handle.run_clusterings(instant, options=given, engine=engine)
            ]
        else:
            only = operation == SCHEDULE
            done = [handle.cluster(schedule_only=only, options=given, engine=engine)]
        rows = [
            row_of(
                CLUSTERING,
                done=one,
                groups=len(one.groups),
                state="REQUESTED" if one.result is None else "COMPLETED",
                partitions=",".join(sorted({str(group.partition_path) for group in one.groups}))
                if show_involved_partition
                else "*",
            )
            for one in reversed(done)
            if one.instant is not None
        ]
        return self._frame(rows, CLUSTERING)

    def run_ttl(
        self,
        table: str,
        ttl_policy: str | None = None,
        retain_days: int | None = None,
        options: str | None = None,
    ) -> DataFrame:
        """Delete partitions that were not written to for some days."""
        given = {TtlConfig.strategy.key: ttl_policy, TtlConfig.days_retained.key: retain_days}
        done = self._table(table).expire_partitions(options=options_of(given, options))
        return self._values("deleted_partitions", done.partitions, pa.string())

    def archive_commits(
        self, table: str, min_commits: int = 20, max_commits: int = 30, retain_commits: int = 10
    ) -> DataFrame:
        """Move old instants to the history; ``result`` is 0, as of Hudi's."""
        given = {
            ServicesConfig.keep_min_commits.key: str(min_commits),
            ServicesConfig.keep_max_commits.key: str(max_commits),
            ServicesConfig.commits_retained.key: str(retain_commits),
        }
        self._table(table).archive(options=given)
        return self._values("result", [0], pa.int32())

    # --- going back ------------------------------------------------------------------------------

    def rollback_to_instant(self, table: str, instant_time: str) -> DataFrame:
        """Undo the last completed write, or a dead writer's pending one."""
        return self._did(self._table(table).rollback, "rollback_result", instant_time)

    def create_savepoint(
        self, table: str, commit_time: str | None = None, user: str = "", comments: str = ""
    ) -> DataFrame:
        """Keep the files of a commit, by default the last one."""
        self._table(table).savepoint(commit_time or None, user=user, comment=comments)
        return self._values("create_savepoint_result", [True])

    def delete_savepoint(self, table: str, instant_time: str | None = None) -> DataFrame:
        """Let the files of a savepoint, by default the last, be cleaned."""
        handle = self._table(table)
        time = instant_time or _last_savepoint(handle)
        return self._did(handle.delete_savepoint, "delete_savepoint_result", time)

    def rollback_to_savepoint(self, table: str, instant_time: str | None = None) -> DataFrame:
        """Take the table back to a savepoint, by default the last one."""
        handle = self._table(table)
        time = instant_time or _last_savepoint(handle)
        if time not in {one.instant.requested_time for one in handle.savepoints}:
            raise InstantNotFoundError(time, f"the savepoints of {handle.path}")
        return self._did(handle.restore, "rollback_savepoint_result", time)

    # --- in common -------------------------------------------------------------------------------

    def _did(self, action: Callable[[str], object], name: str, time: str) -> DataFrame:
        action(time)
        return self._values(name, [True])

    def _path(self, table: str) -> str:
        """The path that is given, or that the catalog has."""
        if "/" in table or "\\" in table:
            return table
        found = catalog_of(self._spark).entry(table)
        if found is None:
            raise NotATableError(
                table,
                "is no table of the catalog that was created USING hudi",
                "Give its path, which has a slash.",
            )
        return found.path

    def _table(self, table: str) -> Table:
        return Table.open(self._path(table), self._options)

    def _opened(self, table: str) -> OpenTable:
        return open_table(self._path(table), options_as_strings(self._options))

    def _values(self, name: str, values: Sequence[Any], kind: pa.DataType = _BOOLEAN) -> DataFrame:
        return self._frame([{name: value} for value in values], {name: (kind, name)})

    def _frame(self, rows: Sequence[Mapping[str, Any]], columns: Columns) -> DataFrame:
        schema = pa.schema([(name, kind) for name, (kind, _) in columns.items()])
        return self._spark.createDataFrame(pa.Table.from_pylist(rows, schema))


def _last_savepoint(table: Table) -> str:
    if not table.savepoints:
        raise InstantNotFoundError("of a savepoint", f"the timeline of {table.path}")
    return table.savepoints[-1].instant.requested_time
