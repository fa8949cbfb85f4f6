"""What may be cut short about a metadata table: tables as they are before, and what is done then.

A scene is made in the process of the test and acted in a process of its own, which may be told to
die or to fail at a step; see :mod:`tests.crash.counting_storage`.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from dataclasses import replace as replace_scene
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

import hudi_core as hudi
from hudi_core.actions.archive import archive
from hudi_core.actions.archive_plan import ArchiveRules, plan_archive
from hudi_core.engine.local import LocalEngine
from hudi_core.metadata.table import StoredPartitions, metadata_client
from hudi_core.model.instant import Action
from hudi_core.services.opening import open_table
from hudi_core.timeline.timeline import Timeline
from tests.crash.counting_storage import CountedSteps, Fault, in_fork
from tests.crash.disk_states import DiskState, DiskStates
from tests.operators import operator
from tests.tables import SCHEMA, new_table

COLUMNS: Final = (
    *("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key"),
    *SCHEMA.names,
)
Row = tuple[str, str, int]
Rows = frozenset[Row]

BATCH: Final[Rows] = frozenset({("a", "x", 5), ("c", "y", 5), ("n", "z", 5)})
LAST: Final[Row] = ("q", "x", 9)
OLD: Final[Rows] = frozenset({("a", "x", 0), ("b", "x", 0), ("c", "y", 0), ("d", "y", 0)})
NEW: Final[Rows] = frozenset(row for row in OLD if row[0] not in "ac") | BATCH

_ONE_BY_ONE: Final = LocalEngine(1)
"""Writes one file after the other, so that steps have the same order every time."""
_BUILT: Final = frozenset({"files", "column_stats", "partition_stats", "record_index"})
_FAST: Final = {"hoodie.fs.fsync": "false"}
_OFF: Final = {**_FAST, "hoodie.metadata.enable": "false"}
_ON: Final = {
    **_FAST,
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    # keys of these have names of files in them: with one group the steps are always as many
    "hoodie.metadata.index.column.stats.file.group.count": "1",
    "hoodie.metadata.index.bloom.filter.file.group.count": "1",
}
_COMPACTED: Final = {**_ON, "hoodie.metadata.compact.max.delta.commits": "2"}
_CLEANED: Final = {**_COMPACTED, "hoodie.metadata.cleaner.commits.retained": "1"}
_ARCHIVED: Final = {
    **_ON,
    "hoodie.metadata.keep.min.commits": "2",
    "hoodie.metadata.keep.max.commits": "3",
}
_ALL: Final = {**_CLEANED, **_ARCHIVED}
_LATER: Final = {**_ON, "hoodie.metadata.cleaner.commits.retained": "1"}


def table_of(rows: Rows) -> pa.Table:
    """Return rows as a table."""
    return pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in sorted(rows)], SCHEMA
    )


def upsert(path: str, options: dict[str, str]) -> None:
    """Write the batch."""
    hudi.Table.open(path, options).upsert(table_of(BATCH), engine=_ONE_BY_ONE)


def undo(path: str, options: dict[str, str]) -> None:
    """Roll the last write back."""
    table = hudi.Table.open(path, options)
    writes = table.timeline.completed_writes()
    if len(writes) > 1:
        table.rollback(writes[-1])


def replace(path: str, options: dict[str, str]) -> None:
    """Replace all file groups."""
    hudi.Table.open(path, options).insert_overwrite_table(table_of(BATCH), engine=_ONE_BY_ONE)


def create(path: str, options: dict[str, str]) -> None:
    """Make the metadata table."""
    operator(path, options).create()


def delete(path: str, options: dict[str, str]) -> None:
    """Delete the metadata table, and keep a copy."""
    operator(path, options).delete(backup=True)


def to_date(path: str, options: dict[str, str]) -> None:
    """Do all services that are due."""
    operator(path, options).bring_to_date()


def index(path: str, options: dict[str, str]) -> None:
    """Add a partition."""
    operator(path, options).index("bloom_filters")


def index_column(path: str, options: dict[str, str]) -> None:
    """Add a secondary index."""
    operator(path, options).index("secondary_index_ts", "ts")


def repair(path: str, options: dict[str, str]) -> None:
    """Rebuild the metadata table beside the one in use, and put it in its place."""
    hudi.Table.open(path, options).repair_metadata(engine=_ONE_BY_ONE)


def drop(path: str, options: dict[str, str]) -> None:
    """Drop a partition."""
    operator(path, options).drop("record_index")


@dataclass(frozen=True)
class Scene:
    """What a table is before something is done that is cut short.

    ``given``: options of the one who acts, and of who comes after. ``act``: what is done.
    ``created``: options of the table; by default the same. ``writes``: how many writes the table
    has. ``prepare``: what else was done to it. ``old``, ``new``: its rows before and after.
    ``services``: actions that are on the metadata table's timeline when the next write is complete.
    ``partitions``: of the metadata table, when all is done. ``goes_on``: whether what was begun is
    not undone when it fails, but done to its end by the next writer. ``wound``: another scene,
    whose table this is, and before which step its actor died: the last one of this name.
    """

    given: dict[str, str]
    act: Callable[[str, dict[str, str]], None] = upsert
    created: dict[str, str] = field(default_factory=dict)
    writes: int = 1
    prepare: tuple[Callable[[str, dict[str, str]], None], ...] = ()
    old: Rows = OLD
    new: Rows = NEW
    services: frozenset[Action] = frozenset()
    partitions: frozenset[str] = _BUILT
    goes_on: bool = False
    wound: tuple[str, str] | None = None


def archive_table(path: str, _: dict[str, str]) -> None:
    """Archive the table itself, which its metadata table follows."""
    client = open_table(path, _FAST).client
    assert archive(client, plan_archive(client.timeline(), ArchiveRules(2, 3), None))


def quiet_write(path: str, _: dict[str, str]) -> None:
    """Write without any service."""
    hudi.Table.open(path, _ON).upsert(table_of(OLD))


def compacting_write(path: str, _: dict[str, str]) -> None:
    """Write and compact."""
    hudi.Table.open(path, _COMPACTED).upsert(table_of(OLD))


_COMPACT: Final = frozenset({Action.COMMIT})
_CLEAN: Final = frozenset({Action.COMMIT, Action.CLEAN})
_AFTER_CLEAN: Final = (compacting_write, *[quiet_write] * 2, compacting_write, *[quiet_write] * 3)
_SOUND: Final = {
    "build": Scene(_ON, created=_OFF),
    "build_empty": Scene(_ON, writes=0, old=frozenset(), new=BATCH),
    "create": Scene(_ON, create, created=_OFF, new=OLD),
    "delete": Scene(_ON, delete, new=OLD),
    "commit": Scene(_ON),
    "replace": Scene(_ON, replace, new=BATCH),
    "undo": Scene(_ON, undo, prepare=(upsert,), old=NEW, new=OLD, goes_on=True),
    "compact": Scene(_COMPACTED, created=_ON, writes=3, services=_COMPACT),
    "clean": Scene(_LATER, prepare=_AFTER_CLEAN, services=_CLEAN),
    "archive": Scene(_ARCHIVED, created=_ON, writes=6, prepare=(archive_table,)),
    "services": Scene(
        _ALL,
        to_date,
        created=_ON,
        writes=2,
        prepare=(*_AFTER_CLEAN, archive_table),
        new=OLD,
        services=_CLEAN,
    ),
    "index": Scene(_ON, index, new=OLD, partitions=_BUILT | {"bloom_filters"}),
    "index_column": Scene(_ON, index_column, new=OLD, partitions=_BUILT | {"secondary_index_ts"}),
    "drop": Scene(_ON, drop, new=OLD),
    "repair": Scene(
        _ON, repair, prepare=(index_column,), new=OLD, partitions=_BUILT | {"secondary_index_ts"}
    ),
}


_DEATHS: Final = {
    "mend_commit": ("commit", "link timeline/N_N.commit"),
    "mend_deltacommit": ("commit", "link metadata/.hoodie/timeline/N_N.deltacommit"),
    "mend_replace": ("replace", "link timeline/N_N.replacecommit"),
    "mend_undo": ("undo", "link timeline/N_N.rollback"),
    "mend_build": ("build", "replace hoodie.properties"),
    "mend_compact": ("compact", "link metadata/.hoodie/timeline/N_N.commit"),
    "mend_clean": ("clean", "link metadata/.hoodie/timeline/N_N.clean"),
    "mend_archive": ("archive", "remove metadata/.hoodie/timeline/N_N.deltacommit"),
    "mend_index": ("index_column", "replace hoodie.properties"),
    # before it is sealed, when the former one is half gone, and before readers use it
    "mend_repair": ("repair", "replace .rebuilt_metadata/sealed.json"),
    "mend_repair_deleted": ("repair", "remove metadata/.hoodie/hoodie.properties"),
    "mend_repair_copied": ("repair", "replace hoodie.properties"),
    "mend_drop": ("drop", "replace .index_defs/index.json"),
}


def after_a_death(wounded: str, step: str) -> Scene:
    """Return the scene of a write to a table that was left in the midst of another one."""
    scene = _SOUND[wounded]
    is_written = bool(scene.services) or wounded == "archive"
    return replace_scene(
        scene, act=upsert, old=NEW if is_written else OLD, new=NEW, wound=(wounded, step)
    )


SCENES: Final = _SOUND | {name: after_a_death(*died) for name, died in _DEATHS.items()}


def prepare_table(path: Path, scene: Scene) -> None:
    """Make the table of a scene."""
    options = scene.created or scene.given
    table = new_table(path, SCHEMA, options, ordering_field=None, name="killed")
    for _ in range(scene.writes):
        table.upsert(table_of(OLD))
    for each in scene.prepare:
        each(str(path), scene.given)
    if scene.wound is not None:
        wounded, step = scene.wound
        at = last_step(path, SCENES[wounded], step)
        assert in_fork(play, str(path), SCENES[wounded], Fault(at, "before")).is_killed


def last_step(path: Path, scene: Scene, step: str) -> int:
    """Return the number of the last step of a name."""
    copy = path.with_name(f"{path.name}_counted")
    shutil.copytree(path, copy)
    names: list[str] = in_fork(play, str(copy), scene, None).answer.names
    shutil.rmtree(copy)
    assert step in names, sorted(set(names))
    return len(names) - names[::-1].index(step)


class Report(NamedTuple):
    """What one who acted tells.

    ``names``, ``tearable``: its steps, and the numbers of those that have a half. ``error``: name
    of the error that it raised; ``None`` when it succeeded. ``warnings``: what it logged.
    """

    names: list[str]
    tearable: list[int]
    error: str | None
    warnings: list[str]


class _Heard(logging.Handler):
    """Keeps what is logged as a warning while it is entered."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.said.append(logging.Formatter().format(record))

    def __enter__(self) -> list[str]:
        logging.getLogger("hudi_core").addHandler(self)
        return self.said

    def __exit__(self, *_: object) -> None:
        logging.getLogger("hudi_core").removeHandler(self)


