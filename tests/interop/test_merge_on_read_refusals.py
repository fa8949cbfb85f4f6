"""What would write to a merge-on-read table is refused by name, and leaves nothing behind."""

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
from hudi_core.errors import UnsupportedTableError
from tests.cli_runs import run
from tests.hudi_tables import LOGS_6, OWN, TRIPS

NAMED: Final = "is of type MERGE_ON_READ"
ELSEWHERE: Final = {
    PlacementKeys.strategy.key: "object_store",
    PlacementKeys.path.key: "/elsewhere",
}
Verb = Callable[[hudi.Table, pa.Table, str], Any]
VERBS: Final[dict[str, Verb]] = {
    "insert": lambda table, rows, _: table.insert(rows),
    "bulk_insert": lambda table, rows, _: table.bulk_insert(rows),
    "upsert": lambda table, rows, _: table.upsert(rows),
    "delete": lambda table, rows, _: table.delete(rows),
    "update": lambda table, rows, _: table.update({rows.column_names[1]: None}),
    "merge": lambda table, rows, _: table.merge(rows, key(table)).when_matched_delete().execute(),
    "insert_overwrite": lambda table, rows, _: table.insert_overwrite(rows),
    "insert_overwrite_table": lambda table, rows, _: table.insert_overwrite_table(rows),
    "delete_partitions": lambda table, *_: table.delete_partitions(partition(table)),
    "plan": lambda table, rows, _: table.plan("upsert", rows),
    "stage": lambda table, rows, _: table.stage(rows),
    "alter": lambda table, *_: table.alter(add_columns={"more": pa.int64()}),
    "create_index": lambda table, rows, _: table.create_index("idx", rows.column_names[1]),
    "drop_index": lambda table, *_: table.drop_index("column_stats"),
    "clean": lambda table, *_: table.clean(),
    "expire_partitions": lambda table, *_: table.expire_partitions(1),
    "archive": lambda table, *_: table.archive(),
    "purge": lambda table, *_: table.purge(),
    "cluster": lambda table, *_: table.cluster(),
    "run_clusterings": lambda table, *_: table.run_clusterings(),
    "optimize": lambda table, *_: table.optimize(),
    "rewrite_keys": lambda table, *_: table.rewrite_keys(),
    "savepoint": lambda table, _, time: table.savepoint(time),
    "delete_savepoint": lambda table, _, time: table.delete_savepoint(time),
    "restore": lambda table, _, time: table.restore(time),
    "rollback": lambda table, _, time: table.rollback(time),
    "repair": lambda table, *_: table.repair(),
    "repair_metadata": lambda table, *_: table.repair_metadata(),
    "convert": lambda table, *_: table.convert("delta"),
    "convert_storage": lambda table, *_: table.convert_storage(ELSEWHERE),
    "upgrade": lambda table, *_: table.upgrade(9),
}
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


PLANNED: Final = ("clean", "archive", "ttl", "purge", "cluster", "optimize", "rollback")
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


@pytest.fixture(params=[TRIPS, LOGS_6])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Give the test a table that has a metadata table, or is of version 6."""
    return OWN.unpack(request.param, tmp_path / "table")


def written_rows(table: hudi.Table) -> pa.Table:
    return table.to_arrow(table.schema.names)


def test_every_method_and_command_is_known_here() -> None:
    methods = {
        name
        for name, one in vars(hudi.Table).items()
        if not name.startswith("_") and (callable(one) or isinstance(one, classmethod))
    }
    assert {*VERBS, *READS, *TAKES_ANY_TABLE, *INNER} == methods
    assert {*COMMANDS, *OTHER_COMMANDS} == set(EXAMPLES)


@pytest.mark.parametrize("verb", [*VERBS.values(), *DOORS.values()], ids=[*VERBS, *DOORS])
def test_methods(verb: Verb, path: Path) -> None:
    table = hudi.Table.open(path)
    rows, time = written_rows(table), table.timeline.completed_writes()[-1].requested_time
    before = everything(path)
    with pytest.raises(UnsupportedTableError, match=NAMED):
        verb(table, rows, time)
    assert everything(path) == before


@pytest.mark.parametrize(
    ("command", "more"),
    [*((one, "") for one in COMMANDS), *((one, " --dry-run") for one in DRY_RUNS)],
)
def test_commands(command: str, more: str, path: Path, tmp_path: Path) -> None:
    table = hudi.Table.open(path)
    (tmp_path / "files").mkdir()
    pq.write_table(written_rows(table), tmp_path / "files" / "rows.parquet")
    words = {
        "PATH": str(path),
        "FILES": str(tmp_path / "files"),
        "TIME": table.timeline.completed_writes()[-1].requested_time,
    }
    before = everything(path)
    given = [words.get(one, one) for one in f"{COMMANDS[command]}{more}".split()]
    result = run(*command.split(), *given)
    assert (result.exit_code, NAMED in result.stderr) == (1, True), result.output
    assert everything(path) == before
