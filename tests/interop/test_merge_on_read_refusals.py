"""What is done to merge-on-read tables, and what is refused by name and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.cli.app import EXAMPLES
from hudi_core.config.placement import PlacementKeys
from hudi_core.errors import UnsupportedCapabilityError, UnsupportedTableError
from tests.cli_runs import run
from tests.foreign import by_hudi_rs
from tests.hudi_tables import LOGS_6, LOGS_9, OWN, TRIPS

NAMED: Final = "is of type MERGE_ON_READ"
OLD: Final = "has table version 6"
Verb = Callable[[hudi.Table, pa.Table, str], Any]
VERBS: Final[dict[str, Verb]] = {
    "insert": lambda table, rows, _: table.insert(renamed(table, rows)),
    "bulk_insert": lambda table, rows, _: table.bulk_insert(renamed(table, rows)),
    "upsert": lambda table, rows, _: table.upsert(rows),
    "delete": lambda table, rows, _: table.delete(rows),
    "update": lambda table, rows, _: table.update({plain(table): None}),
    "merge": lambda table, rows, _: table.merge(rows, key(table)).when_matched_delete().execute(),
    "insert_overwrite": lambda table, rows, _: table.insert_overwrite(rows),
    "insert_overwrite_table": lambda table, rows, _: table.insert_overwrite_table(rows),
    "delete_partitions": lambda table, *_: table.delete_partitions([partition(table)]),
    "plan": lambda table, rows, _: table.plan("upsert", rows),
    "stage": lambda table, rows, _: table.stage(rows),
    "alter": lambda table, *_: table.alter(add_columns={"more": pa.int64()}),
    "create_index": lambda table, *_: table.create_index("idx", plain(table)),
    "drop_index": lambda table, *_: table.drop_index("column_stats"),
    "clean": lambda table, *_: table.clean(),
    "expire_partitions": lambda table, *_: table.expire_partitions(1),
    "archive": lambda table, *_: table.archive(),
    "purge": lambda table, *_: table.purge(),
    "cluster": lambda table, *_: table.cluster(),
    "run_clusterings": lambda table, *_: table.run_clusterings(),
    "optimize": lambda table, *_: table.optimize(),
    "compact": lambda table, *_: table.compact(),
    "run_compactions": lambda table, *_: table.run_compactions(),
    "rewrite_keys": lambda table, *_: table.rewrite_keys(),
    "savepoint": lambda table, _, time: table.savepoint(time),
    "delete_savepoint": lambda table, _, time: saved(table, time).delete_savepoint(time),
    "restore": lambda table, _, time: table.restore(time),
    "rollback": lambda table, _, time: table.rollback(time),
    "repair": lambda table, *_: table.repair(),
    "repair_metadata": lambda table, *_: table.repair_metadata(),
    "convert": lambda table, *_: table.convert("delta"),
    "convert_type": lambda table, *_: table.convert_type("COPY_ON_WRITE"),
    "convert_storage": lambda table, *_: table.convert_storage(elsewhere(table)),
    "upgrade": lambda table, *_: table.upgrade(9),
}
IS_THERE: Final = frozenset({"metadata create", "metadata index"})
"""What the table has already."""
WRITES: Final = (
    *("insert", "bulk_insert", "upsert", "delete", "update", "merge", "write", "rollback"),
    *("insert_overwrite", "insert_overwrite_table", "restore", "compact"),
)
DOORS: Final[dict[str, Verb]] = {
    "write": lambda table, rows, _: hudi.write(rows, table.path, mode="append"),
}
READS: Final = frozenset(
    {
        *(
            "open",
            "close",
            "metadata",
            "history",
            "file_slices",
            "stages",
            "find_stage",
            "validate",
        ),
        *("to_arrow", "to_batches", "to_pandas", "to_polars", "scan", "head", "count", "read"),
        *("incremental", "incremental_batches", "changes", "changes_batches", "diff"),
        "sync",
    }
)
TAKES_ANY_TABLE: Final = frozenset({"create", "adopt", "drop", "drop_stage"})
"""What makes tables, or removes what is no row."""
INNER: Final = frozenset({"change", "perform"})
"""What other doors call."""
COMMANDS: Final = {
    "ingest": "PATH FILES",
    "clean": "PATH",
    "archive": "PATH",
    "ttl": "PATH --days 1",
    "purge": "PATH --yes",
    "cluster": "PATH",
    "compact": "PATH",
    "optimize": "PATH",
    "rollback": "PATH TIME",
    "restore": "PATH TIME --yes",
    "table convert": "PATH --to delta",
    "table upgrade": "PATH --to 9",
    "table rewrite-keys": "PATH",
    "table repair": "PATH",
    "metadata create": "PATH",
    "metadata init": "PATH",
    "metadata index": "PATH column_stats",
    "metadata drop": "PATH column_stats",
    "savepoint create": "PATH TIME",
    "savepoint delete": "PATH TIME",
}
OTHER_COMMANDS: Final = frozenset(
    {
        *("formats", "metadata set", "serve-trino", "timeline", "savepoint list", "stage list"),
        *("table validate", "table head", "table count", "table show", "metadata stats"),
        *("metadata list-partitions", "metadata list-files", "metadata validate"),
        *("metadata lookup-record-index", "sync hive", "sync glue"),
        # they take any table, or need a stage, which no table with logs has
        *("table adopt", "table drop", "table create", "metadata delete"),
        *("stage publish", "stage drop"),
    }
)


PLANNED: Final = ("clean", "archive", "ttl", "purge", "cluster", "optimize", "compact", "rollback")
PLANNED_OF_TABLE: Final = ("convert", "upgrade", "rewrite-keys", "repair")
DRY_RUNS: Final = (*PLANNED, "restore", *(f"table {one}" for one in PLANNED_OF_TABLE))


def key(table: hudi.Table) -> str:
    return table.config.record_key_fields[0]


def partition(table: hudi.Table) -> str:
    return str(table.file_slices()[0].partition_path)


def everything(path: Path) -> dict[str, bytes | None]:
    """Return all that lies below a folder: locks and empty folders too."""
    return {
        str(one.relative_to(path)): one.read_bytes() if one.is_file() else None
        for one in path.rglob("*")
    }


def written_rows(table: hudi.Table) -> pa.Table:
    return table.to_arrow(table.schema.names)


def plain(table: hudi.Table) -> str:
    """A column of neither key, partition nor order."""
    config = table.config
    others = {*config.record_key_fields, *config.partition_fields, *config.ordering_fields}
    return next(str(name) for name in table.schema.names if name not in others)


def elsewhere(table: hudi.Table) -> dict[str, str]:
    """A place beside the table."""
    return {
        PlacementKeys.strategy.key: "object_store",
        PlacementKeys.path.key: f"{table.path}-elsewhere",
    }


def renamed(table: hudi.Table, rows: pa.Table) -> pa.Table:
    """The rows under keys that the table does not have."""
    at, name = rows.column_names.index(key(table)), key(table)
    column = rows.column(at)
    if pa.types.is_string(column.type):
        made = pa.array([f"new {value}" for value in column.to_pylist()])
    else:
        made = pa.array([value + 1_000 for value in column.to_pylist()], column.type)
    return rows.set_column(at, rows.schema.field(name), made)


def saved(table: hudi.Table, time: str) -> hudi.Table:
    table.savepoint(time)
    return table


def test_every_method_and_command_is_known_here() -> None:
    methods = {
        name
        for name, one in vars(hudi.Table).items()
        if not name.startswith("_") and (callable(one) or isinstance(one, classmethod))
    }
    assert {*VERBS, *READS, *TAKES_ANY_TABLE, *INNER} == methods
    assert {*COMMANDS, *OTHER_COMMANDS} == set(EXAMPLES)


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    """A table of Apache Hudi's that has logs, partitions and all indexes."""
    return OWN.unpack(TRIPS, tmp_path / "table")


