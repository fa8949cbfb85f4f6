"""`hudi clean`, `cluster`, `savepoint` and other services on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import typer

from hudi_core.cli.output import Grid, Part
from hudi_core.cli.service import (
    DRY_RUN,
    OPTION,
    UNCHANGED,
    Call,
    argument,
    confirmed,
    counted,
    names,
    option,
    service,
    some_of,
    switch,
)

if TYPE_CHECKING:
    from hudi_core.model.instant import Instant
    from hudi_core.model.result import CommitResult
    from hudi_core.services.archive import ArchiveResult
    from hudi_core.services.clean import CleanResult
    from hudi_core.services.clustering import Clustering
    from hudi_core.services.compaction import Compaction
    from hudi_core.services.partition_ttl import Expiry
    from hudi_core.services.purge import PurgeResult
    from hudi_core.services.rollback import RestoreResult, Savepoint
    from hudi_core.services.stage import Stage
    from hudi_core.sync.result import SyncResult

# --- history --------------------------------------------------------------------------------------


@service(
    DRY_RUN,
    progress="files",
    examples="hudi clean trips --dry-run\nhudi clean trips -o hoodie.clean.commits.retained=5",
)
def clean(done: CleanResult, call: Call) -> Iterator[Part]:
    """Delete file slices that no retained state of the table needs."""
    since = f"as of {done.earliest_retained}" if done.earliest_retained else "as of every commit"
    if not done.files and not done.partitions:
        yield f"{done.path}: nothing to delete; readable {since} and later."
        return
    did = "would delete" if call.dry_run else "deleted"
    yield from some_of("file", done.files, f"{done.path}: {did} {counted(len(done.files), 'file')}")
    yield f"Readable {since} and later ({done.policy.value})."
    if call.dry_run:
        yield UNCHANGED


@service(
    DRY_RUN,
    progress="files",
    facts=lambda _, call: {"archived": not call.dry_run},
    examples="hudi archive trips --dry-run\nhudi archive trips -o hoodie.keep.max.commits=40",
)
def archive(done: ArchiveResult, call: Call) -> Iterator[Part]:
    """Move old instants from the active timeline to its history."""
    count = counted(len(done.instants), "instant")
    if not done.instants:
        yield f"{done.path}: nothing to archive; {done.active} instants are active."
    elif call.dry_run:
        yield f"{done.path}: would archive {count} (--dry-run); {done.active} would stay active."
    else:
        yield f"{done.path}: archived {count}; {done.active} stay active."


@service(
    option("--days", "Days that a partition is kept.", int | None, min=1),
    DRY_RUN,
    does="expire_partitions",
    progress="partitions",
    examples="hudi ttl trips --days 365 --dry-run",
)
def ttl(done: Expiry, call: Call) -> Iterator[Part]:
    """Delete partitions that were not written to for some days.

    Options -o hoodie.partition.ttl.* say from when on the age counts, and of which partitions.
    """
    if not done.partitions:
        yield f"{done.path}: no partition is older than {done.days} days."
        return
    did = "would delete" if call.dry_run else "deleted"
    title = f"{done.path}: {did} {counted(len(done.partitions), 'partition')}"
    yield from some_of("partition", done.partitions, title)
    if call.dry_run:
        yield UNCHANGED


@service(
    option("--older-than", "Only rows that went before this instant time."),
    option(
        "--savepoint",
        "A savepoint to delete first; may be given often.",
        list[str] | None,
        name="savepoints",
    ),
    switch("--yes", "Delete: past states cannot be read any more."),
    DRY_RUN,
    progress="files",
    check=confirmed("past states go for good; say so"),
    examples="hudi purge trips --dry-run\n"
    "hudi purge trips --yes\n"
    "hudi purge trips --savepoint 20260131120000000 --yes",
)
def purge(done: PurgeResult, call: Call) -> Iterator[Part]:
    """Delete every trace of rows that the table no longer has.

    Log files are merged first. --dry-run lists the files with rows of past states; indexes,
    statistics and the metadata of the table's format are rebuilt besides.
    """
    count = len(done.files) + len(done.metadata_files)
    if call.dry_run:
        yield f"{done.path}: {count} files would be deleted."
        yield from done.files
    else:
        yield f"{done.path}: deleted {count} files of past states and rebuilt the metadata."


# --- clustering -----------------------------------------------------------------------------------

_PARTITIONS: Final = names(
    "--partitions", "Partitions to look at; commas between.", metavar="PATHS"
)
_CLUSTERINGS: Final = "path=@path dry_run=@dry_run clusterings="


def _check_clustering(given: dict[str, Any]) -> None:
    plan = ("schedule_only", "dry_run", "sort_by", "layout", "partitions")
    if given["run"] and any(given[name] for name in plan):
        raise typer.BadParameter("the plan has it all", param_hint="'--run'")
    if given["instant"] is not None and not given["run"]:
        raise typer.BadParameter("it goes with --run", param_hint="'--instant'")


def _cluster(call: Call) -> list[Clustering]:
    runs, instant = call.given.pop("run"), call.given.pop("instant")
    if runs:
        done = call.table.run_clusterings(instant, progress=call.given["progress"])
    else:
        done = [call.table.cluster(**call.given)]
    return [one for one in done if one.groups]


@service(
    names("--sort-by", "Sort the rows; commas between."),
    option("--layout", "How several columns sort: linear, z-order or hilbert."),
    _PARTITIONS,
    switch("--schedule", "Only put a plan on the timeline.", "schedule_only"),
    switch("--run", "Only run what is scheduled."),
    option("--instant", "With --run: which plan.", metavar="INSTANT"),
    OPTION,
    DRY_RUN,
    does=_cluster,
    progress="groups",
    check=_check_clustering,
    keys=_CLUSTERINGS,
    examples="hudi cluster trips --sort-by fare --dry-run\n"
    "hudi cluster trips --sort-by city,fare --layout hilbert",
)
def cluster(done: Sequence[Clustering], call: Call) -> Iterator[Part]:
    """Rewrite small files into larger ones, their rows in another order.

    By default a plan is made and run at once. Options -o hoodie.clustering.* say which files.
    """
    return _clustered(done, call)


@service(
    _PARTITIONS,
    OPTION,
    DRY_RUN,
    does=lambda call: [one for one in [call.table.optimize(**call.given)] if one.groups],
    progress="groups",
    keys=_CLUSTERINGS,
    examples="hudi optimize trips --dry-run",
)
def optimize(done: Sequence[Clustering], call: Call) -> Iterator[Part]:
    """Rewrite all small files into larger ones; rows stay in their order."""
    return _clustered(done, call)


def _clustered(done: Sequence[Clustering], call: Call) -> Iterator[Part]:
    path = call.table.path
    if not done:
        yield f"{path}: there is nothing to rewrite."
    for one in done:
        if one.result is not None:
            yield (
                f"Clustered {path} by instant {one.instant}: {one.files:,} files, {one.size:,} "
                f"bytes, became {one.result.files:,} files, {one.result.bytes_written:,} bytes."
            )
            continue
        rows = [
            [each.partition_path or "-", *(f"{count:,}" for count in counts)]
            for each in one.groups
            for counts in [(len(each.files), each.size, each.outputs)]
        ]
        yield Grid(["partition", "files", "bytes", "new files"], rows)
        if call.dry_run:
            yield UNCHANGED
        else:
            yield f"Scheduled as instant {one.instant}: `hudi cluster {path} --run` runs it."


# --- compaction -----------------------------------------------------------------------------------


def _check_compaction(given: dict[str, Any]) -> None:
    others = ("schedule_only", "dry_run", "log_compaction")
    if given["run"] is not None and any(given[one] for one in others):
        raise typer.BadParameter("the plan is there already", param_hint="'--run'")


def _compact(call: Call) -> list[Compaction]:
    instant = call.given.pop("run")
    if instant is None:
        return [one for one in [call.table.compact(**call.given)] if one.slices]
    wanted = None if instant == "all" else instant
    return call.table.run_compactions(wanted, progress=call.given["progress"])


@service(
    switch("--logs", "Merge the logs of a file slice into one log.", "log_compaction"),
    switch("--schedule-only", "Only put a plan on the timeline.", "schedule_only"),
    option("--run", "Only run this plan, or `all` of them.", metavar="INSTANT"),
    OPTION,
    DRY_RUN,
    does=_compact,
    progress="slices",
    check=_check_compaction,
    keys="path=@path dry_run=@dry_run compactions=",
    examples="hudi compact trips --dry-run\n"
    "hudi compact trips --logs -o hoodie.log.compaction.blocks.threshold=2\n"
    "hudi compact trips --schedule-only\n"
    "hudi compact trips --run all",
)
def compact(done: Sequence[Compaction], call: Call) -> Iterator[Part]:
    """Merge the log files of a MERGE_ON_READ table into base files.

    By default a plan is made and run at once. Options -o hoodie.compaction.* say which file slices,
    with --logs hoodie.log.compaction.blocks.threshold (5).
    """
    path = call.table.path
    if not done:
        yield f"{path}: there is nothing to compact."
    for one in done:
        logs = f"{counted(one.logs, 'log', ',')} of {counted(len(one.slices), 'file slice', ',')}"
        if one.result is not None:
            kind = "base file" if one.result.operation == "COMPACT" else "log"
            yield (
                f"Compacted {path} by instant {one.instant}: {logs}, {one.log_bytes:,} bytes, "
                f"became {counted(one.result.files, kind, ',')}, "
                f"{one.result.bytes_written:,} bytes."
            )
            continue
        rows = [
            [each.partition_path or "-", each.file_id, *(f"{count:,}" for count in counts)]
            for each in one.slices
            for logs in [each.log_files]
            for counts in [(len(logs), sum(log.status.size for log in logs))]
        ]
        yield Grid(["partition", "file group", "logs", "log bytes"], rows)
        if call.dry_run:
            yield UNCHANGED
        else:
            yield f"Scheduled as instant {one.instant}: `hudi compact {path} --run all` runs it."


# --- going back -----------------------------------------------------------------------------------


@service(
    argument("INSTANT", "Requested time, as `hudi timeline` shows it."),
    DRY_RUN,
    progress="files",
    keys="path=@path rolled_back=@instant rollback=",
    examples="hudi rollback trips 20260131120000000 --dry-run\n"
    "hudi rollback trips 20260131120000000",
)
def rollback(done: Any, call: Call) -> Iterator[Part]:
    """Undo the last completed write, or a dead writer's pending one."""
    target = call.given["instant"]
    if call.dry_run:
        paths = done.paths
        count = counted(len(paths), "file")
        yield f"{done.path}: would roll back {target} and delete {count} (--dry-run)."
        if paths:
            yield Grid(["file"], [[one] for one in paths], "files")
    else:
        yield f"Rolled back {target} of {call.table.path}; the rollback is {done.requested_time}."


