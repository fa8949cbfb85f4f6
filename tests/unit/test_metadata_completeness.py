"""What was lost of a metadata table, or cut off, is noticed: file groups, and blocks of logs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.actions.archive import archive
from hudi_core.actions.archive_plan import ArchiveRules, plan_archive
from hudi_core.config.write import WriteConfig
from hudi_core.errors import CorruptMetadataError
from hudi_core.log_format import BlockType, find_log_blocks
from hudi_core.metadata import recorded
from hudi_core.metadata.completeness import require_complete
from hudi_core.metadata.groups import GroupFile, ListedGroup
from hudi_core.metadata.partition_types import RECORD_INDEX, shards_of
from hudi_core.metadata.table import metadata_client
from hudi_core.metadata.validator import validate
from hudi_core.model.commit import CommitMetadata, WriteStat
from hudi_core.model.files import BaseFileName, FileId
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.services.metadata import MetadataOperator, look_up_keys
from hudi_core.services.opening import open_table
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.table_lock import table_lock
from tests.tables import new_table

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
GROUPS = "hoodie.metadata.record.index.min.filegroup.count"
OPTIONS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    GROUPS: "4",
}
COMPACTED = {**OPTIONS, "hoodie.metadata.compact.max.delta.commits": "2"}
KEYS = [f"k{number}" for number in range(60)]
IN_LAST = [key for key in KEYS if shards_of(pa.array([key]), 4)[0] == 3]
ELSEWHERE = [key for key in KEYS if key not in IN_LAST]


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every test read what instants recorded, as a process does that just began."""
    monkeypatch.setattr(recorded, "_known", {})


def rows(keys: list[str]) -> pa.Table:
    return pa.table({"id": keys, "v": [0] * len(keys)}, schema=SCHEMA)


def create(path: Path, keys: list[str], options: dict[str, str] = OPTIONS) -> hudi.Table:
    table = new_table(path, SCHEMA, options)
    table.upsert(rows(keys))
    return table


def operator(path: Path, **options: str) -> MetadataOperator:
    given = {**OPTIONS, **options}
    opened, config = open_table(str(path), given), WriteConfig.from_options(given)
    return MetadataOperator(opened, table_lock(opened, config), config)


def lose_last_group(path: Path) -> None:
    files = list((path / ".hoodie/metadata/record_index").glob("*record-index-0003-0*"))
    assert files
    for file in files:
        file.unlink()


def check_loss_is_noticed(path: Path) -> None:
    for keys in (["k0"], [IN_LAST[0]]):
        with pytest.raises(
            CorruptMetadataError, match=r"record.index.*0003.*table repair --metadata"
        ):
            look_up_keys(open_table(str(path), {}).client, keys)
    before = sorted(file.name for file in (path / ".hoodie/metadata/record_index").iterdir())
    with pytest.raises(CorruptMetadataError, match=r"record.index.*0003.*table repair --metadata"):
        hudi.Table.open(str(path), OPTIONS).upsert(rows(["new", *IN_LAST[:3]]))
    assert sorted(file.name for file in (path / ".hoodie/metadata/record_index").iterdir()) == (
        before
    )
    # as the error says
    operator(path).delete()
    operator(path).create()
    client = open_table(str(path), {}).client
    assert validate(client).is_valid
    assert look_up_keys(client, IN_LAST[:1]).keys() <= {IN_LAST[0]}


@pytest.mark.parametrize("keys", [KEYS, ELSEWHERE], ids=["full", "empty"])
def test_the_last_file_group_of_a_new_partition(keys: list[str], tmp_path: Path) -> None:
    create(tmp_path / "t", keys)
    lose_last_group(tmp_path / "t")
    check_loss_is_noticed(tmp_path / "t")


@pytest.mark.parametrize("keys", [KEYS, ELSEWHERE], ids=["full", "empty"])
def test_the_last_file_group_of_a_partition_that_was_added(keys: list[str], tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path, keys)
    operator(path).drop(RECORD_INDEX)
    operator(path).index(RECORD_INDEX)
    lose_last_group(path)
    check_loss_is_noticed(path)


def test_the_last_file_group_that_compactions_had_nothing_to_do_for(tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path, KEYS, COMPACTED)
    for number in range(6):
        hudi.Table.open(str(path), COMPACTED).upsert(rows([ELSEWHERE[number], f"n{number}"]))
    bases = {
        file.name.rsplit("_", 1)[1]
        for file in (path / ".hoodie/metadata/record_index").glob("record-index-*.hfile")
    }
    assert len(bases) > 2
    lose_last_group(path)
    check_loss_is_noticed(path)


def stated(path: Path, action: Action) -> list[dict[str, dict[str, int]]]:
    """What instants of the metadata table state, in the order of their times."""
    metadata = metadata_client(open_table(str(path), {}).client)
    writes = metadata.timeline().completed().of_actions(action)
    bodies = [metadata.read_commit(one).extra_metadata for one in writes]
    return [json.loads(body[recorded.SHARDS]) for body in bodies if recorded.SHARDS in body]


