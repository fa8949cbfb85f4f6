"""Metadata tables made, deleted, and given or bereft of a partition, dying at any step of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.actions.compaction import pending_compactions
from hudi_core.config.write import WriteConfig
from hudi_core.errors import CorruptMetadataError, TableServiceError, UnsupportedTableError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.maintenance.validator import validate
from hudi_core.metadata.partition_types import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
)
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.table import StoredPartitions, metadata_client
from hudi_core.model.actions import IndexPartitionInfo, IndexPlan
from hudi_core.model.instant import Action, Instant, State
from hudi_core.services.metadata import (
    MetadataOperator,
    list_files,
    lister_of,
    look_up_keys,
    metadata_stats,
    require_metadata,
)
from hudi_core.services.opening import open_table
from hudi_core.storage.properties_file import update_properties
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.clock import TimelineClock
from hudi_core.timeline.serde import decode_index_commit, decode_index_plan, encode
from hudi_core.txn.table_lock import lock_at
from tests.foreign import by_hudi_rs
from tests.hudi_tables import VERSION_6
from tests.samples import IS_WHOLE, TAKES_A_THIRD
from tests.tables import SCHEMA, copied, new_table
from tests.unit.mortal_tables import deaths

OPTIONS = {
    "hoodie.metadata.enable": "false",
    "hoodie.metadata.index.column.stats.file.group.count": "1",
    "hoodie.metadata.index.bloom.filter.file.group.count": "1",
}
ENABLED = {**OPTIONS, "hoodie.metadata.enable": "true"}


def part_rows(*parts: str, ts: int = 1) -> pa.Table:
    found = [{"id": f"{part}{n}", "part": part, "ts": ts + n} for part in parts for n in range(2)]
    return pa.Table.from_pylist(found, SCHEMA)


def made_table(path: Path, options: dict[str, str] = OPTIONS) -> hudi.Table:
    return copied(path, written_twice, options)


def written_twice(path: Path, options: dict[str, str]) -> hudi.Table:
    table = new_table(path, SCHEMA, options)
    table.upsert(part_rows("x", "y"))
    table.upsert(part_rows("x", ts=5))
    return table


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Folder of a table without a metadata table."""
    return Path(made_table(tmp_path / "t").path)


@pytest.fixture
def enabled(tmp_path: Path) -> Path:
    """Folder of a table with one."""
    return Path(made_table(tmp_path / "t", ENABLED).path)


def operator(client: TableMetaClient) -> MetadataOperator:
    config = WriteConfig.from_options(OPTIONS)
    lock = lock_at(client.base_path, client.storage, config)
    host = open_table(client.base_path, {}).host
    return MetadataOperator(OpenTable(client, host), lock, config)


def opened(path: Path, options: dict[str, str] = OPTIONS) -> TableMetaClient:
    return open_table(str(path), options).client


def foreign_rows(path: Path) -> list[tuple[str, int]]:
    return sorted((row["id"], row["ts"]) for row in by_hudi_rs(path))


def own_rows(path: Path) -> list[tuple[str, int]]:
    found = hudi.Table.open(str(path)).to_arrow().to_pylist()
    return sorted((row["id"], row["ts"]) for row in found)


EXPECTED = [("x0", 5), ("x1", 6), ("y0", 1), ("y1", 2)]


def require_right(path: Path) -> None:
    assert own_rows(path) == foreign_rows(path) == EXPECTED


def test_create_delete_and_back(path: Path) -> None:
    made = operator(opened(path)).create()
    assert made == (COLUMN_STATS, FILES, PARTITION_STATS)
    assert validate(opened(path)).is_valid
    require_right(path)
    with pytest.raises(TableServiceError, match="already"):
        operator(opened(path)).create()
    kept = operator(opened(path)).delete(backup=True)
    assert kept is not None
    assert kept.startswith(".hoodie/.metadata_")
    assert not (path / ".hoodie/metadata").exists()
    assert StoredPartitions.of(opened(path).config).complete == ()
    require_right(path)
    with pytest.raises(TableServiceError, match="no metadata table"):
        operator(opened(path)).delete()
    # the backup is a whole metadata table
    (path / kept).rename(path / ".hoodie/metadata")
    names = {"hoodie.table.metadata.partitions": ",".join(made)}
    update_properties(opened(path).storage, names)
    assert validate(opened(path)).is_valid
    assert operator(opened(path)).delete() is None
    assert not list((path / ".hoodie").glob(".metadata*"))


