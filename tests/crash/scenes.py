"""What the tables of the crash rig hold, what is done to them, and what that makes of the rows.

An effect turns rows into rows. Whatever happens to a writer, a table shows some of the effects that
were tried, each of them wholly or not at all; :func:`matching` tells which.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

import hudi_core as hudi
from hudi_core.errors import NotATableError, SchemaError
from hudi_core.metadata.table import StoredPartitions
from hudi_core.services.restore import RestoreResult
from tests.clock_set_back import clock_set_back
from tests.crash.found_folders import MAKERS, PARTITION, PLAIN
from tests.crash.kinds import SPREAD, STORED, VIRTUAL, creation_options, data_root
from tests.crash.metadata_scenes import operator
from tests.version_6 import to_version_6

SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("part", pa.string()),
        pa.field("ts", pa.int64()),
    ]
)
FORMATS: Final = ("native", "iceberg", "delta")
CANARY: Final = "canary-9c1e77d04b52"
"""A secret that must not be found again, in no file and no message."""
OPTIONS: Final = {
    "hoodie.fs.fsync": "false",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "fs.s3a.access.key": "crash-rig",
    "fs.s3a.secret.key": CANARY,
}

_ONE_GROUP: Final = {**OPTIONS, "hoodie.metadata.index.bloom.filter.file.group.count": "1"}
"""Names of files decide which of several groups are written."""

RETAINED: Final = {"hoodie.cleaner.commits.retained": "1"}
"""Has a clean delete what the last commits do not need."""
_BOUNDED: Final = {
    **RETAINED,
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.metadata.compact.max.delta.commits": "1",
}
"""Has a commit clean and archive."""
Rows = frozenset[tuple[str, str, int]]
Held = Mapping[str, tuple[str, int]]
"""Partition and ordering value by key."""
Effect = Callable[[Held], Held]


def as_table(held: Held) -> pa.Table:
    """Return rows as a writer is given them."""
    found = [{"id": key, "part": part, "ts": ts} for key, (part, ts) in held.items()]
    return pa.Table.from_pylist(found, SCHEMA)


def as_rows(held: Held) -> Rows:
    """Return rows as a set."""
    return frozenset((key, part, ts) for key, (part, ts) in held.items())


def putting(rows: Held) -> Effect:
    """Insert, or update by key."""
    return lambda held: {**held, **rows}


def dropping(*keys: str) -> Effect:
    """Delete by key."""
    return lambda held: {key: value for key, value in held.items() if key not in keys}


def replacing(part: str, rows: Held) -> Effect:
    """Replace a partition; without rows, drop it."""
    kept: Callable[[Held], Held] = lambda held: {  # noqa: E731
        key: value for key, value in held.items() if value[0] != part
    }
    return lambda held: {**kept(held), **rows}


# two partitions that are there, and one that a write makes
FIRST: Final[Held] = {"a": ("x", 0), "b": ("x", 0), "c": ("y", 0), "d": ("y", 0)}
SECOND: Final[Held] = {"b": ("x", 1)}
BASE: Final[Held] = {**FIRST, **SECOND}
CHANGED: Final[Held] = {"a": ("x", 5), "c": ("y", 5), "n": ("z", 5)}
NEW: Final[Held] = {"m": ("x", 5), "n": ("z", 5)}
NOTE: Final = "note"
"""A column that comes later."""
INDEXES: Final = ".hoodie/.index_defs/index.json"
OTHER: Final[Held] = {"d": ("y", 7), "r": ("x", 7)}


@dataclass(frozen=True, slots=True)
class Action:
    """One thing done to a table.

    Attributes
    ----------
    run
        Does it to what a scene gives; see :attr:`Scene.opened`.
    effect
        What it makes of the rows.
    is_finished_by_others
        Whether the next writer finishes it once it is begun, whatever its caller was told.
    format_name
        The table's format once it is done; ``None`` where that stays.
    column
        Name of the column that the table has once it is done; ``None`` where its columns stay.
    """

    run: Callable[[Any], Any]
    effect: Effect
    is_finished_by_others: bool = False
    format_name: str | None = None
    column: str | None = None


def _publish(table: hudi.Table) -> None:
    for one in table.stages():
        one.publish()


def _rollback(table: hudi.Table) -> hudi.Instant:
    return table.rollback(table.timeline.completed_writes()[-1])


def _rollback_dead(table: hudi.Table) -> hudi.Instant:
    pending = [one for one in table.timeline.instants if not one.is_completed]
    return table.rollback(pending[-1])


def _restore(table: hudi.Table) -> RestoreResult:
    return table.restore(table.timeline.completed_writes()[0])


def _delete_savepoint(table: hudi.Table) -> None:
    for one in table.savepoints:
        table.delete_savepoint(one.instant)


def _conversion(to: str) -> Action:
    return Action(lambda table: table.convert(to), dict, True, to)


def _with_note(table: hudi.Table) -> hudi.CommitResult:
    rows = as_table(CHANGED)
    return table.upsert(rows.append_column(NOTE, pa.array([f"n{at}" for at in range(len(rows))])))


def _repair(table: hudi.Table) -> None:
    done = table.repair()
    assert not done.left, done.left
    defined = json.loads((Path(table.path) / INDEXES).read_text())["indexDefinitions"]
    now = hudi.Table.open(table.path, OPTIONS)
    lost = defined.keys() - set(StoredPartitions.of(now.config).complete)
    assert not lost, f"indexes are gone: {lost}"


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that is to be a Hudi table."""

    path: Path
    format_name: str

    def adopt(self) -> None:
        """Make it one; what is one wholly stays as it is."""
        if _is_table(self.path) and not (self.path / ".hoodie/adoption.json").exists():
            return
        hudi.Table.adopt(
            str(self.path),
            name="crashing",
            record_key="id",
            partition_by=PARTITION,
            ordering_field="ts",
            format=self.format_name,
            # its files hold no keys to be indexed
            options={**OPTIONS, "hoodie.metadata.record.index.enable": "false"},
        )


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that each step opens: it is to be made, or changes its version."""

    path: str
    format_name: str
    options: Mapping[str, str]

    def create(self, format_name: str | None = None) -> None:
        """Make it, where that is not done."""
        try:
            hudi.Table.open(self.path, dict(self.options))
        except NotATableError:
            new_table(self.path, format_name or self.format_name, self.options)

    def upsert(self, rows: pa.Table) -> hudi.CommitResult:
        """Write to it."""
        return hudi.Table.open(self.path, dict(self.options)).upsert(rows)

    def upgrade(self, to: int) -> None:
        """Bring it to another version."""
        hudi.Table.open(self.path, dict(self.options)).upgrade(to)


def _is_table(path: Path) -> bool:
    return (path / ".hoodie/hoodie.properties").exists()


ACTIONS: Final[Mapping[str, Action]] = {
    "insert": Action(lambda table: table.insert(as_table(NEW)), putting(NEW)),
    "insert_once": Action(
        lambda table: table.insert(as_table(NEW), idempotency=("crashing", 1)), putting(NEW)
    ),
    "upsert": Action(lambda table: table.upsert(as_table(CHANGED)), putting(CHANGED)),
    "delete": Action(
        lambda table: table.delete(as_table({"a": ("x", 9), "c": ("y", 9)})), dropping("a", "c")
    ),
    "bulk_insert": Action(lambda table: table.bulk_insert(as_table(NEW)), putting(NEW)),
    "insert_overwrite": Action(
        lambda table: table.insert_overwrite(as_table({"q": ("x", 5)})),
        replacing("x", {"q": ("x", 5)}),
    ),
    "delete_partitions": Action(
        lambda table: table.delete_partitions([{"part": "x"}]), replacing("x", {})
    ),
    "publish": Action(_publish, putting(NEW)),
    "expire": Action(lambda table: table.expire_partitions(10), replacing("x", {})),
    "rollback": Action(_rollback, putting({"b": ("x", 0)}), is_finished_by_others=True),
    "to_native": _conversion("native"),
    "to_iceberg": _conversion("iceberg"),
    "to_delta": _conversion("delta"),
    "rollback_dead": Action(_rollback_dead, dict, is_finished_by_others=True),
    "alter": Action(lambda table: table.alter(add_columns={NOTE: pa.string()}), dict, column=NOTE),
    "write_column": Action(_with_note, putting(CHANGED), column=NOTE),
    "repair": Action(_repair, dict, is_finished_by_others=True),
    "repair_metadata": Action(
        lambda table: table.repair_metadata(), dict, is_finished_by_others=True
    ),
    "adopt": Action(Folder.adopt, dict, is_finished_by_others=True),
    # without the rows that other scenes begin with
    "create": Action(NewTable.create, lambda _: {}, is_finished_by_others=True),
    "create_native": Action(
        lambda new: new.create("native"), lambda _: {}, is_finished_by_others=True
    ),
    "index": Action(
        lambda table: operator(table.path, _ONE_GROUP).index("bloom_filters"), dict, True
    ),
    "drop_index": Action(
        lambda table: operator(table.path, OPTIONS).drop("record_index"), dict, True
    ),
    "clean": Action(lambda table: table.clean(options=RETAINED), dict, True),
    "archive": Action(lambda table: table.archive(options=_BOUNDED), dict, True),
    "upsert_services": Action(
        lambda table: table.upsert(as_table(CHANGED), options=_BOUNDED), putting(CHANGED)
    ),
    "savepoint": Action(lambda table: table.savepoint(), dict, True),
    "delete_savepoint": Action(_delete_savepoint, dict, True),
    "restore": Action(_restore, putting({"b": ("x", 0)}), is_finished_by_others=True),
    "cluster": Action(lambda table: table.cluster(sort_by=["ts", "id"], layout="hilbert"), dict),
    "run_clustering": Action(lambda table: table.run_clusterings(), dict),
    "upgrade": Action(lambda found: found.upgrade(9), dict, is_finished_by_others=True),
    "other": Action(lambda table: table.upsert(as_table(OTHER)), putting(OTHER)),
}


def next_write(number: int) -> Action:
    """Return a write that follows; every number has a row of its own."""
    rows: Held = {f"next{number}": ("y", 100 + number)}

    def found(table: hudi.Table) -> pa.Table:
        found = as_table(rows)
        # somebody else may have added columns since the table was opened
        for field in hudi.Table.open(table.path).schema:
            if field.name not in found.column_names:
                found = found.append_column(field, pa.nulls(len(found), field.type))
        return found

    def run(table: hudi.Table) -> hudi.CommitResult:
        try:
            return table.upsert(found(table))
        except SchemaError:
            # the write made good what a dead writer did to the columns: rows are made for those
            return table.upsert(found(table))

    return Action(run, putting(rows))


@dataclass(frozen=True, slots=True)
class Wound:
    """A writer that died before the action came.

    Attributes
    ----------
    scene
        Whose action it was doing.
    step
        Name of the step that it did not get to do; see :mod:`tests.crash.counting_storage`.
    which
        Which of the steps of that name, from the first (0) on, or from the last (-1).
    """

    scene: str
    step: str
    which: int = -1


def create(path: Path, format_name: str) -> None:
    """Make the table that every scene begins with."""
    create_of(STORED, path, format_name)


def create_of(kind: str, path: Path, format_name: str) -> None:
    """Make the same table of another kind."""
    table = new_table(str(path), format_name, {**OPTIONS, **creation_options(kind, path)})
    table.insert(as_table(FIRST))
    table.upsert(as_table(SECOND))


def new_table(path: str, format_name: str, options: Mapping[str, str]) -> hudi.Table:
    """Make a table without rows."""
    return hudi.Table.create(
        path,
        SCHEMA,
        name="crashing",
        record_key="id",
        partition_by="part",
        ordering_field="ts",
        format=format_name,
        options=dict(options),
    )


def create_old(path: Path, format_name: str, kind: str = STORED) -> None:
    """Make a table with versions to clean and instants to archive.

    A Delta log has versions to delete.
    """
    create_of(kind, path, format_name)
    if format_name == "delta":
        DeltaTable(str(data_root(path))).create_checkpoint()
    kept = {**OPTIONS, "hoodie.metadata.compact.max.delta.commits": "1"}
    for _ in range(2):
        hudi.Table.open(str(path), kept).upsert(as_table(SECOND))
    hudi.Table.open(str(path), kept).clean(options=RETAINED)
    hudi.Table.open(str(path), kept).upsert(as_table(SECOND))


def create_staged(path: Path, format_name: str) -> None:
    """Make a table with a stage, whose rows would be there twice."""
    create(path, format_name)
    hudi.Table.open(str(path), OPTIONS).stage(as_table(NEW), "bulk_insert")


def create_expired(path: Path, format_name: str) -> None:
    """Make a table one of whose partitions has expired."""
    with clock_set_back(30):
        create(path, format_name)
    hudi.Table.open(str(path), OPTIONS).upsert(as_table({"d": ("y", 0)}))


def create_saved(path: Path, format_name: str) -> None:
    """Make a table with a savepoint."""
    create(path, format_name)
    hudi.Table.open(str(path), OPTIONS).savepoint()


def create_version_6(path: Path, format_name: str) -> None:
    """Make a table of version 6, whose metadata table nobody reads any more."""
    create(path, format_name)
    to_version_6(path)


def create_compacted(path: Path, format_name: str) -> None:
    """Make a table whose indexes cannot go back behind its last commits."""
    create(path, format_name)
    often = {**OPTIONS, "hoodie.metadata.compact.max.delta.commits": "1"}
    for _ in range(2):
        hudi.Table.open(str(path), often).upsert(as_table(SECOND))


def create_scheduled(path: Path, format_name: str) -> None:
    """Make a table with a scheduled clustering."""
    create(path, format_name)
    hudi.Table.open(str(path), OPTIONS).cluster(sort_by="ts", schedule_only=True)


def _no_table(path: Path, format_name: str) -> None:
    path.mkdir()


def _create_broken(lose: Callable[[Path], None], path: Path, format_name: str) -> None:
    create(path, format_name)
    if lose is lose_metadata_table:
        operator(str(path), OPTIONS).index("secondary_index_ts", "ts")
    lose(path)


def lose_format(path: Path) -> None:
    """Take the format's metadata away."""
    for name in ("metadata", "_delta_log"):
        shutil.rmtree(path / name, ignore_errors=True)


