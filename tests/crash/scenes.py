"""Scenes of the crash rig: a table, what happened to it before, and what is done to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import hudi_core as hudi
from tests.crash.actions import Folder, NewTable
from tests.crash.found_folders import MAKERS, PLAIN
from tests.crash.kinds import LOGGED, SPLIT, SPREAD, VIRTUAL
from tests.crash.rows import BASE, as_table
from tests.crash.tables import (
    OPTIONS,
    SEVERAL,
    create,
    create_broken,
    create_compacted,
    create_compaction,
    create_expired,
    create_log_compaction,
    create_logged_old,
    create_logs,
    create_merged,
    create_merged_old,
    create_of,
    create_old,
    create_saved,
    create_scheduled,
    create_staged,
    create_version_6,
    lose_format,
    lose_metadata_table,
    no_table,
)
from tests.tables import FORMATS


@dataclass(frozen=True, slots=True)
class Wound:
    """A writer that died before the action came.

    ``scene``: whose action it was doing. ``step``: name of the step that it did not get to do; see
    :mod:`tests.crash.counting_storage`. ``which``: which of the steps of that name, from the first
    (0) on, or from the last (-1).
    """

    scene: str
    step: str
    which: int = -1


@dataclass(frozen=True, slots=True)
class Scene:
    """A table, and what is done to it.

    ``action``: name of the action. ``wounds``: what happened to the table before. ``formats``:
    those for which there is such a scene. ``is_repeated``: whether the action is done again by the
    one who comes after. ``made``: makes the table. ``source``: what the folder is before the action
    makes it a table; see :mod:`tests.crash.found_folders`. Such a table is not written.
    ``is_broken``: whether the table cannot be written, and maybe not be read, before the action is
    done. Who comes after does it again, before anything else. ``is_new``: whether there is no table
    before the action is done. ``is_opened_again``: whether each step opens the table, as its
    version changes.
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
    return Scene("repair", (), formats, made=partial(create_broken, lose), is_broken=True)


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


def _logged_scenes() -> Mapping[str, Scene]:
    """Return scenes of a table whose changed rows are in log files."""
    made, made_old = partial(create_of, LOGGED), create_logged_old
    recorded = Wound("upsert", LOGGED_COMPLETED)
    planned, merged = create_compaction, Wound("logged_compact", COMPLETED_FILE)
    converted = Wound("logged_to_copy_on_write", COMPLETED_FILE)
    run = Wound("logged_run_compaction", COMPLETED_FILE)
    staged = partial(create_staged, kind=LOGGED)
    clustered = Wound("logged_cluster", REPLACED)
    joined = Wound("logged_compact_logs", LOGGED_COMPLETED)
    names = (
        *(*OPERATIONS, "update", "delete_where", "merge", "alter", "write_column", "stage"),
        *("compact", "schedule_compaction", "upsert_compacts", "upsert_schedules", "cluster"),
        *("savepoint", "restore", "repair_metadata", "index", "drop_index"),
    )
    scenes = {
        **{name: Scene(name, made=made) for name in names},
        "insert_once": Scene("insert_once", made=made, is_repeated=True),
        "to_copy_on_write": Scene("to_copy_on_write", made=made, is_repeated=True),
        "to_merge_on_read": Scene("to_merge_on_read", is_repeated=True),
        "drop_stages": Scene("drop_stages", made=staged),
        "publish": Scene("publish", made=staged, is_repeated=True),
        "expire": Scene("expire", made=partial(create_expired, kind=LOGGED)),
        # once more, with logs that a compaction has merged
        "rollback_compaction": Scene("rollback_compaction", made=create_merged),
        "restore_merged": Scene("restore", made=create_merged),
        "clean_merged": Scene("clean", made=create_merged_old),
        "archive_merged": Scene("archive", made=create_merged_old),
        "cancel_compaction": Scene("rollback_dead", made=planned),
        "overwrite_planned": Scene("insert_overwrite", made=planned),
        **{name: Scene(name, made=made_old) for name in ("clean", "archive", "upsert_services")},
        "recover_recorded": Scene("other", (recorded,), made=made),
        "recover_written": Scene("other", (Wound("upsert", "link .temp/marker"),), made=made),
        "rollback_pending": Scene("rollback_dead", (recorded,), made=made),
        "recover_rollback": Scene(
            "other", (Wound("rollback", "complete_rollback of the format"),), made=made
        ),
        "recover_clean": Scene("other", (Wound("clean", "remove data"),), made=made_old),
        "run_compaction": Scene("run_compaction", made=planned),
        "compact_logs": Scene("compact_logs", made=create_logs),
        "recover_compact_logs": Scene("other", (joined,), made=create_logs),
        "run_log_compaction": Scene("run_compaction", made=create_log_compaction),
        "upsert_planned": Scene("upsert", made=planned),
        "recover_compact": Scene("other", (merged,), made=made),
        "recover_conversion": Scene("other", (converted,), made=made),
        "recover_run": Scene("run_compaction", (run,), made=planned),
        "run_clustering": Scene("run_clustering", made=partial(create_scheduled, kind=LOGGED)),
        "recover_cluster": Scene("other", (clustered,), made=made),
        "purge": Scene("purge", made=made_old, is_repeated=True),
        "delete_savepoint": Scene("delete_savepoint", made=partial(create_saved, kind=LOGGED)),
    }
    return {f"{LOGGED}_{name}": replace(one, formats=("native",)) for name, one in scenes.items()}


