"""Tables after cleans and archivals, as readers see them that we did not write."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import hudi as hudi_rs
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.actions.archive import archive
from hudi_core.actions.archive_plan import ArchiveRules, LastClean, plan_archive
from hudi_core.actions.clean import complete_clean, delete_cleaned, request_clean, start_clean
from hudi_core.actions.clean_of_files import plan_clean
from hudi_core.actions.clean_plan import CleanRules, retain
from hudi_core.config.kinds import CleanPolicy
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.actions import CleanMetadata
from hudi_core.model.instant import Instant
from hudi_core.timeline.archived import with_history
from hudi_core.timeline.clock import TimelineClock
from hudi_core.view.file_system import replaced_groups
from hudi_core.view.storage_lister import StorageLister
from tests.hudi_tables import NO_METADATA, PLAIN, TRIPS, TXNS
from tests.tables import SCHEMA

Rows = list[tuple[Any, ...]]


def foreign_rows(path: Path, as_of: str | None = None) -> Rows:
    table = hudi_rs.HudiTableBuilder.from_base_uri(str(path)).build()
    options = hudi_rs.HudiReadOptions().with_as_of_timestamp(as_of) if as_of else None
    batches = table.read(options)
    names = ("id", "part", "ts")
    return sorted(tuple(row[name] for name in names) for one in batches for row in one.to_pylist())


def own_rows(path: Path, as_of: str | None = None) -> Rows:
    rows = hudi.Table.open(str(path)).to_arrow(as_of=as_of).to_pylist()
    return sorted((row["id"], row["part"], row["ts"]) for row in rows)


def client_of(path: Path) -> TableMetaClient:
    client: TableMetaClient = hudi.Table.open(str(path))._session.opened.client
    return client


def clean(client: TableMetaClient, rules: CleanRules) -> tuple[Instant, CleanMetadata] | None:
    timeline, clock = client.timeline(), TimelineClock(client.active)
    # a metadata table has partitions, though no fields that make them
    partitioned = bool(client.config.partition_fields) or client.base_path.endswith("/metadata")
    lister = StorageLister(client.storage, partitioned)
    replaced = replaced_groups(timeline, client.read_commit)
    retention = retain(timeline, rules, datetime.now(UTC))
    plan = plan_clean(client, timeline, lister, retention, replaced=lambda: replaced)
    if plan is None:
        return None
    work = start_clean(client, request_clean(client, clock.next_time(), plan))
    assert work is not None
    metadata = delete_cleaned(client, work)
    return complete_clean(client, work, clock.next_time(), metadata), metadata


def busy_table(path: Path) -> list[str]:
    """Write a table of upserts, and an overwrite of one of its partitions; return the instants."""
    table = hudi.Table.create(
        str(path),
        SCHEMA,
        name="t",
        record_key="id",
        partition_by="part",
        ordering_field="ts",
        # the bare mechanics tell no metadata table
        options={"hoodie.fs.fsync": "false", "hoodie.metadata.enable": "false"},
    )

    def batch(ts: int, *parts: str) -> pa.Table:
        rows = [{"id": f"{part}{n}", "part": part, "ts": ts} for part in parts for n in range(3)]
        return pa.Table.from_pylist(rows, SCHEMA)

    results = [table.insert(batch(0, "x", "y", "z"))]
    results += [table.upsert(batch(ts, "x", "y")) for ts in range(1, 4)]
    results.append(table.insert_overwrite(batch(4, "y")))
    results.append(table.delete_partitions(["part=z" if (path / "part=z").exists() else "z"]))
    results += [table.upsert(batch(ts, "x")) for ts in range(5, 10)]
    return [one.instant.requested_time for one in results if one.instant]


@pytest.mark.parametrize(
    "rules",
    [
        CleanRules(commits_retained=3),
        CleanRules(CleanPolicy.KEEP_LATEST_FILE_VERSIONS, file_versions_retained=1),
        CleanRules(CleanPolicy.KEEP_LATEST_BY_HOURS, hours_retained=0),
    ],
    ids=lambda rules: str(rules.policy),
)
def test_rows_stay_through_cleans_and_archivals(rules: CleanRules, tmp_path: Path) -> None:
    path = tmp_path / "table"
    times = busy_table(path)
    client = client_of(path)
    whole = client.timeline().instants
    latest = foreign_rows(path)
    assert latest == own_rows(path)
    kept = times[-3:] if rules.policy is CleanPolicy.KEEP_LATEST_COMMITS else times[-1:]
    views = {time: foreign_rows(path, time) for time in kept}
    files = {file.name for file in path.rglob("*.parquet")}

    cleaned = clean(client, rules)
    if rules.policy is CleanPolicy.KEEP_LATEST_BY_HOURS:
        assert cleaned is None  # nothing is younger than now, so no write is known to be retained
        return
    assert cleaned is not None
    instant, metadata = cleaned
    gone = {
        name for one in metadata.partition_metadata.values() for name in one.success_delete_files
    }
    assert len(gone) == metadata.total_files_deleted > 5
    assert files - {file.name for file in path.rglob("*.parquet")} == gone
    z = next(one for one in metadata.partition_metadata.values() if "z" in one.partition_path)
    assert z.is_partition_deleted
    assert z.partition_path not in StorageLister(client.storage, True).list_partitions()
    assert foreign_rows(path) == own_rows(path) == latest
    assert {time: foreign_rows(path, time) for time in kept} == views

    last_clean = LastClean(instant, _time(metadata.earliest_commit_to_retain))
    chosen = plan_archive(client.timeline(), ArchiveRules(3, 4), last_clean)
    assert len(chosen) >= 8
    assert archive(client, chosen) == chosen
    assert foreign_rows(path) == own_rows(path) == latest
    assert {time: foreign_rows(path, time) for time in kept} == views
    assert {time: own_rows(path, time) for time in kept} == views
    reopened = client_of(path)
    both = with_history(reopened.timeline(), reopened.archived.load())
    assert both.instants == tuple(sorted((*whole, instant), key=lambda one: one.sort_key))
    history = path / ".hoodie/timeline/history"
    rows = duckdb.execute(f"select instantTime from '{history}/*.parquet' order by 1").fetchall()
    assert [row[0] for row in rows] == [one.requested_time for one in chosen]

    table = hudi.Table.open(str(path))
    table.upsert(pa.Table.from_pylist([{"id": "x0", "part": "x", "ts": 99}], SCHEMA))
    assert foreign_rows(path) == own_rows(path) != latest


def _time(text: str) -> Any:
    return text or None


@pytest.mark.parametrize("name", [PLAIN, NO_METADATA, TXNS])
def test_real_tables_are_read_after_their_writes_were_archived(
    name: str, real_tables: Callable[[str], Path]
) -> None:
    path = real_tables(name)
    expected = whole_rows(path)
    client = client_of(path)
    whole = client.timeline()
    replaced = [one for one in whole if one.action.value == "replacecommit"]
    writes = whole.completed_writes()
    bound = min([replaced[0].requested_time] if replaced else [], default=None)
    chosen = [one for one in writes[:-1] if bound is None or one.requested_time < bound]
    bodies = {one: client.read_instant(one) for one in chosen}
    for one in chosen:
        archive(client, [one], compaction_batch_size=3)
    found = whole_rows(path)
    assert found.equals(expected)
    archived = client.archived.load(bodies=True)
    assert {one.instant: one.metadata for one in archived} == bodies
    assert with_history(client.timeline(), archived).instants == whole.instants


@pytest.mark.parametrize("name", [TXNS, TRIPS])
def test_a_real_metadata_table_is_cleaned_and_archived(
    name: str, real_tables: Callable[[str], Path]
) -> None:
    path = real_tables(name)
    expected = whole_rows(path)
    metadata = path / ".hoodie/metadata"
    client = client_of(metadata)
    whole = client.timeline().completed_writes()
    rules = CleanRules(CleanPolicy.KEEP_LATEST_FILE_VERSIONS, file_versions_retained=1)
    cleaned = clean(client, rules)
    assert cleaned is not None
    deleted = [
        file for one in cleaned[1].partition_metadata.values() for file in one.success_delete_files
    ]
    assert {file.rpartition(".")[2][:5] for file in deleted} >= {"hfile", "1_0-0"}
    assert whole_rows(path).equals(expected)
    times = [one.requested_time for one in client.timeline().completed_writes()]
    last_clean = LastClean(cleaned[0], None)
    chosen = plan_archive(client.timeline(), ArchiveRules(1, 2), last_clean)
    assert len(chosen) > 5
    # the writer that had the compaction made completed after it: its log files are not in it
    [compaction] = (one for one in whole if one.action.value == "commit")
    late = [one for one in whole if one.requested_time < compaction.requested_time][-1]
    assert late.effective_completion_time > compaction.requested_time
    assert chosen[-1].requested_time == times[times.index(late.requested_time) - 1]
    archive(client, chosen)
    assert whole_rows(path).equals(expected)
    assert clean(client_of(metadata), rules) is None


def whole_rows(path: Path) -> pa.Table:
    batches = hudi_rs.HudiTableBuilder.from_base_uri(str(path)).build().read()
    return pa.Table.from_batches(batches).sort_by("_hoodie_commit_seqno")