def lose_metadata_table(path: Path) -> None:
    """Damage what lists the table's files."""
    for file in (path / ".hoodie/metadata/files").iterdir():
        file.write_bytes(b"\0" * 64)


@dataclass(frozen=True, slots=True)
class Scene:
    """A table, and what is done to it.

    Attributes
    ----------
    action
        Name of the action.
    wounds
        What happened to the table before.
    formats
        Those for which there is such a scene.
    is_repeated
        Whether the action is done again by the one who comes after.
    made
        Makes the table.
    source
        What the folder is before the action makes it a table; see
        :mod:`tests.crash.found_folders`. Such a table is not written.
    is_broken
        Whether the table cannot be written, and maybe not be read, before the action is done. Who
        comes after does it again, before anything else.
    is_new
        Whether there is no table before the action is done.
    is_opened_again
        Whether each step opens the table, as its version changes.
    """

    action: str
    wounds: tuple[Wound, ...] = ()
    formats: Collection[str] = FORMATS
    is_repeated: bool = False
    made: Callable[[Path, str], None] = create
    source: str | None = None
    is_broken: bool = False
    is_new: bool = False
    is_opened_again: bool = False

    def opened(self, path: Path, format_name: str) -> Any:
        """Return what the action is done to."""
        if self.source is not None:
            return Folder(path, format_name)
        if self.is_new or self.is_opened_again:
            return NewTable(str(path), format_name, OPTIONS)
        return hudi.Table.open(str(path), OPTIONS)


