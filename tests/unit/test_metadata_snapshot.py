"""Reading the metadata table: what counts, what a look-up costs, and what damage leads to."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.errors import CorruptMetadataError
from hudi_core.log_format.block import BlockType, HeaderKey, encode_log_block
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.hfile.writer import HFileOptions, write_hfile
from hudi_core.metadata.keys import ALL_PARTITIONS
from hudi_core.metadata.lister import MetadataLister, ValidatingLister, table_lister
from hudi_core.metadata.log.layers import GroupReader
from hudi_core.metadata.log.record_codec import RecordEncoder
from hudi_core.metadata.log.records import FileEntry, FileList, MetadataRecord, RecordType
from hudi_core.metadata.partition_types import COLUMN_STATS, FILES
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.model.files import (
    FileGroupId,
    FileId,
    FileSlice,
    FileStatus,
    LogFile,
    LogFileName,
    PartitionPath,
)
from hudi_core.model.instant_time import InstantTime
from hudi_core.storage.disk import Disk
from hudi_core.storage.posix import PosixStorage
from hudi_core.txn.heartbeat import heartbeat_path
from hudi_core.view.storage_lister import StorageLister
from tests.calls import calls_of, disk_requests
from tests.samples import sampled
from tests.tables import new_table

OPTIONS = {"hoodie.metadata.enable": "true"}
MEASURED = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.float64())])
METADATA = ".hoodie/metadata"
READS = ("read", "read_range", "list", "list_names", "head")


def spread_rows(numbers: range, partitions: int) -> pa.Table:
    return pa.table(
        {
            "id": list(numbers),
            "p": [f"p{n % partitions}" for n in numbers],
            "v": [float(n) for n in numbers],
        },
        schema=MEASURED,
    )


def create(path: Path, partitions: int = 3, writes: int = 2) -> hudi.Table:
    table = new_table(path, MEASURED, OPTIONS, partition_by="p")
    for n in range(writes):
        table.upsert(spread_rows(range(n * partitions, (n + 2) * partitions), partitions))
    return hudi.Table.open(str(path), OPTIONS)


def client_of(table: hudi.Table, **options: str) -> TableMetaClient:
    return replace(table._session.opened.client, options=options)


def another_client(table: hudi.Table) -> TableMetaClient:
    return replace(table._session.opened.client, storage=PosixStorage(table.path))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    """Give a table nobody changes."""
    return create(tmp_path_factory.mktemp("made") / "t")


@pytest.fixture
def copy(made: hudi.Table, tmp_path: Path) -> Path:
    """Give the test its own copy of that table."""
    shutil.copytree(made.path, tmp_path / "t")
    return tmp_path / "t"


def ids(table: hudi.Table, row_filter: Any = None) -> list[int]:
    found: list[int] = table.to_arrow(["id"], row_filter)["id"].to_pylist()
    return sorted(found)


# --- cost
def test_opening_costs_the_same_for_any_number_of_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests, calls = disk_requests(monkeypatch, *READS), {}
    for partitions in (1, 5, 40):
        table = create(tmp_path / str(partitions), partitions)
        requests.clear()
        lister = table_lister(another_client(table))
        found = lister.list_files(lister.list_partitions())
        assert len(found) == partitions
        calls[partitions] = [kind for kind, _ in requests]
        listed = [path for kind, path in requests if kind.startswith("list")]
        assert not [path for path in listed if not path or "p0" in path]
    assert calls[1] == calls[5] == calls[40]
    assert (
        sum(kind.startswith("list") for kind in calls[40]) == 3
    )  # two timelines and one partition
    assert len(calls[40]) < 10


def test_a_query_opens_one_snapshot(made: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = calls_of(monkeypatch, MetadataSnapshot, "open")
    assert ids(made, (pc.field("v") > 2) & (pc.field("id") < 7)) == [3, 4, 5, 6]
    assert len(opened) == 1


def test_a_lookup_reads_the_blocks_it_touches(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The base file of this partition has hundreds of blocks."""
    names = [f"p{n:06d}" for n in range(40_000)]
    record = MetadataRecord(
        ALL_PARTITIONS, RecordType.ALL_PARTITIONS, FileList({name: FileEntry(0) for name in names})
    )
    files = FileList(
        {f"{n:036d}-0_0-0-0_20260101000000000.parquet": FileEntry(9) for n in range(6)}
    )
    each = [MetadataRecord(name, RecordType.FILES, files) for name in names]
    base = next((copy / METADATA / FILES).glob("*.hfile"))
    encoder = RecordEncoder(base.name)
    entries = [encoder.encode(one) for one in [record, *each]]
    base.write_bytes(
        write_hfile(entries, HFileOptions(encoder.schema, create_time_ms=0, base_file=True))
    )
    size = base.stat().st_size
    requests = disk_requests(monkeypatch, *READS)
    ranges = calls_of(monkeypatch, PosixStorage, "read_range")
    snapshot = MetadataSnapshot.open(another_client(hudi.Table.open(str(copy), OPTIONS)))

    found = snapshot.lookup(FILES, [names[77]])
    first, reads = bytes_of(ranges), len(requests)
    assert found[names[77]].payload == files
    found = snapshot.lookup(FILES, [names[200], names[20_000], "p000201x"])
    assert set(found) == {names[200], names[20_000]}
    assert size > 300_000
    # the end of the file was read once, and of each block that is asked for its compressed bytes
    assert first < size // 4
    assert bytes_of(ranges) - first < 10_000
    assert len(requests) - reads == 2


