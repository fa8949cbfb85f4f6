"""Compaction, cleaning and archiving of metadata tables: real ones, judged by hudi-rs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import hudi as hudi_rs
import pyarrow as pa
import pytest

from hudi_core.actions.compaction import plan_compaction, request_compaction
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.stored_table import stored_config
from hudi_core.errors import CorruptMetadataError, TableServiceError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.compaction import (
    compact_if_due,
    compaction_waits_for,
    deltas_since_compaction,
    require_no_backlog,
)
from hudi_core.metadata.hfile import HFileReader
from hudi_core.metadata.partition_types import FILES, PARTITION_STATS
from hudi_core.metadata.record_codec import RecordDecoder
from hudi_core.metadata.records import (
    FileEntry,
    FileList,
    MetadataRecord,
    PartitionChange,
    RecordType,
)
from hudi_core.metadata.services import archive_if_due, clean_if_due, run_services
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.state import MetadataState
from hudi_core.metadata.table import metadata_client
from hudi_core.metadata.writer import write_deltacommit
from hudi_core.model.files import FileId, PartitionPath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.storage.properties_file import read_properties, update_properties
from hudi_core.view.file_system import FileSystemView
from hudi_core.view.storage_lister import StorageLister
from tests.hudi_tables import TRIPS, TXNS
from tests.unit.mortal_tables import DEATHS_APART, deaths, open_client


def config(
    *, compact: int = 3, retained: int = 1, least: int = 1, most: int = 2, **more: object
) -> MetadataConfig:
    keys = {
        "compact.max.delta.commits": compact,
        "cleaner.commits.retained": retained,
        "keep.min.commits": least,
        "keep.max.commits": most,
        **more,
    }
    return MetadataConfig.from_options(
        {f"hoodie.metadata.{key}": str(value) for key, value in keys.items()}
    )


def opened(path: Path) -> TableMetaClient:
    stored = read_properties(open_client(path).storage)
    return open_client(path, stored_config(stored, str(path)))


def lock(client: TableMetaClient) -> MetadataState:
    tables = MetadataState.load(client)
    assert tables is not None
    return tables


def scans(client: TableMetaClient) -> dict[str, list[MetadataRecord]]:
    snapshot = MetadataSnapshot.open(client)
    return {one: list(snapshot.scan(one)) for one in snapshot.partitions}


def foreign_rows(path: Path) -> pa.Table:
    """Return the rows as hudi-rs reads them, which lists from the metadata table."""
    batches = hudi_rs.HudiTableBuilder.from_base_uri(str(path)).build().read()
    return pa.Table.from_batches(batches).sort_by("_hoodie_commit_seqno")


def add_instant(client: TableMetaClient, changes: Mapping[str, PartitionChange]) -> Instant:
    """Commit something to both tables."""
    both = lock(client)
    requested = client.active.create_requested(
        Instant(both.next_time(), Action.COMMIT, State.REQUESTED)
    )
    client.active.to_inflight(requested)
    both = both.with_data_timeline(client.timeline())
    write_deltacommit(both, requested.requested_time, changes)
    now = both.with_data_timeline(client.timeline()).next_time()
    return client.active.complete(requested, now, some_commit(client))


def some_commit(client: TableMetaClient) -> bytes:
    """Return the body of a commit that hudi-rs finds a schema by."""
    commits = client.timeline().completed().of_actions(Action.COMMIT).instants
    return client.active.read(commits[0])


def added(name: str) -> str:
    """Return the name of a file that no reader counts."""
    return f"{name}-0_0-0-0_29990101000000000.parquet"


def more_files(partition: str, **files: int) -> dict[str, PartitionChange]:
    entries = {added(name): FileEntry(size) for name, size in files.items()}
    record = MetadataRecord(partition, RecordType.FILES, FileList(entries))
    return {FILES: PartitionChange((record,))}


@pytest.mark.parametrize("name", [TXNS, TRIPS])
def test_compacted_files_hold_what_was_merged(
    name: str, real_tables: Callable[[str], Path]
) -> None:
    path = real_tables(name)
    rows = foreign_rows(path)
    client = opened(path)
    before = scans(client)
    metadata = metadata_client(client)
    done = compact_if_due(lock(client), config(compact=1))
    assert done is not None
    assert done.action is Action.COMMIT
    assert scans(client) == before
    assert foreign_rows(path).equals(rows)
    body = metadata.read_commit(done)
    assert (body.compacted, body.operation_type) == (True, "COMPACT")
    found: dict[str, dict[str, MetadataRecord | None]] = {}
    for stat in body.stats:
        data = metadata.storage.read(stat.path or "")
        reader = HFileReader.from_bytes(data, stat.path or "")
        decoder = RecordDecoder(reader.schema, stat.path or "")
        entries = {key.decode(): decoder.decode(key, value) for key, value in reader.entries()}
        assert (stat.num_writes, stat.file_size_in_bytes) == (len(entries), len(data))
        assert reader.meta_block("bloomFilter")
        found.setdefault(stat.partition_path or "", {}).update(entries)
    assert found.keys() <= before.keys()
    for partition, merged in found.items():
        whole = {record.key: record for record in before[partition]}
        assert merged == {key: whole[key] for key in merged}
    assert found[FILES] == {record.key: record for record in before[FILES]}
    snapshot = MetadataSnapshot.open(client)
    assert not any(
        group.slice.log_files for one in snapshot.partitions for group in snapshot.groups(one)
    )


def test_files_compacted_twice_are_taken_over_under_their_new_name(
    real_tables: Callable[[str], Path],
) -> None:
    path = real_tables(TXNS)
    client = opened(path)
    assert compact_if_due(lock(client), config(compact=1))
    before = scans(client)
    add_instant(client, more_files("region=eu", a=1))
    second = compact_if_due(lock(client), config(compact=1))
    assert second is not None
    metadata = metadata_client(client)
    [stat] = metadata.read_commit(second).stats
    assert (stat.partition_path, stat.num_update_writes, stat.num_inserts) == (FILES, 1, 0)
    data = metadata.storage.read(stat.path or "")
    name = (stat.path or "").rpartition("/")[2].encode()
    values = dict(HFileReader.from_bytes(data, "x").entries())
    assert all(value[6:].startswith(name) for value in values.values())
    after = scans(client)
    changed = [one for one in after[FILES] if one not in before[FILES]]
    assert [one.key for one in changed] == ["region=eu"]
    assert isinstance(changed[0].payload, FileList)
    assert changed[0].payload.files[added("a")] == FileEntry(1)
    assert {**after, FILES: ()} == {**before, FILES: ()}


def test_compaction_is_due_after_so_many_deltacommits(real_tables: Callable[[str], Path]) -> None:
    client = opened(real_tables(TXNS))
    timeline = metadata_client(client).timeline()
    waiting = deltas_since_compaction(timeline)
    [compaction] = timeline.completed().of_actions(Action.COMMIT).instants
    begun = [one.requested_time for one in waiting]
    # the writes that had an index built and the compaction made are complete after it
    assert begun[0] == "00000000000000004"
    assert begun[1] < compaction.requested_time < begun[2]
    assert compact_if_due(lock(client), config(compact=len(waiting) + 1)) is None
    assert compact_if_due(lock(client), config(compact=len(waiting))) is not None
    assert deltas_since_compaction(metadata_client(client).timeline()) == []
    assert compact_if_due(lock(client), config(compact=1)) is None


def test_compaction_waits_for_what_is_pending(real_tables: Callable[[str], Path]) -> None:
    path = real_tables(TXNS)
    client = opened(path)
    rows, before = foreign_rows(path), scans(client)
    both = lock(client)
    pending = Instant(both.next_time(), Action.COMMIT, State.REQUESTED)
    client.active.create_requested(pending)
    inflight = client.active.to_inflight(pending)
    assert compaction_waits_for(client.timeline(), metadata_client(client).timeline()) is None
    write_deltacommit(lock(client), pending.requested_time, more_files("region=eu", a=1))
    assert compaction_waits_for(client.timeline(), metadata_client(client).timeline()) == inflight
    assert compact_if_due(lock(client), config(compact=1)) is None
    assert scans(client) == before
    assert foreign_rows(path).equals(rows)
    few = config(**{"max.deltacommits.when_pending": 3})
    with pytest.raises(TableServiceError, match=str(pending.requested_time)):
        require_no_backlog(few, client.timeline(), metadata_client(client).timeline())
    require_no_backlog(config(), client.timeline(), metadata_client(client).timeline())
    client.active.complete(inflight, lock(client).next_time(), some_commit(client))
    require_no_backlog(few, client.timeline(), metadata_client(client).timeline())
    assert compact_if_due(lock(client), config(compact=1)) is not None


def test_a_compaction_that_was_begun_leaves_later_commits_out(
    real_tables: Callable[[str], Path],
) -> None:
    path = real_tables(TXNS)
    client = opened(path)
    metadata = metadata_client(client)
    lister = StorageLister(metadata.storage, partitioned=True)
    view = FileSystemView(lister, metadata.timeline(), {})
    plan = plan_compaction(view.latest_slices())
    assert plan is not None
    request_compaction(metadata, lock(client).next_time(), plan)
    add_instant(client, more_files("region=eu", a=1))
    rows, before = foreign_rows(path), scans(client)
    run_services(lock(client), config(compact=100, most=100))
    assert not metadata.timeline().pending().instants
    snapshot = MetadataSnapshot.open(client)
    [files] = snapshot.groups(FILES)
    assert len(files.slice.log_files) == 1
    assert scans(client) == before
    assert foreign_rows(path).equals(rows)


def test_a_file_that_is_lost_stops_the_compaction(real_tables: Callable[[str], Path]) -> None:
    client = opened(real_tables(TXNS))
    metadata = metadata_client(client)
    lister = StorageLister(metadata.storage, partitioned=True)
    plan = plan_compaction(FileSystemView(lister, metadata.timeline(), {}).latest_slices())
    assert plan is not None
    request_compaction(metadata, lock(client).next_time(), plan)
    [operation] = [one for one in plan.operations or () if one.partition_path == FILES]
    lost = f"{FILES}/{(operation.delta_file_paths or ())[-1]}"
    metadata.storage.delete(lost)
    with pytest.raises(CorruptMetadataError, match="hudi table repair --metadata") as error:
        run_services(lock(client), config())
    assert error.value.path.endswith(lost)


def test_old_slices_are_cleaned_once_no_commit_reads_them(
    real_tables: Callable[[str], Path],
) -> None:
    path = real_tables(TXNS)
    client = opened(path)
    rows, before = foreign_rows(path), scans(client)
    metadata = metadata_client(client)
    assert clean_if_due(lock(client), config(retained=20)) is None
    for _ in range(2):
        assert compact_if_due(lock(client), config(compact=1)) is not None
        # two instants after a compaction are too few: readers of older slices may be at work
        for _ in range(2):
            add_instant(client, {})
        assert clean_if_due(lock(client), config(retained=1)) is None
        add_instant(client, {})
        done = clean_if_due(lock(client), config(retained=1))
        assert done is not None
        assert done.action is Action.CLEAN
        assert foreign_rows(path).equals(rows)
        add_instant(client, more_files("region=eu", a=1))
    assert clean_if_due(lock(client), config(retained=1)) is None
    old = {
        one.base_instant
        for group in FileSystemView(
            StorageLister(metadata.storage, True), metadata.timeline(), {}
        ).file_groups([PartitionPath(FILES)])
        for one in group.slices
    }
    assert len(old) == 1
    after = scans(client)
    assert {**after, FILES: ()} == {**before, FILES: ()}


def test_instants_are_archived_up_to_the_first_of_the_table(
    real_tables: Callable[[str], Path],
) -> None:
    path = real_tables(TXNS)
    client = opened(path)
    rows, before = foreign_rows(path), scans(client)
    moved = archive_if_due(lock(client), config())
    # the first building alone is older than the table's first write
    assert [one.requested_time[:16] for one in moved] == ["0" * 16] * len(moved)
    assert moved
    assert scans(client) == before
    assert foreign_rows(path).equals(rows)
    assert archive_if_due(lock(client), config(most=100)) == ()


@pytest.fixture
def small(real_tables: Callable[[str], Path]) -> Path:
    """Give the real table with two partitions of its metadata table, a compaction due."""
    path = real_tables(TXNS)
    client = opened(path)
    kept = (FILES, PARTITION_STATS)
    update_properties(client.storage, {"hoodie.table.metadata.partitions": ",".join(kept)})
    for folder in metadata_client(client).storage.list_folders():
        if folder not in (*kept, ".hoodie"):
            shutil.rmtree(path / ".hoodie/metadata" / folder)
    return path


def settled(client: TableMetaClient) -> Any:
    timeline = metadata_client(client).timeline()
    assert not timeline.pending().instants
    assert not timeline.unknown
    kinds = [one.action for one in timeline.completed()]
    return kinds.count(Action.COMMIT), kinds.count(Action.CLEAN)


@pytest.mark.slow
def test_services_may_die_at_any_step(small: Path, tmp_path: Path) -> None:
    client = opened(small)
    rows, before = foreign_rows(small), scans(client)
    for _ in range(3):
        add_instant(client, {})

    def act(dying: TableMetaClient) -> None:
        run_services(lock(dying), config())

    seen = 0
    whole = small.parent / "whole"
    shutil.copytree(small, whole)
    act(opened(whole))
    expected = settled(opened(whole))
    assert expected == (2, 1)
    for path in deaths(small, tmp_path / "copies", act, config=opened(small).config):
        seen += 1
        client = opened(path)
        assert scans(client) == before
        assert foreign_rows(path).equals(rows)
        act(client)
        act(client)
        assert settled(client) == expected
        assert scans(client) == before
        assert foreign_rows(path).equals(rows)
    assert seen * DEATHS_APART > 60


def test_ids_of_file_groups_name_the_task(real_tables: Callable[[str], Path]) -> None:
    client = opened(real_tables(TXNS))
    done = compact_if_due(lock(client), config(compact=1))
    assert done is not None
    metadata = metadata_client(client)
    paths = {stat.file_id: stat.path for stat in metadata.read_commit(done).stats}
    expected = f"record_index/record-index-0003-0_3-0-0_{done.requested_time}.hfile"
    assert paths[FileId("record-index-0003-0")] == expected