def _adoption(source: str, formats: Collection[str]) -> Scene:
    make = MAKERS[source]
    return Scene(
        "adopt",
        (),
        formats,
        made=lambda path, _: make(path, as_table(BASE)),
        source=source,
        is_broken=True,
    )


def _repairing(formats: Collection[str], lose: Callable[[Path], None]) -> Scene:
    return Scene("repair", (), formats, made=partial(_create_broken, lose), is_broken=True)


def _scenes_of(kind: str) -> Mapping[str, Scene]:
    """Return scenes of a kind of table in which data files are written, read and deleted."""
    made, made_old = partial(create_of, kind), partial(create_old, kind=kind)
    dead = Wound("insert", "link .temp/marker"), Wound("upsert", COMPLETED_FILE)
    some = {
        **{name: Scene(name, made=made) for name in ("upsert", "rollback", "cluster")},
        "clean": Scene("clean", made=made_old),
        "recover": Scene("other", dead, made=made),
        "recover_clean": Scene("other", (Wound("clean", "remove data"),), made=made_old),
    }
    return {f"{kind}_{name}": scene for name, scene in some.items()}


def _creating(action: str, formats: Collection[str], *wounds: Wound) -> Scene:
    return Scene(action, wounds, formats, made=_no_table, is_broken=True, is_new=True)