def test_a_deliberate_lie_shows_who_lists_from_it(path: Path) -> None:
    operator(opened(path)).create()
    hudi.Table.open(str(path), OPTIONS).upsert(part_rows("z"))
    last = metadata_client(opened(path)).timeline().completed_writes()[-1]
    [log] = (path / ".hoodie/metadata/files").glob(f".*{last.requested_time}*")
    log.unlink()
    assert foreign_rows(path) == EXPECTED
    with pytest.raises(CorruptMetadataError, match="hudi table repair --metadata"):
        own_rows(path)
    operator(opened(path)).delete()
    operator(opened(path)).create()
    assert len(foreign_rows(path)) == len(own_rows(path)) == 6


def test_init_finishes_what_was_left(path: Path) -> None:
    with pytest.raises(TableServiceError, match="no metadata table"):
        operator(opened(path)).bring_to_date()
    operator(opened(path)).create()
    more = {**OPTIONS, "hoodie.metadata.index.bloom.filter.enable": "true"}
    more["hoodie.metadata.compact.max.delta.commits"] = "1"
    partitions = operator(opened(path, more)).bring_to_date()
    assert partitions == (BLOOM_FILTERS, COLUMN_STATS, FILES, PARTITION_STATS)
    timeline = metadata_client(opened(path)).timeline()
    assert not pending_compactions(timeline)
    assert len(timeline.completed().of_actions(Action.COMMIT)) == 1
    assert validate(opened(path)).is_valid
    require_right(path)


def test_a_partition_comes_and_goes_without_the_others(enabled: Path) -> None:

    def others() -> dict[str, bytes]:
        files = (enabled / ".hoodie/metadata").rglob("*")
        return {
            str(one): one.read_bytes()
            for one in files
            if one.is_file() and "bloom" not in str(one) and "timeline" not in str(one)
        }

    before = others()
    done = operator(opened(enabled)).index(BLOOM_FILTERS)
    assert (done.action, done.is_completed) == (Action.INDEXING, True)
    assert others() == before
    client = opened(enabled)
    plan = decode_index_plan(client.active.read(done.to(State.REQUESTED)), "x")
    body = decode_index_commit(client.active.read(done), "x")
    assert plan.index_partition_infos == body.index_partition_infos
    [info] = body.index_partition_infos or ()
    last = client.timeline().completed_writes()[-1]
    assert (info.metadata_partition_path, info.index_upto_instant) == (
        BLOOM_FILTERS,
        last.requested_time,
    )
    report = validate(client)
    assert (report.is_valid, report.checked[BLOOM_FILTERS]) == (True, 3)
    with pytest.raises(TableServiceError, match="already"):
        operator(client).index(BLOOM_FILTERS)
    hudi.Table.open(str(enabled), OPTIONS).upsert(part_rows("x", ts=5))
    assert validate(opened(enabled)).checked[BLOOM_FILTERS] == 4
    operator(opened(enabled)).drop(BLOOM_FILTERS)
    assert BLOOM_FILTERS not in StoredPartitions.of(opened(enabled).config).complete
    assert not (enabled / ".hoodie/metadata" / BLOOM_FILTERS).exists()
    require_right(enabled)
    # commits to the first one are no part of the second
    operator(opened(enabled)).index(BLOOM_FILTERS)
    assert validate(opened(enabled)).checked[BLOOM_FILTERS] == 4
    with pytest.raises(TableServiceError, match="no partition record_index"):
        operator(opened(enabled)).drop(RECORD_INDEX)
    with pytest.raises(TableServiceError, match="hudi metadata delete"):
        operator(opened(enabled)).drop(FILES)
    require_right(enabled)


