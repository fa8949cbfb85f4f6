"""Tables of version 6 of Hudi-Spark, brought to 8 and 9 by us.

Hudi-Spark reads before and after, and at the steps in between, and writes on, as we do. Hudi's own
upgrade of a copy leaves the same properties, instants, completion times, archive and rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

import hudi_core as hudi
from hudi_core.metadata.table import StoredPartitions
from hudi_core.model.instant import Action
from tests.formats.dying_writers import death_in
from tests.jvm.capture_version_6 import upgrade_by_hudi
from tests.jvm.engines import Engine
from tests.jvm.histories import LIFE, Model, Step, live, of_city, read_by_hudi, read_by_us
from tests.jvm.hudi_made_cases import MADE_TABLES, Asked, agree, same_history, with_options
from tests.jvm.writers import HudiSpark
from tests.version_6 import Left

SHAPES = (
    *("plain", "complex, hive", "two levels, hive", "no partition", "no ordering field"),
    *("bucket index", "bloom index", "record index", "no metadata table"),
    "clustered, cleaned, archived, compacted",
)
REFUSED_BY_HUDI = ("two levels, hive",)
"""Keys of one field by the complex generator."""
COMPARED = ("plain", "no partition", "record index", "clustered, cleaned, archived, compacted")
PAST = ("plain",)
"""Whose past states and changes are compared, commit by commit."""


def made(engine: Engine, path: Path, shape: Asked) -> Model:
    """Let Hudi-Spark make a table of version 6."""
    model = Model(is_ordered=bool(shape.ordering))
    possible = {"insert", "upsert", "delete"}
    if shape.partition == "city":
        possible |= {"insert_overwrite", "delete_partition"}
    steps = [one for one in LIFE if one.operation in possible]
    for _ in live(steps, HudiSpark(engine), path, replace(shape, version="6"), model):
        pass
    return model


def written_on(engine: Engine, path: Path, shape: Asked, model: Model, ts: int) -> None:
    """We write, and Hudi-Spark after us; both readers see it."""
    index = shape.options if "hoodie.index.type" in shape.options else {}
    for step in (Step("upsert", [0, 5, 6, 200, 201], ts=ts), Step("delete", [5, 20])):
        getattr(hudi.Table.open(str(path), index), step.operation)(step.rows())
        model.take(step)
    agree(engine, path, model, "ours")
    for step in (Step("upsert", [0, 6, 201, 203], ts=ts + 1), Step("delete", [200])):
        step.take(HudiSpark(engine), path, shape)
        model.take(step)
    agree(engine, path, model, "of Hudi-Spark")


def upgraded() -> Iterable[tuple[str, int]]:
    """Yield shapes with versions: the most important in both, the others by turns."""
    for number, name in enumerate(SHAPES):
        both = name in ("plain", COMPARED[-1])
        yield from ((name, to) for to in ((8, 9) if both else (8 + number % 2,)))


@pytest.mark.parametrize(("name", "to"), [*upgraded()])
def test_read_before_and_after_and_written_on(
    hudi_spark: Engine, tmp_path: Path, name: str, to: int
) -> None:
    """Rows before and after; then we write, and Hudi-Spark; its own upgrade leaves the same."""
    path, shape = tmp_path / "table", MADE_TABLES[name]
    model = made(hudi_spark, path, shape)
    assert read_by_hudi(hudi_spark, path) == model.content
    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    partitions = set(StoredPartitions.of(hudi.Table.open(str(path)).config).complete)

    done = hudi.Table.open(str(path)).upgrade(to)

    assert (done.before, done.after) == (6, to)
    agree(hudi_spark, path, model, "upgraded")
    assert set(StoredPartitions.of(hudi.Table.open(str(path)).config).complete) == partitions
    if name in PAST:
        same_history(hudi_spark, path)
    if name not in REFUSED_BY_HUDI:
        upgrade_by_hudi(hudi_spark, copy, to)
        assert read_by_hudi(hudi_spark, copy) == model.content
        if name in COMPARED:
            assert Left.of(path) == Left.of(copy)
    written_on(hudi_spark, path, replace(shape, version=str(to)), model, 50)


LOGS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline.max.delta.commits": "100",
}


@pytest.mark.parametrize("to", [8, 9])
def test_logs_are_merged(hudi_spark: Engine, tmp_path: Path, to: int) -> None:
    """Logs of version 6 are compacted; properties and rows are those of Hudi's own upgrade."""
    plain = MADE_TABLES["plain"]
    path, shape = tmp_path / "table", replace(plain, options={**plain.options, **LOGS})
    model = made(hudi_spark, path, shape)
    assert any(one.log_files for one in hudi.Table.open(str(path)).file_slices())
    assert read_by_hudi(hudi_spark, path) == model.content
    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    assert hudi.Table.open(str(path)).upgrade(to).logs
    agree(hudi_spark, path, model, "upgraded")
    same_history(hudi_spark, path)
    upgrade_by_hudi(hudi_spark, copy, to)
    assert read_by_hudi(hudi_spark, copy) == model.content
    assert Left.of(path).properties == Left.of(copy).properties
    written_on(hudi_spark, path, replace(shape, version=str(to)), model, 50)