OPERATIONS: Final = (
    *("insert", "upsert", "delete", "bulk_insert"),
    *("insert_overwrite", "delete_partitions", "rollback"),
)
COMPLETED_FILE: Final = "link timeline/N_N.commit"
REPLACED: Final = "link timeline/N_N.replacecommit"
BETWEEN: Final = "complete_write of the format"
_PLAIN_SCENES: Final[Mapping[str, Scene]] = {
    **{name: Scene(name) for name in OPERATIONS},
    # rows would be there twice
    "insert_once": Scene("insert_once", is_repeated=True),
    "to_iceberg": Scene("to_iceberg", (), ("native",), True),
    "to_delta": Scene("to_delta", (), ("native",), True),
    "to_native": Scene("to_native", (), ("iceberg", "delta"), True),
    # what a writer finds and makes good: a write that is in the metadata table only, one that has
    # files and nothing else, one that the format lacks, and a rollback half done
    "recover_recorded": Scene("other", (Wound("upsert", COMPLETED_FILE),)),
    "recover_written": Scene("other", (Wound("insert", "link .temp/marker"),)),
    "recover_unpublished": Scene("other", (Wound("upsert", BETWEEN),), ("iceberg", "delta")),
    "recover_rollback": Scene("other", (Wound("rollback", "complete_rollback of the format"),)),
    "rollback_pending": Scene("rollback_dead", (Wound("upsert", COMPLETED_FILE),)),
    "alter": Scene("alter"),
    "write_column": Scene("write_column"),
    "recover_columns": Scene("other", (Wound("write_column", BETWEEN),), ("iceberg", "delta")),
    "clean": Scene("clean", made=create_old),
    "archive": Scene("archive", made=create_old),
    "upsert_services": Scene("upsert_services", made=create_old),
    "recover_clean": Scene("other", (Wound("clean", "remove data"),), made=create_old),
    "publish": Scene("publish", made=create_staged, is_repeated=True),
    "expire": Scene("expire", made=create_expired),
    "savepoint": Scene("savepoint"),
    "delete_savepoint": Scene("delete_savepoint", made=create_saved),
    "restore": Scene("restore"),
    "restore_rebuild": Scene("restore", made=create_compacted),
    "cluster": Scene("cluster"),
    "run_clustering": Scene("run_clustering", made=create_scheduled),
    "recover_cluster": Scene("other", (Wound("cluster", REPLACED),)),
    "recover_clustered": Scene(
        "other", (Wound("cluster", "complete_clustering of the format"),), ("iceberg", "delta")
    ),
    # which the format is not told of
    "index": Scene("index", (), ("iceberg", "delta")),
    "drop_index": Scene("drop_index", (), ("iceberg", "delta")),
    "repair_format": _repairing(("iceberg", "delta"), lose_format),
    "repair_metadata": _repairing(("native", "delta"), lose_metadata_table),
    # of all files, beside the one in use, or where that is lost
    "rebuild_metadata": Scene("repair_metadata"),
    "rebuild_lost_metadata": Scene(
        "repair_metadata",
        (),
        ("native", "delta"),
        made=partial(_create_broken, lose_metadata_table),
        is_broken=True,
    ),
    # what a write finds and makes good after a repair that died: hardly anything of the metadata
    # table, or nearly all of it
    **{
        name: Scene(
            "other",
            (Wound("repair_metadata", step),),
            formats,
            made=partial(_create_broken, lose_metadata_table),
        )
        for name, step, formats in (
            ("recover_no_metadata", "link metadata/.hoodie/hoodie.properties", ("native",)),
            ("recover_metadata", "link metadata/.hoodie/timeline/N_N.deltacommit", ("delta",)),
        )
    },
    # the formats do not hear of it
    "upgrade": Scene("upgrade", (), ("native", "iceberg"), is_opened_again=True),
    "upgrade_old": Scene(
        "upgrade", (), ("native",), made=create_version_6, is_broken=True, is_opened_again=True
    ),
    "create": _creating("create", FORMATS),
    # as another table than the one whose creator died
    "create_anew": _creating(
        "create_native", ("iceberg", "delta"), Wound("create", "link hoodie.properties")
    ),
    "adopt_files": _adoption(PLAIN, FORMATS),
    "adopt_iceberg": _adoption("iceberg", ("iceberg",)),
    "adopt_delta": _adoption("delta", ("delta",)),
}
SCENES: Final[Mapping[str, Scene]] = {
    **_PLAIN_SCENES,
    **_scenes_of(SPREAD),
    **_scenes_of(VIRTUAL),
}


def matching(rows: Rows, effects: Sequence[tuple[str, Effect]]) -> frozenset[str] | None:
    """Return the names of the effects that rows show, in the order they were tried; ``None`` where
    no choice of them gives these rows."""
    return next((frozenset(names) for names, seen in _choices(effects) if seen == rows), None)


def _choices(effects: Sequence[tuple[str, Effect]]) -> Iterator[tuple[list[str], Rows]]:
    for count in range(len(effects), -1, -1):
        for chosen in combinations(effects, count):
            held: Held = BASE
            for _, effect in chosen:
                held = effect(held)
            yield [name for name, _ in chosen], as_rows(held)