def test_a_dropped_partition_comes_back_with_the_next_write_that_asks_for_it(
    enabled: Path,
) -> None:
    operator(opened(enabled)).drop(COLUMN_STATS)
    assert COLUMN_STATS not in read_definitions(opened(enabled).storage, opened(enabled).config).raw
    hudi.Table.open(str(enabled), OPTIONS).upsert(part_rows("x", ts=5))
    assert COLUMN_STATS not in StoredPartitions.of(opened(enabled).config).complete
    hudi.Table.open(str(enabled), ENABLED).upsert(part_rows("x", ts=5))
    assert validate(opened(enabled)).checked[COLUMN_STATS] > 0
    assert validate(opened(enabled)).is_valid
    require_right(enabled)


def test_secondary_indexes_need_a_column_and_keep_the_record_index(enabled: Path) -> None:
    name = "secondary_index_of_ts"
    with pytest.raises(TableServiceError, match="needs a column"):
        operator(opened(enabled)).index(name)
    for wrong in ("secondary_index_", "expr_index_", "vector_index_a", "a"):
        with pytest.raises(TableServiceError, match="cannot have"):
            operator(opened(enabled)).index(wrong, "ts")
    with pytest.raises(CorruptMetadataError, match="x"):
        operator(opened(enabled)).index("secondary_index_../x", "ts")
    operator(opened(enabled)).index(RECORD_INDEX)
    operator(opened(enabled)).index(name, "ts")
    report = validate(opened(enabled))
    assert (report.is_valid, report.checked[name]) == (True, 4)
    with pytest.raises(TableServiceError, match=name):
        operator(opened(enabled)).drop(RECORD_INDEX)
    operator(opened(enabled)).drop(name)
    operator(opened(enabled)).drop(RECORD_INDEX)
    require_right(enabled)


def test_another_engines_indexing_is_left_to_it(enabled: Path) -> None:
    client = opened(enabled)
    plan = IndexPlan(index_partition_infos=(IndexPartitionInfo(1, RECORD_INDEX, None),))
    time = TimelineClock(client.active).next_time()
    client.active.create_requested(Instant(time, Action.INDEXING, State.REQUESTED), encode(plan))
    with pytest.raises(UnsupportedTableError, match="indexing"):
        operator(client).index(BLOOM_FILTERS)
    with pytest.raises(UnsupportedTableError, match="indexing"):
        hudi.Table.open(str(enabled), OPTIONS).upsert(part_rows("x", ts=5))


def test_an_indexing_of_what_is_no_index_is_refused(enabled: Path) -> None:
    client = opened(enabled)
    for name in (FILES, "../..", "", ".hoodie"):
        info = IndexPartitionInfo(1, name, None, {"hudi.core.indexing": "drop"})
        time = TimelineClock(client.active).next_time()
        forged = Instant(time, Action.INDEXING, State.REQUESTED)
        client.active.create_requested(forged, encode(IndexPlan(index_partition_infos=(info,))))
        with pytest.raises(CorruptMetadataError, match="Nothing was changed"):
            hudi.Table.open(str(enabled), OPTIONS).upsert(part_rows("x", ts=5))
        client.active.delete(forged)
    require_right(enabled)


def test_looking(path: Path) -> None:
    stored, is_metadata = list_files(opened(path), "x")
    assert (is_metadata, lister_of(opened(path)).is_metadata) == (False, False)
    with pytest.raises(TableServiceError, match="no metadata table"):
        metadata_stats(opened(path))
    operator(opened(path)).create()
    listed, is_metadata = list_files(opened(path), "x/")
    assert is_metadata
    sizes = {one.name: one.size for one in stored if one.name.endswith(".parquet")}
    assert {one.name: one.size for one in listed} == sizes
    with pytest.raises(TableServiceError, match="no partition 'w'"):
        list_files(opened(path), "w")
    found = metadata_stats(opened(path))
    assert (found.partition_count, found.last_compaction, found.is_in_sync) == (2, None, True)
    assert found.partitions[FILES].base_files == 1
    last = metadata_client(opened(path)).timeline()
    assert last.last is not None
    with pytest.raises(TableServiceError, match="no record index"):
        look_up_keys(opened(path), ["x0"])
    operator(opened(path)).index(RECORD_INDEX)
    located = look_up_keys(opened(path), ["x0", "none"])
    assert {key: [one.partition_name for one in some] for key, some in located.items()} == {
        "x0": ["x"]
    }
    assert f"{located['x0'][0].file_id}_" in listed[0].name
    assert look_up_keys(opened(path), ["x0"], "x") == located
    assert look_up_keys(opened(path), ["x0"], "y") == {}
    hudi.Table.open(str(path), OPTIONS).upsert(part_rows("y"))
    metadata = metadata_client(opened(path))
    metadata.active.delete(metadata.timeline().completed_writes()[-1])
    stale = metadata_stats(opened(path))
    assert (stale.partition_count, stale.is_in_sync) == (2, False)