def test_a_writer_of_version_6_undoes_a_dead_upgrade(hudi_spark: Engine, tmp_path: Path) -> None:
    """Merged files of a dead upgrade are those of a dead write, which Hudi-Spark rolls back."""
    plain = MADE_TABLES["plain"]
    path, shape = tmp_path / "table", replace(plain, options={**plain.options, **LOGS})
    model = made(hudi_spark, path, shape)
    with death_in("hudi_core.services.upgrade._change_version"):
        hudi.Table.open(str(path)).upgrade(8)
    [dead] = hudi.Table.open(str(path))._session.opened.client.timeline().pending()
    assert list(path.rglob(f"*_{dead.requested_time}.parquet"))
    assert read_by_us(path) == model.content
    assert read_by_hudi(hudi_spark, path) == model.content
    between = Step("upsert", [0, 5, 70], ts=30)
    between.take(HudiSpark(hudi_spark), path, replace(shape, version="6"))
    model.take(between)
    assert not list(path.rglob(f"*_{dead.requested_time}.parquet"))
    assert read_by_hudi(hudi_spark, path) == model.content
    done = hudi.Table.open(str(path)).upgrade(8)
    assert (done.is_resumed, done.pending) == (True, ())
    agree(hudi_spark, path, model, "ended")
    written_on(hudi_spark, path, replace(shape, version="8"), model, 50)


def test_logs_stay_between_8_and_9(hudi_spark: Engine, tmp_path: Path) -> None:
    """Logs of Hudi-Spark and of ours are read and written on in each version."""
    path, shape = tmp_path / "table", with_options({**MADE_TABLES["plain"].options, **LOGS})
    model = Model()
    for _ in live(LIFE[:4], HudiSpark(hudi_spark), path, shape, model):
        pass
    for turn, to in enumerate((8, 9)):
        assert hudi.Table.open(str(path)).upgrade(to).slices == ()
        agree(hudi_spark, path, model, f"version {to}")
        written_on(hudi_spark, path, replace(shape, version=str(to)), model, 50 + 10 * turn)


STEPS = {
    "copied": ("hudi_core.services.upgrade._change_version", "6"),
    "without its metadata table": ("hudi_core.services.upgrade.update_properties", "6"),
    "of the new version": ("hudi_core.services.upgrade._finish", "8"),
    "without its former timeline": ("hudi_core.services.upgrade.rebuild_metadata_table", "8"),
}


@pytest.mark.parametrize("step", STEPS)
def test_read_and_written_in_between(hudi_spark: Engine, tmp_path: Path, step: str) -> None:
    """An upgrade dies; Hudi-Spark reads and writes the table, and the next run ends it."""
    place, version = STEPS[step]
    path, shape = tmp_path / "table", MADE_TABLES["plain"]
    model = made(hudi_spark, path, shape)
    with death_in(place):
        hudi.Table.open(str(path)).upgrade(8)
    assert hudi.Table.open(str(path)).config.version == int(version)
    assert read_by_us(path) == model.content
    assert read_by_hudi(hudi_spark, path) == model.content
    between = Step("upsert", [0, 5, 70], ts=30)
    between.take(
        HudiSpark(hudi_spark),
        path,
        replace(
            shape, version=version, options={**shape.options, "hoodie.write.auto.upgrade": "false"}
        ),
    )
    model.take(between)
    assert read_by_hudi(hudi_spark, path) == model.content
    done = hudi.Table.open(str(path)).upgrade(8)
    assert done.is_resumed
    agree(hudi_spark, path, model, "ended")
    written_on(hudi_spark, path, replace(shape, version="8"), model, 50)