@service(
    argument("INSTANT", "Requested time of the commit or its savepoint."),
    switch("--yes", "Restore: the commits after that one are gone."),
    DRY_RUN,
    progress="files",
    check=confirmed("later commits are lost; say so"),
    examples="hudi restore trips 20260131120000000 --dry-run\n"
    "hudi restore trips 20260131120000000 --yes",
)
def restore(done: RestoreResult, call: Call) -> Iterator[Part]:
    """Take a table back to a commit; what came later is gone.

    --dry-run lists the commits that would be taken out.
    """
    rows = [[one.requested_time, one.action.value] for one in done.undone]
    count = counted(len(rows), "commit")
    if not rows:
        yield f"{done.path}: nothing came after {done.to.requested_time}."
        return
    if call.dry_run:
        yield f"{done.path}: would take out {count} (--dry-run)."
    else:
        yield f"{done.path}: is as after {done.to.requested_time}; {count} taken out."
    yield Grid(["instant", "action"], rows, "undone")


savepoint_app = typer.Typer(no_args_is_help=True, help="Commits whose files stay, to be restored.")


@savepoint_app.command()
@service(
    argument("[INSTANT]", "Requested time of the commit; else the last.", str | None, default=None),
    option("--user", "Who asks for it.", str, ""),
    option("--comment", "What it is for.", str, ""),
    does="savepoint",
    keys="path=@path savepoint=",
    examples="hudi savepoint create trips --comment 'before the load'",
)
def create(made: Savepoint, call: Call) -> Iterator[Part]:
    """Keep the files of a commit from being cleaned."""
    yield f"{call.table.path}: {made.instant.requested_time} is saved, with {made.files} files."