def test_metadata_tables_of_old_tables_are_not_asked(real_tables: Callable[[str], Path]) -> None:
    path = real_tables(VERSION_6[1])
    properties = path / ".hoodie/hoodie.properties"
    said = "hoodie.table.metadata.partitions=files"
    properties.write_text(properties.read_text() + said + "\n")
    client = opened(path)
    assert StoredPartitions.of(client.config).complete == (FILES,)
    listing = lister_of(client)
    assert (listing.is_metadata, len(listing.lister.list_partitions())) == (False, 3)
    for ask in (metadata_stats, require_metadata, MetadataSnapshot.open):
        with pytest.raises(UnsupportedTableError, match="version 6, whose metadata tables are not"):
            ask(client)
    validation = hudi.Table.open(str(path)).validate()
    assert validation.skipped["metadata table"] == "that of version 6 is not read"
    assert validation.is_valid


# --- dying
APART = 1 if IS_WHOLE else 15 if TAKES_A_THIRD else 7
"""How many steps lie between two deaths of one way; odd, as every other death is tried again."""


def create(client: TableMetaClient) -> None:
    if FILES not in StoredPartitions.of(opened(Path(client.base_path)).config).complete:
        operator(client).create()


def delete(client: TableMetaClient) -> None:
    if any(one.is_file() for one in (Path(client.base_path) / ".hoodie/metadata").rglob("*")):
        operator(client).delete()


def index(client: TableMetaClient) -> None:
    if BLOOM_FILTERS not in StoredPartitions.of(opened(Path(client.base_path)).config).complete:
        operator(client).index(BLOOM_FILTERS)


def drop(client: TableMetaClient) -> None:
    if PARTITION_STATS in StoredPartitions.of(opened(Path(client.base_path)).config).complete:
        operator(client).drop(PARTITION_STATS)


@pytest.mark.slow
@pytest.mark.parametrize("act", [create, delete, index, drop])
def test_a_death_at_any_step_is_made_good(
    act: Callable[[TableMetaClient], None], tmp_path: Path
) -> None:
    template = tmp_path / "t"
    made_table(template, OPTIONS if act is create else ENABLED)
    config = opened(template).config
    seen = 0
    for path in deaths(template, tmp_path / "copies", act, APART, config=config, options=OPTIONS):
        seen += 1
        require_right(path)
        if seen % 2:
            # an operator tries again
            act(opened(path))
        # or the next writer comes along
        hudi.Table.open(str(path), OPTIONS).upsert(part_rows("x", ts=5))
        require_right(path)
        client = opened(path)
        assert not client.timeline().pending().instants
        if StoredPartitions.of(client.config).complete:
            assert not metadata_client(client).timeline().pending().instants
            assert validate(client).is_valid
            folders = metadata_client(client).storage.list_folders()
            assert {*folders} == {".hoodie", *StoredPartitions.of(client.config).complete}
        if seen % 2:
            partitions = StoredPartitions.of(client.config).complete
            expected = {"create": 3, "delete": 0, "index": 4, "drop": 2}
            assert len(partitions) == expected[act.__name__]
    assert seen * APART > 20


def test_the_snapshot_knows_what_was_built(enabled: Path) -> None:
    operator(opened(enabled)).index(BLOOM_FILTERS)
    snapshot = MetadataSnapshot.open(replace(opened(enabled)))
    assert {record.type for record in snapshot.scan(BLOOM_FILTERS)} == {4}