def test_builds_and_compactions_state_all_file_groups(tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path, KEYS, {**COMPACTED, "hoodie.metadata.compact.max.delta.commits": "6"})
    parts = ["column_stats", "files", RECORD_INDEX]
    assert sorted(one for made in stated(path, Action.DELTACOMMIT) for one in made) == parts
    hudi.Table.open(str(path), COMPACTED).upsert(rows(KEYS[:1]))  # no key is new: no record either
    (compaction,) = stated(path, Action.COMMIT)
    assert sorted(compaction) == parts
    hudi.Table.open(str(path), COMPACTED).upsert(rows(KEYS[:1]))
    hudi.Table.open(str(path), COMPACTED).upsert(rows(KEYS[:1]))
    _, compaction = stated(path, Action.COMMIT)
    folder = path / ".hoodie/metadata/record_index"
    newest = sorted(folder.glob("record-index-*.hfile"), key=lambda one: one.name[-23:])[-4:]
    assert compaction[RECORD_INDEX] == {one.name: one.stat().st_size for one in newest}
    assert compaction["files"] == {}


def test_file_groups_that_only_an_archived_compaction_wrote(tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = {
        **COMPACTED,
        "hoodie.metadata.keep.min.commits": "2",
        "hoodie.metadata.keep.max.commits": "3",
    }
    create(path, KEYS, options)
    for _ in range(6):
        hudi.Table.open(str(path), options).upsert(rows(KEYS[:1]))
        client = open_table(str(path), options).client
        archive(client, plan_archive(client.timeline(), ArchiveRules(2, 3), None))
    folder = path / ".hoodie/metadata"
    (wrote,) = {one.name[-23:-6] for one in folder.glob("record_index/record-index-*.hfile")}
    assert not [*folder.glob(f".hoodie/timeline/{wrote}*")]
    lose_last_group(path)
    check_loss_is_noticed(path)


@pytest.mark.parametrize("partition", [RECORD_INDEX, "column_stats"])
def test_the_base_file_below_logs_that_came_later(partition: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path, KEYS, COMPACTED)
    hudi.Table.open(str(path), COMPACTED).upsert(rows(KEYS))
    hudi.Table.open(str(path), OPTIONS).upsert(rows([f"n{number}" for number in range(40)]))
    folder = path / ".hoodie/metadata" / partition
    newest = max(folder.glob("*-0001-0_*.hfile"), key=lambda one: one.name[-23:])
    assert [*folder.glob(".*-0001-0_*.log.*")]
    for base in folder.glob("*-0001-0_*.hfile"):
        base.unlink()
    with pytest.raises(
        CorruptMetadataError, match=r"it is missing.*table repair --metadata"
    ) as raised:
        validate(open_table(str(path), {}).client)
    assert raised.value.path == str(newest)


def test_a_table_without_statements(tmp_path: Path) -> None:
    """As earlier releases and other engines write them: what commits wrote must be there."""
    path = tmp_path / "t"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(recorded, "SHARDS", "nobody.knows")
        create(path, KEYS, COMPACTED)
        for number in range(4):
            hudi.Table.open(str(path), COMPACTED).upsert(rows([ELSEWHERE[number], f"n{number}"]))
    recorded._known.clear()
    assert not stated(path, Action.COMMIT)
    shutil.copytree(path, tmp_path / "kept")
    assert len(look_up_keys(open_table(str(path), {}).client, KEYS)) == 60
    lose_last_group(path)
    check_loss_is_noticed(path)

    shutil.rmtree(path)
    shutil.copytree(tmp_path / "kept", path)
    recorded._known.clear()
    for _ in range(2):
        hudi.Table.open(str(path), COMPACTED).upsert(rows(["later", *KEYS[:20]]))
    assert stated(path, Action.COMMIT)
    assert validate(open_table(str(path), {}).client).is_valid


def test_a_partition_built_anew_has_other_file_groups(tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path, KEYS)
    hudi.Table.open(str(path), OPTIONS).upsert(rows(["later", *KEYS[:20]]))
    for groups in ("2", "4", "1"):
        operator(path).drop(RECORD_INDEX)
        operator(path, **{GROUPS: groups}).index(RECORD_INDEX)
        found = look_up_keys(open_table(str(path), {}).client, [*KEYS, "later"])
        assert len(found) == 61
        for number in range(4):
            key = f"{groups}-{number}"
            hudi.Table.open(str(path), COMPACTED).upsert(rows([key]))
            assert look_up_keys(open_table(str(path), {}).client, [key])
        assert validate(open_table(str(path), {}).client).is_valid


def test_an_empty_partition_built_anew(tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path, KEYS[:1])
    hudi.Table.open(str(path), OPTIONS).upsert(rows(KEYS))
    hudi.Table.open(str(path), OPTIONS).delete(rows(KEYS))
    operator(path).drop(RECORD_INDEX)
    operator(path).index(RECORD_INDEX)
    assert look_up_keys(open_table(str(path), {}).client, KEYS) == {}
    hudi.Table.open(str(path), OPTIONS).upsert(rows(KEYS))
    assert len(look_up_keys(open_table(str(path), {}).client, KEYS)) == 60


def test_a_log_cut_off_between_two_blocks(tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path, KEYS)
    hudi.Table.open(str(path), OPTIONS).insert_overwrite_table(rows([*KEYS[:20], "more"]))
    logs = sorted((path / ".hoodie/metadata/record_index").glob(".record-index-*.log.*"))
    cut = 0
    for log in logs:
        data = log.read_bytes()
        blocks = list(find_log_blocks(lambda at, size: data[at : at + size], len(data), str(log)))  # noqa: B023 - used at once
        if [one.type for one in blocks] != [BlockType.HFILE, BlockType.DELETE]:
            continue
        cut += 1
        copy = tmp_path / f"copy-{cut}"
        shutil.copytree(path, copy)
        # a block ends with its own size, behind what it holds
        size = int.from_bytes(data[6:14], "big") + 14
        (copy / log.relative_to(path)).write_bytes(data[:size])
        table = hudi.Table.open(str(copy), OPTIONS)
        assert table.to_arrow().num_rows == 21
        with pytest.raises(
            CorruptMetadataError, match=r"log.*bytes.*table repair --metadata"
        ) as raised:
            look_up_keys(open_table(str(copy), {}).client, KEYS)
        assert raised.value.path == str(copy / log.relative_to(path))
    assert cut


@pytest.mark.parametrize("is_built_anew", [True, False])
def test_a_partition_built_anew_is_not_what_was_before(is_built_anew: bool) -> None:
    times = [InstantTime("20260101000000000"), InstantTime("20260102000000000")]
    path = f"{RECORD_INDEX}/.record-index-a-0000-0_{times[0]}.log.1_0-0-0"
    stat = WriteStat(FileId("record-index-a-0000-0"), path, partition_path=RECORD_INDEX)
    anew = recorded.BULK_INSERT if is_built_anew else "UPSERT_PREPPED"
    bodies = {
        times[0]: CommitMetadata({RECORD_INDEX: (stat,)}, operation_type="UPSERT_PREPPED"),
        times[1]: CommitMetadata(operation_type=anew),
    }
    timeline = Timeline(
        tuple(Instant(time, Action.DELTACOMMIT, State.COMPLETED, time) for time in times)
    )

    def refuse(counted: set[InstantTime]) -> None:
        records = recorded.CommitRecords(
            f"root-{is_built_anew}",
            timeline,
            counted.__contains__,
            lambda write: bodies[write.requested_time],
        )
        require_complete(RECORD_INDEX, (), records)

    if is_built_anew:
        refuse({*times})
    else:
        with pytest.raises(CorruptMetadataError, match="record-index-a-0000-0 is missing"):
            refuse({*times})
    # what is not complete yet, or was undone, has made nothing
    refuse({times[1]})


@pytest.mark.parametrize("suffix", ["001", "001006"])
def test_compactions_of_hudi_before_version_8_merge_what_was_requested_before(suffix: str) -> None:
    """The deltacommit is complete later than the time of the compaction that merged it."""
    begun, done = InstantTime("20260101000000000"), InstantTime("20260101000007000")
    merged = InstantTime(begun + suffix)
    group = FileId("record-index-0000-0")
    log = f"{RECORD_INDEX}/.{group}_00000000000000013.log.1_0-0-0"
    made = f"{RECORD_INDEX}/{group}_0-0-0_{merged}.hfile"
    bodies = {
        time: CommitMetadata({RECORD_INDEX: (WriteStat(group, path, partition_path=RECORD_INDEX),)})
        for time, path in ((begun, log), (merged, made))
    }
    timeline = Timeline(
        (
            Instant(begun, Action.DELTACOMMIT, State.COMPLETED, done),
            Instant(merged, Action.COMMIT, State.COMPLETED, InstantTime("20260101000008000")),
        )
    )
    records = recorded.CommitRecords(
        f"root-{suffix}", timeline, lambda _: True, lambda write: bodies[write.requested_time]
    )
    name = BaseFileName.parse(made.rpartition("/")[2])
    assert name is not None
    files = {str(name): GroupFile(name.instant, 1, is_log=False)}
    require_complete(RECORD_INDEX, [ListedGroup(RECORD_INDEX, group, files)], records)
    with pytest.raises(CorruptMetadataError, match="is missing"):
        require_complete(RECORD_INDEX, [ListedGroup(RECORD_INDEX, group, {})], records)


class Forgetful(dict[tuple[str, str, str], recorded.RecordedFiles]):
    """What is known while other threads make room in it."""

    def __setitem__(self, key: tuple[str, str, str], value: recorded.RecordedFiles) -> None:
        super().__setitem__(key, value)
        self.clear()


def test_what_another_thread_forgets_is_known_to_who_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "_known", Forgetful())
    path = tmp_path / "t"
    create(path, KEYS)
    assert IN_LAST[0] in look_up_keys(open_table(str(path), {}).client, IN_LAST[:1])