@savepoint_app.command("list")
@service(
    does=lambda call: call.table.savepoints,
    keys="path=@path savepoints=",
    examples="hudi savepoint list trips --json",
)
def show_savepoints(found: Sequence[Savepoint], call: Call) -> Iterator[Part]:
    """Show the savepoints of a table, the oldest first."""
    rows = [
        [
            one.instant.requested_time,
            one.created.isoformat(timespec="seconds"),
            str(one.files),
            one.user,
            one.comment,
        ]
        for one in found
    ]
    title = f"{call.table.path}: {counted(len(rows), 'savepoint')}"
    yield Grid(["commit", "made", "files", "by", "comment"], rows, title)


@savepoint_app.command()
@service(
    argument("INSTANT", "Requested time of the savepoint."),
    does="delete_savepoint",
    keys="path=@path deleted=",
    examples="hudi savepoint delete trips 20260131120000000",
)
def delete(gone: Instant, call: Call) -> Iterator[Part]:
    """Let the files of a savepoint be cleaned again."""
    yield f"{call.table.path}: the savepoint of {gone.requested_time} is deleted."


# --- stages ---------------------------------------------------------------------------------------

stage_app = typer.Typer(no_args_is_help=True, help="Writes that wait for their publication.")
_STAGE: Final = argument("STAGE", "Id of the stage.")