def play(path: str, scene: Scene, fault: Fault | None) -> Report:
    """Act a scene; errors of the project are told."""
    error = None
    with _Heard() as said, CountedSteps(fault) as steps:
        try:
            scene.act(path, scene.given)
        except hudi.HudiError as raised:
            error = type(raised).__name__
    return Report(steps.names, steps.tearable, error, said)


def play_and_keep(path: str, scene: Scene, kept: str) -> list[DiskState]:
    """Act a scene, and keep what the table's folder is like before each step."""
    with DiskStates(Path(path), Path(kept)) as states:
        scene.act(path, scene.given)
    return states.states


class Retry(NamedTuple):
    """What came of something that failed, and of doing it once more.

    ``failed``: the first time. ``rows``: of the table then. ``pending``: instants that were pending
    then and not before, of the table and its metadata table. ``retried``: the second time; ``None``
    when the first had succeeded.
    """

    failed: Report
    rows: Rows
    pending: list[str]
    retried: Report | None


def play_twice(path: str, scene: Scene, fault: Fault) -> Retry:
    """Act a scene in which a step fails, and if that failed, act it once more."""
    # also completed ones: of one that is rolled back, files are left for the next writer
    before = {str(one)[:17] for timeline in timelines_of(path) for one in timeline}
    failed = play(path, scene, fault)
    rows = own_rows(path)
    pending = [one for one in pending_instants(path) if one[:17] not in before]
    retried = play(path, scene, None) if failed.error else None
    return Retry(failed, rows, pending, retried)


def own_rows(path: str) -> Rows:
    """Return what the project reads."""
    found = hudi.Table.open(path).to_arrow().to_pylist()
    return frozenset((row["id"], row["part"], row["ts"]) for row in found)


def pending_instants(path: str) -> list[str]:
    """Return the pending instants of a table and of its metadata table."""
    return [str(instant) for one in timelines_of(path) for instant in one.pending()]


def timelines_of(path: str) -> list[Timeline]:
    """Return the timelines of a table and of its metadata table."""
    client = open_table(path, _FAST).client
    clients = [client]
    if StoredPartitions.of(client.as_stored().config).complete:
        clients.append(metadata_client(client))
    return [one.timeline() for one in clients]


def write_next(path: str, scene: Scene) -> list[str]:
    """Write one more row, with the same options; return what was logged."""
    with _Heard() as said:
        hudi.Table.open(path, scene.given).upsert(table_of(frozenset({LAST})))
    return said
