"""Iceberg-Spark and Delta-Spark between our commits on split tables.

They compact, purge, expire, vacuum, and change rows. That is refused by themselves, or harmless, or
named by our next write: until then our readers see what they saw before. A repair takes back what
changed no row unasked, and the rest where it may; our writes go on from the rows as they were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from deltalake import write_deltalake

import hudi_core as hudi
from hudi_core.errors import ForeignCommitError
from tests.formats.foreign_writers import delete_in_place
from tests.formats.history_readers import delta_versions
from tests.formats.iceberg_tables import NOTED, bag, create, typed, without_meta
from tests.jvm.engines import Engine, EngineError
from tests.jvm.lake import Lake, rest_lake
from tests.jvm.report import OwnFailureError, own_failure

SPLIT: Final = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",
}
VERSION: Final = "hoodie.table.format.iceberg.format-version"
NO_CHECK: Final = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
EVERY_FILE: Final = "options => map('rewrite-all', 'true')"
ICEBERG_REFUSES: Final = {
    "expire_snapshots": (
        "call lake.system.expire_snapshots(table => 'ns.{0}', retain_last => 1, "
        "older_than => timestamp'2100-01-01 00:00:00')"
    ),
    "remove_orphan_files": "call lake.system.remove_orphan_files(table => 'ns.{0}')",
}
ICEBERG_REWRITES: Final = {
    "data files": f"call lake.system.rewrite_data_files(table => 'ns.{{0}}', {EVERY_FILE})",
    "position deletes": (
        f"call lake.system.rewrite_position_delete_files(table => 'ns.{{0}}', {EVERY_FILE})"
    ),
    "manifests": "call lake.system.rewrite_manifests('ns.{0}')",
}
CHANGES: Final = {
    "delete": "delete from {0} where id in ('k001', 'k009')",
    "update": "update {0} set value = -1 where id in ('k001', 'k009')",
    "merge": (
        "merge into {0} t using (select 'k001' id) s on t.id = s.id "
        "when matched then update set value = -2"
    ),
}
DELTA_HARMLESS: Final = {
    "vacuum": "vacuum {0}",
    "vacuum lite": "vacuum {0} lite",
}
DELTA_REWRITES: Final = {
    "optimize": "optimize {0}",
    "z-order": "optimize {0} zorder by (id)",
    "purge": "reorg table {0} apply (purge)",
}


def made(path: Path, options: Mapping[str, str]) -> Counter[str]:
    """A table of five files, of whose rows some are dead; its rows."""
    table = create(path, None, **{**SPLIT, **options})
    table.insert(typed(range(10)))
    table.upsert(typed([1, 2, 20], ts=1))
    table.delete(typed([3, 4]))
    table.upsert(typed([2, 5], ts=2))
    return ours(path, options)


def ours(path: Path, options: Mapping[str, str]) -> Counter[str]:
    table = hudi.Table.open(path, {**SPLIT, **options})
    return bag(without_meta(table.to_arrow().select(NOTED.names)))


def goes_on(path: Path, options: Mapping[str, str], theirs: Callable[[], Counter[str]]) -> None:
    """Write, delete and compact; the engine sees what we do."""
    table = hudi.Table.open(path, {**SPLIT, **options})
    table.upsert(typed([1, 9, 30], ts=5))
    assert theirs() == ours(path, options)
    table.delete(typed([20]))
    table.compact()
    assert theirs() == ours(path, options)
    assert table.validate(keys=True).is_valid


def stops(
    path: Path,
    options: Mapping[str, str],
    theirs: Callable[[], Counter[str]],
    before: Counter[str],
    changes_rows: bool,
) -> None:
    """Our next write names it; a repair takes it back."""
    assert (theirs() == before) != changes_rows
    table = hudi.Table.open(path, {**SPLIT, **options})
    with pytest.raises(ForeignCommitError):
        table.upsert(typed([1], ts=9))
    assert ours(path, options) == before
    [counted] = table.repair(dry_run=True).foreign
    assert counted.changes_rows == changes_rows, counted
    if changes_rows:
        with pytest.raises(ForeignCommitError):
            table.repair()
    assert not table.repair(discard=changes_rows).left
    assert theirs() == ours(path, options) == before
    goes_on(path, options, theirs)


# --- Iceberg-Spark -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lake(iceberg_spark: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with rest_lake(iceberg_spark, tmp_path_factory.mktemp("rest")) as found:
        yield found


def in_lake(lake: Lake, action: str, version: str) -> tuple[str, dict[str, str]]:
    """The name of a table, and the options that open it."""
    name = f"split_{version}_{action.replace(' ', '_')}"
    return name, {**lake.options(name), VERSION: version}


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("action", ICEBERG_REFUSES)
def test_what_iceberg_spark_refuses(lake: Lake, tmp_path: Path, action: str, version: str) -> None:
    """Snapshots and files that retained instants need."""
    path, (name, options) = tmp_path / "t", in_lake(lake, action, version)
    before = made(path, options)
    with pytest.raises(EngineError, match="GC is disabled"):
        lake.engine.sql(ICEBERG_REFUSES[action].format(name))
    assert lake.rows(name) == ours(path, options) == before
    taken = f"select summary['hudi.instant'], snapshot_id from lake.ns.{name}.snapshots"
    instants = {time: number for time, number in lake.engine.sql(taken) if time}
    assert len(instants) >= 4
    for time, snapshot in instants.items():
        past = hudi.Table.open(path, options).to_arrow(NOTED.names, as_of=time)
        assert lake.rows(name, f"version as of {snapshot}") == bag(past)
    goes_on(path, options, lambda: lake.rows(name))


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("action", ICEBERG_REWRITES)
def test_what_iceberg_spark_rewrites(lake: Lake, tmp_path: Path, action: str, version: str) -> None:
    """Files without their dead rows, or of the same dead rows; it rewrites no vectors."""
    path, (name, options) = tmp_path / "t", in_lake(lake, action, version)
    before = made(path, options)
    snapshots = f"select count(*) from lake.ns.{name}.snapshots"
    [(count,)] = lake.engine.sql(snapshots)
    lake.engine.sql(ICEBERG_REWRITES[action].format(name))
    if (action, version) == ("position deletes", "3"):
        assert lake.engine.sql(snapshots) == [(count,)]
        goes_on(path, options, lambda: lake.rows(name))
        return
    stops(path, options, lambda: lake.rows(name), before, changes_rows=False)


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("action", CHANGES)
def test_rows_that_iceberg_spark_changes(
    lake: Lake, tmp_path: Path, action: str, version: str
) -> None:
    """By deletions of its own beside ours."""
    path, (name, options) = tmp_path / "t", in_lake(lake, action, version)
    before = made(path, options)
    modes = (f"'write.{one}.mode' = 'merge-on-read'" for one in ("delete", "update", "merge"))
    lake.engine.sql(f"alter table lake.ns.{name} set tblproperties ({', '.join(modes)})")
    lake.engine.sql(CHANGES[action].format(f"lake.ns.{name}"))
    stops(path, options, lambda: lake.rows(name), before, changes_rows=True)


# --- Delta-Spark ---------------------------------------------------------------------------------

DELTA: Final = {"hoodie.table.format": "delta"}


def by_delta(engine: Engine, path: Path, of: str = "") -> Counter[str]:
    found = engine.query(f"select {', '.join(NOTED.names)} from delta.`{path}` {of}")
    return bag(found)


@pytest.mark.parametrize("action", [*DELTA_HARMLESS, "vacuum of all"])
def test_what_delta_spark_vacuums(delta_spark: Engine, tmp_path: Path, action: str) -> None:
    """Nothing; by force what only past states have, and no present row or vector."""
    path = tmp_path / "t"
    before = made(path, DELTA)
    if action in DELTA_HARMLESS:
        delta_spark.sql(DELTA_HARMLESS[action].format(f"delta.`{path}`"))
        for time, version in delta_versions(path).items():
            past = hudi.Table.open(path, DELTA).to_arrow(NOTED.names, as_of=time)
            assert by_delta(delta_spark, path, f"version as of {version}") == bag(past)
    else:
        with delta_spark.configured(NO_CHECK):
            delta_spark.sql(f"vacuum delta.`{path}` retain 0 hours")
    assert by_delta(delta_spark, path) == ours(path, DELTA) == before
    goes_on(path, DELTA, lambda: by_delta(delta_spark, path))


@own_failure("Delta-Spark's vacuum fails on vectors that are in the log, as it writes none itself")
def test_a_vacuum_of_vectors_in_the_log(delta_spark: Engine, tmp_path: Path) -> None:
    """Of other writers: ours are in files."""
    path = tmp_path / "t"
    write_deltalake(str(path), typed(range(10)).select(["id", "ts"]))
    delete_in_place(path, "delta", ".")
    try:
        delta_spark.sql(f"vacuum delta.`{path}`")
    except EngineError as error:
        raise OwnFailureError(str(error)) from error


@pytest.mark.parametrize("action", DELTA_REWRITES)
def test_what_delta_spark_rewrites(delta_spark: Engine, tmp_path: Path, action: str) -> None:
    """Files without their dead rows."""
    path = tmp_path / "t"
    before = made(path, DELTA)
    delta_spark.sql(DELTA_REWRITES[action].format(f"delta.`{path}`"))
    stops(path, DELTA, lambda: by_delta(delta_spark, path), before, changes_rows=False)


@pytest.mark.parametrize("action", CHANGES)
def test_rows_that_delta_spark_changes(delta_spark: Engine, tmp_path: Path, action: str) -> None:
    """By vectors of its own, which have our dead rows, too."""
    path = tmp_path / "t"
    before = made(path, DELTA)
    delta_spark.sql(CHANGES[action].format(f"delta.`{path}`"))
    stops(path, DELTA, lambda: by_delta(delta_spark, path), before, changes_rows=True)