def bytes_of(ranges: Sequence[tuple[Any, ...]]) -> int:
    return sum(length for *_, length in ranges)


def test_small_files_are_read_once(made: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = disk_requests(monkeypatch, *READS)
    snapshot = MetadataSnapshot.open(another_client(made))
    snapshot.lookup(FILES, ["p0"])
    before = len(requests)
    snapshot.lookup(FILES, ["p1", ALL_PARTITIONS])
    assert list(snapshot.scan(FILES))
    assert len(requests) == before > 0


def test_opening_writes_nothing(copy: Path) -> None:
    """Nor does a query with a filter: on a disk that refuses, and by every file of the table."""

    class ReadOnly(Disk):
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"{name} on a read-only disk")

    def state() -> list[tuple[str, int, int]]:
        found = [(str(path), path.stat()) for path in sorted(copy.rglob("*"))]
        return [(path, status.st_mtime_ns, status.st_size) for path, status in found]

    before = state()
    table = hudi.Table.open(str(copy), OPTIONS)
    client = replace(table._session.opened.client, storage=PosixStorage(str(copy), disk=ReadOnly()))
    snapshot = MetadataSnapshot.open(client)
    for partition in snapshot.partitions:
        assert list(snapshot.scan(partition))
    lister = table_lister(client)
    assert lister.list_files(lister.list_partitions())
    assert ids(table, [("v", ">", 4)]) == [5, 6, 7, 8]
    assert state() == before


# --- what is seen
def storage_lister(client: TableMetaClient) -> StorageLister:
    return StorageLister(client.storage, client.config.is_partitioned)


def test_listing_equals_the_storage(made: hudi.Table) -> None:
    client = client_of(made)
    ours, theirs = table_lister(client), storage_lister(client)
    assert isinstance(ours, MetadataLister)
    assert ours.list_partitions() == theirs.list_partitions()

    def sizes(lister: Any) -> dict[str, int]:
        listed = lister.list_files(lister.list_partitions())
        return {file.path: file.size for files in listed.values() for file in files}

    stored = {path: n for path, n in sizes(theirs).items() if path.endswith(".parquet")}
    assert sizes(ours) == stored
    assert ours.list_files([PartitionPath("not there")]) == {"not there": []}