@stage_app.command("list")
@service(does="stages", keys="path=@path stages=", examples="hudi stage list trips")
def show_stages(found: Sequence[Stage], call: Call) -> Iterator[Part]:
    """Show the stages of a table, the oldest first."""
    rows = [
        [
            one.id,
            one.operation,
            f"{one.commit.inserted:,}",
            f"{one.commit.updated:,}",
            f"{one.commit.deleted:,}",
            one.expires.isoformat(timespec="seconds"),
        ]
        for one in found
    ]
    headings = ["stage", "operation", "inserted", "updated", "deleted", "expires"]
    yield Grid(headings, rows, f"{call.table.path}: {counted(len(rows), 'stage')}")


@stage_app.command()
@service(
    _STAGE,
    does=lambda call: call.table.find_stage(call.given["stage"]).publish(),
    keys="path=@path stage=@stage commit=instant inserted updated deleted is_repetition",
    examples="hudi stage publish trips 20260131120000000-00000001",
)
def publish(done: CommitResult, call: Call) -> Iterator[Part]:
    """Write the rows of a stage, as one instant."""
    yield f"{call.table.path}: {done}"


@stage_app.command()
@service(
    _STAGE,
    does="drop_stage",
    keys="path=@path dropped=@stage",
    examples="hudi stage drop trips 20260131120000000-00000001",
)
def drop(_: None, call: Call) -> Iterator[Part]:
    """Delete a stage, be it expired, unfinished or damaged."""
    yield f"{call.table.path}: {call.given['stage']} is dropped."


# --- metastores -----------------------------------------------------------------------------------

_PREFIX: Final = "hoodie.datasource.hive_sync."
_URI: Final = option("--uri", "The metastore, such as thrift://metastore:9083.")
_ENTRY: Final = (
    option("--database", "The database; default by default."),
    option("--table", "The entry's name; the table's by default."),
)
sync_app = typer.Typer(no_args_is_help=True, help="Register tables in metastores.")


def _sync(tool: str, call: Call) -> SyncResult:
    keys = {"uri": "metastore.uris", "database": "database", "table": "table"}
    given = {f"{_PREFIX}{key}": call.given.get(name) for name, key in keys.items()}
    call.options |= {key: value for key, value in given.items() if value is not None}
    return call.table.sync(tool, dry_run=call.dry_run)


@sync_app.command()
@service(
    _URI,
    *_ENTRY,
    DRY_RUN,
    does=lambda call: _sync("hive", call),
    examples="hudi sync hive trips --uri thrift://metastore:9083 --database lake",
)
def hive(done: SyncResult, call: Call) -> Iterator[Part]:
    """Register a table in a Hive metastore, or update its entry."""
    return _synced(done, call)


@sync_app.command()
@service(
    *_ENTRY,
    DRY_RUN,
    does=lambda call: _sync("glue", call),
    examples="hudi sync glue trips --database lake --dry-run",
)
def glue(done: SyncResult, call: Call) -> Iterator[Part]:
    """Register a table in AWS Glue, or update its entry."""
    return _synced(done, call)


def _synced(done: SyncResult, call: Call) -> Iterator[Part]:
    rows = [
        [
            f"{one.database}.{one.name}",
            one.change.value,
            *(str(len(paths)) for paths in (one.added, one.changed, one.dropped)),
        ]
        for one in done.entries
    ]
    head = ["entry", "it is", "partitions added", "changed", "dropped"]
    yield Grid(head, rows, f"{done.path} in {done.address}")
    for one in done.entries:
        yield from (f"{one.name}: {change}" for change in one.columns)
    if call.dry_run:
        yield UNCHANGED


SERVICES: Final = (clean, archive, ttl, purge, cluster, optimize, compact, rollback, restore)
"""Commands of `hudi` itself."""