def _split_scenes() -> Mapping[str, Scene]:
    """Return scenes of a table whose changed rows go into other file groups."""
    made, made_old = partial(create_of, SPLIT), partial(create_logged_old, kind=SPLIT)
    planned = partial(create_compaction, kind=SPLIT)
    recorded, written = (Wound("split_upsert", f"link {one}") for one in (_DELTA, ".temp/marker"))
    converted = Wound("split_to_copy_on_write", COMPLETED_FILE)
    names = (
        *("insert", "upsert", "delete", "update", "delete_where", "merge", "rollback", "restore"),
        *("compact", "upsert_compacts", "cluster", "stage", "repair_metadata"),
    )
    scenes = {
        **{name: Scene(name, made=made) for name in names},
        **{name: Scene(name, made=made_old) for name in ("clean", "archive")},
        "to_copy_on_write": Scene("to_copy_on_write", made=made, is_repeated=True),
        "publish": Scene("publish", made=partial(create_staged, kind=SPLIT), is_repeated=True),
        "recover_recorded": Scene("other", (recorded,), made=made),
        "recover_written": Scene("other", (written,), made=made),
        "rollback_pending": Scene("rollback_dead", (recorded,), made=made),
        "recover_rollback": Scene(
            "other", (Wound("rollback", "complete_rollback of the format"),), made=made
        ),
        "upsert_planned": Scene("upsert", made=planned),
        "run_compaction": Scene("run_compaction", made=planned),
        "recover_compact": Scene("other", (Wound("split_compact", COMPLETED_FILE),), made=made),
        "recover_conversion": Scene("other", (converted,), made=made),
        "run_clustering": Scene("run_clustering", made=partial(create_scheduled, kind=SPLIT)),
        "purge": Scene("purge", made=made_old, is_repeated=True),
    }
    found = {
        name: replace(one, formats=("native", "iceberg", "delta")) for name, one in scenes.items()
    }
    between = (Wound("split_upsert", BETWEEN),)
    found["recover_unpublished"] = Scene("other", between, ("iceberg",), made=made)
    return {f"{SPLIT}_{name}": one for name, one in found.items()}


def _creating(action: str, formats: Collection[str], *wounds: Wound) -> Scene:
    return Scene(action, wounds, formats, made=no_table, is_broken=True, is_new=True)


OPERATIONS: Final = (
    *("insert", "upsert", "delete", "bulk_insert"),
    *("insert_overwrite", "delete_partitions", "rollback"),
)
COMPLETED_FILE: Final = "link timeline/N_N.commit"
_DELTA: Final = "timeline/N_N.deltacommit"
LOGGED_COMPLETED: Final = f"link {_DELTA}"
REPLACED: Final = "link timeline/N_N.replacecommit"
BETWEEN: Final = "complete_write of the format"
UNPINNED: Final = "complete_delete_savepoint of the format"
_OF_SEVERAL: Final = (
    *OPERATIONS,
    *("alter", "write_column", "clean", "archive", "upsert_services", "recover_clean"),
    *("savepoint", "delete_savepoint", "restore", "restore_rebuild", "cluster", "create"),
    *("recover_recorded", "recover_written", "recover_unpublished", "recover_rollback"),
    *("recover_savepoint", "recover_columns", "recover_clustered", "repair_format", "to_native"),
)
"""Scenes of a table of several formats, too. Their wounds are between the last two of its steps."""
_PLAIN_SCENES: Final[Mapping[str, Scene]] = {
    **{name: Scene(name) for name in OPERATIONS},
    # rows would be there twice
    "insert_once": Scene("insert_once", is_repeated=True),
    # files of a folder, and a batch of a stream; and once more by who comes after
    "ingest": Scene("ingest", is_repeated=True),
    "stream": Scene("stream", is_repeated=True),
    "ingest_again": Scene("ingest", (Wound("ingest", COMPLETED_FILE),), is_repeated=True),
    "stream_again": Scene("stream", (Wound("stream", COMPLETED_FILE),), is_repeated=True),
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
    # done again by who comes after: nobody else finishes it
    "purge": Scene("purge", made=create_old, is_repeated=True),
    "stage": Scene("stage"),
    "drop_stages": Scene("drop_stages", made=create_staged),
    "publish": Scene("publish", made=create_staged, is_repeated=True),
    "expire": Scene("expire", made=create_expired),
    "savepoint": Scene("savepoint"),
    "delete_savepoint": Scene("delete_savepoint", made=create_saved),
    "recover_savepoint": Scene("other", (Wound("delete_savepoint", UNPINNED),), made=create_saved),
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
        made=partial(create_broken, lose_metadata_table),
        is_broken=True,
    ),
    # what a write finds and makes good after a repair that died: hardly anything of the metadata
    # table, or nearly all of it
    **{
        name: Scene(
            "other",
            (Wound("repair_metadata", step),),
            formats,
            made=partial(create_broken, lose_metadata_table),
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
# formats that are added to a table and dropped, and a write that none of two holds
_CONVERSIONS: Final[Mapping[str, Scene]] = {
    "to_both": Scene("to_both", (), FORMATS, True),
    "drop_iceberg": Scene("to_delta", (), (SEVERAL,), True),
    "drop_delta": Scene("to_iceberg", (), (SEVERAL,), True),
    "recover_in_neither": Scene("other", (Wound("upsert", BETWEEN, 0),), (SEVERAL,)),
    "recover_reverted": Scene(
        "other", (Wound("rollback", "before_rollback of the format", -1),), (SEVERAL,)
    ),
}
SCENES: Final[Mapping[str, Scene]] = {
    **{
        name: replace(one, formats=(*one.formats, SEVERAL)) if name in _OF_SEVERAL else one
        for name, one in _PLAIN_SCENES.items()
    },
    **_CONVERSIONS,
    **_scenes_of(SPREAD),
    **_scenes_of(VIRTUAL),
    **_logged_scenes(),
    **_split_scenes(),
}