def test_a_table_without_partitions(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = new_table(path, MEASURED, OPTIONS)
    assert hudi.Table.open(path, OPTIONS).to_arrow().num_rows == 0
    table.insert(spread_rows(range(4), 2))
    table = hudi.Table.open(path, OPTIONS)
    lister = table_lister(client_of(table))
    assert isinstance(lister, MetadataLister)
    assert lister.list_partitions() == [""]
    assert len(lister.list_files([PartitionPath("")])[PartitionPath("")]) == 1
    assert ids(table, [("v", "=", 3.0)]) == [3]
    assert ids(table, [("v", "=", 30.0)]) == []


def test_what_is_ahead_of_the_table_is_not_seen(copy: Path) -> None:
    """A writer died between the two completions: rows and ranges are those from before it."""
    table = hudi.Table.open(str(copy), OPTIONS)
    last = table._session.opened.client.timeline().completed_writes()[-1]
    (copy / table._session.opened.client.active.path(last)).unlink()
    sign = copy / heartbeat_path(last.requested_time)  # which one that has completed removes
    sign.parent.mkdir(exist_ok=True)
    sign.touch()

    table = hudi.Table.open(str(copy), OPTIONS)

    assert ids(table) == list(range(6))
    assert ids(table, [("v", ">=", 6.0)]) == []
    client = client_of(table)
    lister = table_lister(client)
    named = [
        file.name
        for files in lister.list_files(lister.list_partitions()).values()
        for file in files
    ]
    assert not [name for name in named if last.requested_time in name]
    assert [
        name
        for files in storage_lister(client).list_files([PartitionPath("p0")]).values()
        for name in [f.name for f in files]
        if last.requested_time in name
    ]


def test_what_was_begun_after_the_timeline_was_read_is_not_seen(made: hudi.Table) -> None:
    client = client_of(made)
    whole = client.timeline()
    first = whole.completed_writes()[0]
    earlier = replace(
        whole, instants=tuple(i for i in whole.instants if i.requested_time <= first.requested_time)
    )
    lister = MetadataLister(client.seeing(earlier))
    files = lister.list_files(lister.list_partitions())
    assert all(first.requested_time in file.name for some in files.values() for file in some)


def test_the_session_decides_who_lists(made: hudi.Table) -> None:
    enable, validate = "hoodie.metadata.enable", "hoodie.metadata.validate"
    assert isinstance(table_lister(client_of(made)), MetadataLister)
    assert isinstance(table_lister(client_of(made, **{enable: "true"})), MetadataLister)
    assert isinstance(table_lister(client_of(made, **{enable: "false"})), StorageLister)
    assert isinstance(table_lister(client_of(made, **{validate: "true"})), ValidatingLister)
    without = replace(made.config, raw={**made.config.raw, "hoodie.table.metadata.partitions": ""})
    assert isinstance(table_lister(replace(client_of(made), config=without)), StorageLister)


def test_validation_tells_every_difference_and_answers_from_the_storage(
    copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = hudi.Table.open(str(copy), {**OPTIONS, "hoodie.metadata.validate": "true"})
    lister = table._session.opened.lister()
    assert isinstance(lister, ValidatingLister)
    lister.list_files(lister.list_partitions())
    assert lister.differences == ()

    kept, lost, grown = (max((copy / name).glob("*.parquet")) for name in ("p0", "p1", "p2"))
    shutil.copy(kept, kept.with_name(f"{'1' * 36}-0{kept.name[kept.name.index('_') :]}"))
    lost.unlink()
    grown.write_bytes(grown.read_bytes() + b"!")
    lister = table._session.opened.lister()
    assert isinstance(lister, ValidatingLister)
    listed = lister.list_files(lister.list_partitions())

    assert len(lister.differences) == 3
    found = [(one.found is None, one.expected is None) for one in lister.differences]
    assert found == [(True, False), (False, True), (False, False)]
    assert lost.name in lister.differences[1].subject
    assert len([r for r in caplog.records if "metadata table of" in r.message]) == 3
    assert lost.name not in {file.name for file in listed[PartitionPath("p1")]}


# --- damage
def metadata_files(path: Path) -> list[Path]:
    folder = path / METADATA
    return sorted(
        file
        for file in folder.rglob("*")
        if file.is_file() and file.name != ".hoodie_partition_metadata"
    )


def test_every_file_that_is_gone_or_damaged_is_an_error_and_never_other_rows(
    made: hudi.Table, tmp_path: Path
) -> None:
    """Files that a reader does not need may go: requested and inflight files, init logs."""
    harmless: list[tuple[str, str]] = []
    caught: list[tuple[str, str, str]] = []
    right = ids(made)
    for number, original in enumerate(metadata_files(Path(made.path))):
        name = original.relative_to(made.path)
        content = original.read_bytes()
        for damage in sampled(("gone", "half", "empty", "noise"), 2, number):
            path = tmp_path / f"{number}-{damage}"
            shutil.copytree(made.path, path)
            if damage == "gone":
                (path / name).unlink()
            else:
                half = content[: len(content) // 2]
                changed = {"half": half, "empty": b"", "noise": half + b"\xa5" * len(half)}[damage]
                if changed == content:
                    continue
                (path / name).write_bytes(changed)
            try:
                table = hudi.Table.open(str(path), OPTIONS)
                assert ids(table) == right, name
                assert ids(table, [("v", ">", 4.0)]) == [n for n in right if n > 4], name
                harmless.append((original.name, damage))
            except CorruptMetadataError as error:
                caught.append((original.name, damage, str(error)))
            shutil.rmtree(path)
    for file_name, damage, message in caught:
        assert "hudi table repair --metadata" in message, (file_name, damage, message)
        assert METADATA in message, (file_name, damage, message)
    for untouched, damage in harmless:
        # bodies of instants are read where files leave a doubt
        is_instant = untouched.endswith(".deltacommit") and damage != "gone"
        is_first_log = ".log." in untouched and "_00000000000" in untouched
        is_pending = untouched.endswith(("requested", "inflight"))
        assert is_instant or is_first_log or is_pending, (untouched, damage)
    assert len(caught) > 10


def test_missing_files_of_ranges_are_named_where_they_are_asked_for(
    copy: Path, tmp_path: Path
) -> None:
    table = create(tmp_path / "compacted", writes=12)
    bases = sorted(Path(table.path, METADATA, COLUMN_STATS).glob("col-stats-0001-0*.hfile"))
    bases[-1].unlink()
    for file in (copy / METADATA / COLUMN_STATS).glob("*col-stats-0000-0*"):
        file.unlink()
    for path, rows_, reason in (
        (Path(table.path), 39, r"col-stats-0001-0.*hfile.*it is missing"),
        (copy, 9, "its file group 0 is missing"),
    ):
        damaged = hudi.Table.open(str(path), OPTIONS)
        assert ids(damaged) == list(range(rows_))
        with pytest.raises(CorruptMetadataError, match=reason):
            ids(damaged, [("v", "=", 1.0)])


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (f"{FILES}/.files*.log.*", r"files/\.files.*it is missing"),
        (".hoodie/timeline/2*.deltacommit", r"lacks the instant.*hudi table repair --metadata"),
        ("", r"\.hoodie/metadata.*table repair --metadata"),
    ],
)
def test_what_is_missing_of_the_list_of_files_is_named(
    copy: Path, pattern: str, reason: str
) -> None:
    if pattern:
        max((copy / METADATA).glob(pattern)).unlink()
    else:
        shutil.rmtree(copy / METADATA)
    with pytest.raises(CorruptMetadataError, match=reason):
        hudi.Table.open(str(copy), OPTIONS).to_arrow()
    without = hudi.Table.open(str(copy), {"hoodie.metadata.enable": "false"})
    if pattern:
        assert ids(without) == list(range(9))


@pytest.mark.parametrize(
    ("partitions", "reason"),
    [
        *(
            ({name: {}}, "not a path of a partition")
            for name in ("../escape", "/etc", "a/../b", "p0/")
        ),
        *(
            ({"p9": {name: FileEntry(1)}}, "not the name of a file")
            for name in ("../x.parquet", "a/b", "", "..")
        ),
        ({"p9": None}, "lists the partition 'p9' and not its files"),
    ],
)
def test_lists_that_lead_out_or_nowhere_are_damage(
    copy: Path, partitions: dict[str, dict[str, FileEntry] | None], reason: str
) -> None:
    with_names(copy, partitions)
    with pytest.raises(CorruptMetadataError, match=reason):
        hudi.Table.open(str(copy), OPTIONS).to_arrow()


def with_names(path: Path, partitions: dict[str, dict[str, FileEntry] | None]) -> None:
    """Put further partitions into the base file of the list of files."""
    base = next((path / METADATA / FILES).glob("*.hfile"))
    encoder = RecordEncoder(base.name)
    everything = FileList({name: FileEntry(0) for name in partitions})
    records = [MetadataRecord(ALL_PARTITIONS, RecordType.ALL_PARTITIONS, everything)]
    for name, files in partitions.items():
        if files is not None:
            records.append(MetadataRecord(name, RecordType.FILES, FileList(files)))
    entries = sorted(map(encoder.encode, records))
    base.write_bytes(
        write_hfile(entries, HFileOptions(encoder.schema, create_time_ms=0, base_file=True))
    )


# --- logs that a log compaction wrote again


def files_block(instant: str, name: str, size: int | None, **header: str) -> bytes:
    """A block that says a file of the folder is there, or with ``None`` that it is gone."""
    encoder = RecordEncoder()
    entry = {name: FileEntry(size or 0, is_deleted=size is None)}
    record = MetadataRecord("p0", RecordType.FILES, FileList(entry))
    content = write_hfile(
        [encoder.encode(record)], HFileOptions(schema=encoder.schema, create_time_ms=0)
    )
    own = {HeaderKey[key]: value for key, value in header.items()}
    stated = {HeaderKey.SCHEMA: encoder.schema, HeaderKey.INSTANT_TIME: instant, **own}
    return encode_log_block(BlockType.HFILE, stated, content)


def test_a_log_compaction_comes_where_its_blocks_were(tmp_path: Path) -> None:
    """What was deleted since is not there again, although the compaction completes later."""
    times = [InstantTime(f"2026010100000{n}000") for n in range(4)]
    contents = [
        files_block(times[0], "f", 7),
        files_block(times[1], "g", 8),
        files_block(times[2], "f", None),
        files_block(times[3], "f", 7, COMPACTED_BLOCK_TIMES=f"{times[0]},{times[1]}")
        + files_block(times[3], "g", 8, COMPACTED_BLOCK_TIMES=f"{times[0]},{times[1]}"),
    ]
    group = FileGroupId(PartitionPath("files"), FileId("files-0000-0"))
    logs = []
    for time, content in zip(times, contents, strict=True):
        name = LogFileName(group.file_id, time, 1, "0-0-1")
        path = tmp_path / "files" / str(name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        logs.append(LogFile(FileStatus(f"files/{name}", len(content)), name))
    found = FileSlice(group, times[0], None, tuple(logs))

    def listed(*left_out: InstantTime) -> dict[str, int]:
        reader = GroupReader(
            PosixStorage(str(tmp_path)), found, lambda time: time not in left_out, str
        )
        record = reader.lookup(["p0"])["p0"]
        assert record is not None
        assert isinstance(record.payload, FileList)
        assert reader.scan()["p0"] == record
        return {
            name: entry.size for name, entry in record.payload.files.items() if not entry.is_deleted
        }

    assert listed() == {"g": 8}
    # while it is pending its originals count
    assert listed(times[3]) == {"g": 8}
    assert listed(times[2]) == {"f": 7, "g": 8}