def test_we_go_on_after_hudis_own_upgrades(hudi_spark: Engine, tmp_path: Path) -> None:
    """Its metadata tables keep compactions of version 6, and its indexes their version."""
    path = tmp_path / "table"
    more = {
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.compact.max.delta.commits": "2",
    }
    shape = replace(MADE_TABLES["plain"], options={**MADE_TABLES["plain"].options, **more})
    model = made(hudi_spark, path, shape)
    for to in (8, 9):
        upgrade_by_hudi(hudi_spark, path, to)
        agree(hudi_spark, path, model, f"version {to}")
        written_on(hudi_spark, path, replace(shape, version=str(to)), model, 50 + to)
    for step in (Step("insert_overwrite", of_city("oslo", 500, 2)), Step("upsert", [500], ts=90)):
        step.take(HudiSpark(hudi_spark), path, replace(shape, version="9"))
        model.take(step)
        agree(hudi_spark, path, model, f"its {step.operation}")


def test_a_dead_write_of_hudi_is_rolled_back(hudi_spark: Engine, tmp_path: Path) -> None:
    path, shape = tmp_path / "table", MADE_TABLES["plain"]
    model = made(hudi_spark, path, shape)
    Step("upsert", [0, 1, 90], ts=40).take(HudiSpark(hudi_spark), path, replace(shape, version="6"))
    last = hudi.Table.open(str(path)).timeline.completed_writes()[-1].requested_time
    (path / ".hoodie" / f"{last}.commit").unlink()
    hudi.Table.open(str(path)).upgrade(8)
    agree(hudi_spark, path, model, "upgraded")
    found = [one.action for one in hudi.Table.open(str(path)).timeline.instants]
    assert found[-1] is Action.ROLLBACK
    written_on(hudi_spark, path, replace(shape, version="8"), model, 50)


@pytest.mark.parametrize("name", ["plain", "record index", "bloom index"])
def test_down_to_8_and_up_to_9(hudi_spark: Engine, tmp_path: Path, name: str) -> None:
    """A table of version 9 goes to 8 and back; Hudi-Spark reads and writes each."""
    path, shape = tmp_path / "table", with_options(MADE_TABLES[name].options)
    model = Model()
    for _ in live(LIFE[:4], HudiSpark(hudi_spark), path, shape, model):
        pass
    properties = hudi.Table.open(str(path)).config.raw
    for turn, to in enumerate((8, 9)):
        hudi.Table.open(str(path)).upgrade(to)
        agree(hudi_spark, path, model, f"version {to}")
        written_on(hudi_spark, path, replace(shape, version=str(to)), model, 50 + 10 * turn)
    now = hudi.Table.open(str(path)).config.raw
    merging = {key for key in (*properties, *now) if "merge" in key or "ordering" in key}
    assert {
        key: now.get(key) for key in merging - {"hoodie.compaction.record.merger.strategy"}
    } == {
        key: properties.get(key) for key in merging - {"hoodie.compaction.record.merger.strategy"}
    }


@pytest.mark.parametrize("more", [{}, LOGS], ids=["copy on write", "merge on read"])
def test_hudi_writes_what_we_brought_down(
    hudi_spark: Engine, tmp_path: Path, more: dict[str, str]
) -> None:
    """Hudi-Spark reads and writes tables that came down to version 6, and brings them up again."""
    plain = MADE_TABLES["plain"]
    path, shape = tmp_path / "table", replace(plain, options={**plain.options, **more})
    model = made(hudi_spark, path, shape)
    hudi.Table.open(str(path)).upgrade(9)
    written_on(hudi_spark, path, replace(shape, version="9"), model, 50)
    done = hudi.Table.open(str(path)).upgrade(6)
    assert (done.before, done.after, done.logs > 0) == (9, 6, bool(more))
    agree(hudi_spark, path, model, "downgraded")
    for step in (Step("upsert", [0, 7, 202], ts=70), Step("delete", [6])):
        step.take(HudiSpark(hudi_spark), path, replace(shape, version="6"))
        model.take(step)
    assert hudi.Table.open(str(path)).config.version == 6
    agree(hudi_spark, path, model, "of Hudi-Spark, in version 6")
    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    upgrade_by_hudi(hudi_spark, copy, 8)
    assert read_by_hudi(hudi_spark, copy) == model.content
    hudi.Table.open(str(path)).upgrade(8)
    written_on(hudi_spark, path, replace(shape, version="8"), model, 90)
