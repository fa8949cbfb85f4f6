"""Clusterings after commits, and by command."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli import app
from hudi_core.config.write import WriteConfig
from hudi_core.errors import (
    InvalidOptionError,
)
from hudi_core.services.clustering import cluster_if_due
from hudi_core.services.opening import open_table
from hudi_core.txn.table_lock import table_lock
from tests.unit.clustering.clustered_tables import OPTIONS, files, held, on_timeline, rows, run

# --- after a commit -------------------------------------------------------------------------------


def due(table: hudi.Table, **options: str) -> list[tuple[bool, int]]:
    """What is clustered after a commit: whether it was run, and how many files."""
    named = {f"hoodie.clustering.{name.replace('_', '.')}": one for name, one in options.items()}
    given = OPTIONS | named
    opened, config = open_table(table.path, given), WriteConfig.from_options(given)
    done = cluster_if_due(opened, table_lock(opened, config), config, hudi.LocalEngine(1))
    return [(one.result is not None, one.files) for one in done]


def test_a_clustering_is_due_after_some_commits(table: hudi.Table) -> None:
    assert due(table) == []
    assert due(table, inline="true") == []
    assert due(table, inline="true", inline_max_commits="3") == [(True, 5)]
    table.insert(rows("a7"))
    assert due(table, inline="true", inline_max_commits="2") == []
    assert due(table, schedule_inline="true") == []
    assert due(table, schedule_inline="true", async_max_commits="1") == [(False, 2)]
    assert due(table, schedule_inline="true", async_max_commits="1") == []
    assert due(table, inline="true") == [(True, 2)]


def test_a_write_clusters_where_options_ask(table: hudi.Table) -> None:
    inline = {
        "hoodie.clustering.inline": "true",
        "hoodie.clustering.plan.strategy.sort.columns": "n",
    }
    table.insert(rows("a7"), options=inline)
    assert len(files(table)) == 2
    assert len(on_timeline(table, "replacecommit")) == 1
    table.upsert(rows("a1", n=7), options=inline)
    assert len(on_timeline(table, "replacecommit")) == 1
    with pytest.raises(InvalidOptionError):
        table.insert(rows("a8"), options={"hoodie.layout.optimize.strategy": "peano"})
    missing = {"hoodie.clustering.plan.strategy.sort.columns": "nothing"}
    often = {"hoodie.clustering.inline.max.commits": "1"}
    table.insert(rows("a8"), options=inline | missing | often)  # the write stands
    assert len(held(table)) == 10


def test_the_commands_preview_schedule_and_run(table: hudi.Table) -> None:
    given = ("cluster", table.path, "--sort-by", "n,id", "--layout", "hilbert")
    preview = run(*given, "--dry-run")
    [group] = preview["clusterings"][0]["groups"][:1]
    assert (group["partition"], len(group["files"]), group["new_files"]) == ("a", 3, 1)
    assert preview["clusterings"][0]["instant"] is None
    text = CliRunner().invoke(app, [*given, "--dry-run"]).stdout
    assert "Nothing was changed" in text
    [planned] = run(*given, "--schedule")["clusterings"]
    assert planned["completed"] is None
    [done] = run("cluster", table.path, "--run", "--instant", planned["instant"])["clusterings"]
    assert (done["files"], done["new_files"]) == (5, 2)
    assert done["completed"] > done["instant"]
    assert run("optimize", table.path)["clusterings"] == []
    assert CliRunner().invoke(app, ["optimize", table.path]).stdout.endswith("to rewrite.\n")
    assert CliRunner().invoke(app, ["cluster", table.path, "--run", "--dry-run"]).exit_code == 2


def test_progress_counts_groups(table: hudi.Table) -> None:
    seen: list[tuple[int, int]] = []
    table.optimize(progress=lambda done, total: seen.append((done, total)))
    assert sorted(seen) == [(1, 2), (2, 2)]
