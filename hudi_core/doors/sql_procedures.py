"""Hudi's SQL procedures as functions: what ``CALL show_commits(...)`` does, on a session.

Names, parameters and columns are those of Hudi 1.2. Spark passes no ``CALL`` to a catalog that is
not written for the JVM, so they are called from Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from hudi_core.actions.compaction import read_compaction
from hudi_core.config.clustering import ClusteringConfig
from hudi_core.config.resolve import given_options, options_as_strings
from hudi_core.config.services import ServicesConfig
from hudi_core.config.ttl import TtlConfig
from hudi_core.engine.choice import catalog_of, engine_of
from hudi_core.errors import InstantNotFoundError, InvalidOptionError, NotATableError
from hudi_core.model.commit import (
    NO_PREVIOUS_COMMIT,
    CommitMetadata,
    WriteOperation,
    WriteStat,
)
from hudi_core.model.instant import Action, Instant
from hudi_core.services.compaction import require_compactable
from hudi_core.services.opening import open_table
from hudi_core.table import Options, Table
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.serde import decode_clean, decode_rollback, decode_savepoint
from hudi_core.timeline.timeline import instant_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BOOLEAN: Final = pa.bool_()
Done = TypeVar("Done")


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
        done = self._on(handle.clean)(options=options_of(given, options))
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
        operation = planned_operation(op, instants, plan)
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

    def show_compaction(
        self, table: str, limit: int = 20, *, log_compaction: bool = False
    ) -> DataFrame:
        """Compactions, completed and pending; with ``log_compaction`` those of logs.

        With a row for every file of a completed one, and every partition of a pending one.
        """
        opened = self._opened(table)
        require_compactable(opened)
        kind = Action.LOGCOMPACTION if log_compaction else Action.COMPACTION
        instants = reversed(opened.timeline().instants)
        found = [one for one in instants if is_compaction(opened, one, kind)]
        rows = [row for one in found[:limit] for row in compaction_rows(opened, one)]
        return self._frame(rows[:limit], COMPACTIONS)

    def run_compaction(
        self,
        table: str,
        op: str,
        *,
        timestamp: str | int | None = None,
        instants: str | None = None,
        options: str | None = None,
        log_compaction: bool = False,
    ) -> DataFrame:
        """Merge log files into base files, on the executors of the session.

        With ``log_compaction`` the log files of a file slice into one; ``execute`` runs either.

        ``op`` is ``schedule``, ``execute`` or ``run``: both in one, or with ``timestamp`` or
        ``instants`` (separated by commas) ``execute``. Without these, ``execute`` runs all that are
        scheduled.
        """
        named = instants if timestamp is None or instants is not None else str(timestamp)
        operation = planned_operation(None if op.lower() == "run" else op, named, {})
        given, handle, engine = options_of({}, options), self._table(table), engine_of(self._spark)
        if operation == EXECUTE:
            done = [
                one
                for instant in (listed(named) if named is not None else [None])
                for one in handle.run_compactions(instant, options=given, engine=engine)
            ]
        else:
            only = operation == SCHEDULE
            done = [
                handle.compact(
                    schedule_only=only, log_compaction=log_compaction, options=given, engine=engine
                )
            ]
        rows = [
            row_of(
                COMPACTION,
                done=one,
                size=len(one.slices),
                state="REQUESTED" if one.result is None else "COMPLETED",
            )
            for one in reversed(done)
            if one.instant is not None
        ]
        return self._frame(rows, COMPACTION)

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
        return self._did(self._on(self._table(table).rollback), "rollback_result", instant_time)

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
        return self._did(self._on(handle.restore), "rollback_savepoint_result", time)

    # --- in common -------------------------------------------------------------------------------

    def _on(self, service: Callable[..., Done]) -> Callable[..., Done]:
        """A service, on the executors of the session."""
        return partial(service, engine=engine_of(self._spark))

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


# --- arguments of the procedures, checked ---------------------------------------------------------


SCHEDULE: Final = "schedule"
"""Make a plan."""
EXECUTE: Final = "execute"
"""Carry out plans that there are."""
_BOTH: Final = "scheduleandexecute"


def planned_operation(op: str | None, instants: str | None, plan: Mapping[str, str | None]) -> str:
    """What ``run_clustering`` or ``run_compaction`` is to do."""
    named = instants is not None
    operation = (EXECUTE if named else _BOTH) if op is None else op.lower()
    if operation not in (SCHEDULE, EXECUTE, _BOTH):
        raise InvalidOptionError(
            "op",
            op,
            "there is no such operation",
            f"Use one of {SCHEDULE}, {EXECUTE}, {_BOTH}.",
        )
    if named and operation != EXECUTE:
        raise InvalidOptionError(
            "instants", instants, f"{op} makes a plan of its own", f"Use {EXECUTE}, or no op."
        )
    if instants is not None and not all(listed(instants)):
        raise InvalidOptionError("instants", instants, "it names none", "Separate by commas.")
    for name, value in plan.items():
        if value is not None and operation == EXECUTE:
            raise InvalidOptionError(
                name, value, "a scheduled clustering has its plan", f"Give it to {SCHEDULE}."
            )
    return operation


def listed(text: str) -> list[str]:
    """Parts of a string that commas separate."""
    return [part.strip() for part in text.split(",")]


def options_of(given: Mapping[str, Any], more: str | None) -> dict[str, str]:
    """Options of arguments that were given, and of Hudi's text ``key=value,key=value``."""
    found = {key: str(value) for key, value in given.items() if value is not None}
    for part in filter(None, (part.strip() for part in (more or "").split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise InvalidOptionError("options", part, "it is no key=value", "Separate by commas.")
        found[key.strip()] = value.strip()
    return found


# --- columns and rows of the procedures -----------------------------------------------------------


_TEXT, _LONG, _INT = pa.string(), pa.int64(), pa.int32()
Columns = Mapping[str, tuple[pa.DataType, str]]
"""Columns of a procedure: a type, and where the value is found.

That is an attribute of one of the values that a row is made of.
"""
_INSTANT: Final[Columns] = {
    "state_transition_time": (_TEXT, "instant.completion_time"),
    "action": (_TEXT, "instant.action.value"),
}
_COMMIT: Final[Columns] = {"commit_time": (_TEXT, "instant.requested_time"), **_INSTANT}
COMMITS: Final[Columns] = {
    **_COMMIT,
    "total_bytes_written": (_LONG, "total.total_write_bytes"),
    "total_files_added": (_LONG, "total.added"),
    "total_files_updated": (_LONG, "total.updated"),
    "total_partitions_written": (_LONG, "total.partitions"),
    "total_records_written": (_LONG, "total.num_writes"),
    "total_update_records_written": (_LONG, "total.num_update_writes"),
    "total_errors": (_LONG, "total.total_write_errors"),
}
COMMITS_METADATA: Final[Columns] = {
    **_COMMIT,
    "partition": (_TEXT, "partition"),
    "file_id": (_TEXT, "stat.file_id"),
    "previous_commit": (_TEXT, "stat.prev_commit"),
    "num_writes": (_LONG, "stat.num_writes"),
    "num_inserts": (_LONG, "stat.num_inserts"),
    "num_deletes": (_LONG, "stat.num_deletes"),
    "num_update_writes": (_LONG, "stat.num_update_writes"),
    "total_errors": (_LONG, "stat.total_write_errors"),
    "total_log_blocks": (_LONG, "stat.total_log_blocks"),
    "total_corrupt_log_blocks": (_LONG, "stat.total_corrupt_log_block"),
    "total_rollback_blocks": (_LONG, "stat.total_rollback_blocks"),
    "total_log_records": (_LONG, "stat.total_log_records"),
    "total_updated_records_compacted": (_LONG, "stat.total_updated_records_compacted"),
    "total_bytes_written": (_LONG, "stat.total_write_bytes"),
}
EXTRA_METADATA: Final[Columns] = {
    "instant_time": (_TEXT, "instant.requested_time"),
    "action": (_TEXT, "instant.action.value"),
    "metadata_key": (_TEXT, "key"),
    "metadata_value": (_TEXT, "text"),
}
TIMELINE: Final[Columns] = {
    "instant_time": (_TEXT, "instant.requested_time"),
    "action": (_TEXT, "instant.action.value"),
    "state": (_TEXT, "instant.state.name"),
    "completed_time": (_TEXT, "instant.completion_time"),
    "timeline_type": (_TEXT, "kind"),
    "rollback_info": (_TEXT, "info"),
}
_CLEAN: Final[Columns] = {
    "start_clean_time": (_TEXT, "clean.start_clean_time"),
    "time_taken_in_millis": (_LONG, "clean.time_taken_in_millis"),
    "total_files_deleted": (_INT, "clean.total_files_deleted"),
    "earliest_commit_to_retain": (_TEXT, "clean.earliest_commit_to_retain"),
}
_VERSION: Final[Columns] = {"version": (_INT, "clean.version")}
CLEANS: Final[Columns] = {
    "clean_time": (_TEXT, "instant.requested_time"),
    **_INSTANT,
    **_CLEAN,
    "last_completed_commit_timestamp": (_TEXT, "clean.last_completed_commit_timestamp"),
    **_VERSION,
}
RUN_CLEAN: Final[Columns] = {**_CLEAN, "bootstrap_part_metadata": (_TEXT, "bootstrap"), **_VERSION}
CLUSTERING: Final[Columns] = {
    "timestamp": (_TEXT, "done.instant"),
    "input_group_size": (_INT, "groups"),
    "state": (_TEXT, "state"),
    "involved_partitions": (_TEXT, "partitions"),
}
COMPACTION: Final[Columns] = {
    "timestamp": (_TEXT, "done.instant"),
    "operation_size": (_INT, "size"),
    "state": (_TEXT, "state"),
}
COMPACTIONS: Final[Columns] = {
    "compaction_time": (_TEXT, "instant.requested_time"),
    "state_transition_time": (_TEXT, "instant.completion_time"),
    "state": (_TEXT, "instant.state.name"),
    "action": (_TEXT, "instant.action.value"),
    "timeline_type": (_TEXT, "kind"),
    "operation_size": (_INT, "size"),
    "partition_path": (_TEXT, "partition"),
    "total_log_files_per_partition": (_LONG, "stat.total_log_files_compacted"),
    "total_updated_records_compacted_per_partition": (
        _LONG,
        "stat.total_updated_records_compacted",
    ),
    "total_log_size_compacted_per_partition": (_LONG, "stat.total_log_size_compacted"),
    "total_write_bytes_per_partition": (_LONG, "stat.total_write_bytes"),
}
SAVEPOINTS: Final[Columns] = {
    "savepoint_time": (_TEXT, "instant.requested_time"),
    "state_transition_time": (_TEXT, "instant.completion_time"),
    "state": (_TEXT, "instant.state.name"),
    "action": (_TEXT, "instant.action.value"),
    "timeline_type": (_TEXT, "kind"),
    "savepointed_by": (_TEXT, "kept.savepointed_by"),
    "savepointed_at": (_LONG, "kept.savepointed_at"),
    "comments": (_TEXT, "kept.comments"),
    "partition_path": (_TEXT, "partition"),
    "savepoint_data_file": (_TEXT, "file"),
    "version": (_INT, "version"),
}


def row_of(columns: Columns, **values: Any) -> dict[str, Any]:
    """A row of values, by the names of its columns."""
    found = SimpleNamespace(**values)
    return {name: attrgetter(where)(found) for name, (_, where) in columns.items()}


def completed(opened: OpenTable, action: Action) -> list[Instant]:
    """Completed instants of an action, the newest first."""
    instants = opened.timeline().instants
    return [one for one in reversed(instants) if one.action is action and one.is_completed]


def writes(opened: OpenTable, limit: int | None = None) -> list[Instant]:
    """Completed writes, the newest first."""
    return list(reversed(opened.timeline().completed_writes()))[:limit]


def commit_row(instant: Instant, commit: CommitMetadata) -> dict[str, Any]:
    """A write as :data:`COMMITS` has it."""
    stats = [stat for stats in commit.partition_to_write_stats.values() for stat in stats]
    added = sum(stat.prev_commit in (None, NO_PREVIOUS_COMMIT) for stat in stats)
    names = ("total_write_bytes", "num_writes", "num_update_writes", "total_write_errors")
    total = SimpleNamespace(
        added=added,
        updated=len(stats) - added,
        partitions=len(commit.partition_to_write_stats),
        **{name: sum(getattr(stat, name) or 0 for stat in stats) for name in names},
    )
    return row_of(COMMITS, instant=instant, total=total)


def is_compaction(opened: OpenTable, instant: Instant, kind: Action) -> bool:
    """Whether an instant is a compaction of a kind, in any state."""
    if not instant.is_completed:
        return instant.action is kind
    if instant.action is not kind.completed_action:
        return False
    is_of_logs = kind is Action.LOGCOMPACTION
    wanted = WriteOperation.LOG_COMPACT if is_of_logs else WriteOperation.COMPACT
    return opened.client.active.read_notes(instant).operation_type == wanted


def compaction_rows(opened: OpenTable, instant: Instant) -> list[dict[str, Any]]:
    """A compaction as :data:`COMPACTIONS` has it."""
    by_partition: dict[str, list[WriteStat]] = {}
    if instant.is_completed:
        stored = opened.client.read_commit(instant).partition_to_write_stats
        by_partition = {path: list(stats) for path, stats in stored.items()}
        sizes = dict.fromkeys(by_partition, sum(map(len, by_partition.values())))
    else:
        operations = read_compaction(opened.client, instant).operations or ()
        logs = Counter[str]()
        for one in operations:
            logs[one.partition_path or ""] += len(one.delta_file_paths or ())
        sizes = Counter(one.partition_path or "" for one in operations)
        by_partition = {
            path: [WriteStat(total_log_files_compacted=count)] for path, count in logs.items()
        }
    return [
        row_of(
            COMPACTIONS,
            instant=instant,
            kind="ACTIVE",
            size=sizes[path],
            partition=path,
            stat=stat,
        )
        for path, stats in by_partition.items()
        for stat in stats
    ]


def undone(opened: OpenTable) -> dict[str, str]:
    """What rollbacks and the instants they took back say of each other."""
    found: dict[str, str] = {}
    for one in completed(opened, Action.ROLLBACK):
        path = opened.client.active.path(one)
        body = decode_rollback(opened.client.active.read(one), path)
        taken = ", ".join(body.commits_rollback)
        found[one.requested_time] = f"Rolled back {taken}"
        for time in body.commits_rollback:
            found[time] = f"Rolled back by {one.requested_time}"
    return found


def clean_row(opened: OpenTable, instant: Instant, columns: Columns = CLEANS) -> dict[str, Any]:
    """A completed clean."""
    clean = decode_clean(opened.client.active.read(instant), opened.client.active.path(instant))
    return row_of(columns, instant=instant, clean=clean, bootstrap=None)


def savepoint_rows(opened: OpenTable, instant: Instant) -> list[dict[str, Any]]:
    """A savepoint as :data:`SAVEPOINTS` has it: a row for each file."""
    path = opened.client.active.path(instant)
    kept = decode_savepoint(opened.client.active.read(instant), path)
    files: list[tuple[str | None, str | None]] = [
        (partition, file)
        for partition, part in kept.partition_metadata.items()
        for file in part.savepoint_data_file
    ]
    same = {"instant": instant, "kept": kept, "kind": "ACTIVE", "version": 1}
    return [
        row_of(SAVEPOINTS, **same, partition=partition, file=file)
        for partition, file in files or [(None, None)]
    ]