def last_time(table: hudi.Table) -> str:
    return str(table.timeline.completed_writes()[-1].requested_time)


@pytest.mark.parametrize("name", [*VERBS, *DOORS])
def test_methods(name: str, trips: Path) -> None:
    table, verb = hudi.Table.open(trips), {**VERBS, **DOORS}[name]
    rows, time = written_rows(table), last_time(table)
    before = everything(trips)
    if name == "convert":
        with pytest.raises(UnsupportedCapabilityError, match="merge on read"):
            verb(table, rows, time)
        assert everything(trips) == before
    else:
        verb(table, rows, time)
        assert hudi.Table.open(trips).validate(keys=True).differences == ()


@pytest.mark.parametrize("name", WRITES)
def test_hudi_rs_reads_what_is_written(name: str, tmp_path: Path) -> None:
    path = OWN.unpack(LOGS_9, tmp_path / "table")
    table = hudi.Table.open(path)
    rows = written_rows(table)
    {**VERBS, **DOORS}[name](table, rows, last_time(table))
    again = hudi.Table.open(path)
    assert again.validate(keys=True).differences == ()
    keys = again.config.record_key_fields
    theirs = [str({name: one[name] for name in keys}) for one in by_hudi_rs(path)]
    assert sorted(theirs) == sorted(map(str, again.to_arrow([*keys]).to_pylist()))


@pytest.mark.parametrize("name", [one for one in (*VERBS, *DOORS) if one != "upgrade"])
def test_methods_on_version_6(name: str, tmp_path: Path) -> None:
    path = OWN.unpack(LOGS_6, tmp_path / "table")
    table = hudi.Table.open(path)
    rows, time = written_rows(table), last_time(table)
    verb, before = {**VERBS, **DOORS}[name], everything(path)
    with pytest.raises(UnsupportedTableError, match=f"{OLD}|{NAMED}"):
        verb(table, rows, time)
    assert everything(path) == before


@pytest.mark.parametrize(
    ("command", "more"),
    [*((one, "") for one in COMMANDS), *((one, " --dry-run") for one in DRY_RUNS)],
)
@pytest.mark.parametrize("source", [TRIPS, LOGS_6])
def test_commands(command: str, more: str, source: str, tmp_path: Path) -> None:
    path = OWN.unpack(source, tmp_path / "table")
    table = hudi.Table.open(path)
    (tmp_path / "files").mkdir()
    pq.write_table(written_rows(table), tmp_path / "files" / "rows.parquet")
    words = {"PATH": str(path), "FILES": str(tmp_path / "files"), "TIME": last_time(table)}
    before = everything(path)
    if command == "savepoint delete" and source == TRIPS:
        table.savepoint(words["TIME"])
    given = [words.get(one, one) for one in f"{COMMANDS[command]}{more}".split()]
    result = run(*command.split(), *given)
    if command == "table upgrade" or (source == TRIPS and command != "table convert"):
        assert (result.exit_code, "already" in result.stderr) == (
            (1, True) if command in IS_THERE else (0, False)
        ), result.output
        assert hudi.Table.open(path).validate(keys=True).differences == ()
        return
    named = any(one in result.stderr for one in (NAMED, OLD, "merge on read"))
    assert (result.exit_code, named) == (1, True), result.output
    assert everything(path) == before
