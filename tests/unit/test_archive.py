"""Archiving: which instants leave, where they go byte by byte, and that a crash loses none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.actions import archive as archiving
from hudi_core.actions.archive import archive
from hudi_core.actions.archive_plan import ArchiveRules, LastClean, plan_archive
from hudi_core.errors import (
    AlreadyExistsError,
    CorruptMetadataError,
    PreconditionFailedError,
    StorageError,
    TableServiceError,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.archived import with_history
from hudi_core.timeline.lsm_history import HistoryFileName
from hudi_core.timeline.timeline import Timeline
from tests.calls import disk_requests
from tests.unit.mortal_tables import CONFIG, DEATHS_APART, DONE, add, at, deaths, open_client

HISTORY = ".hoodie/timeline/history"


def whole(client: TableMetaClient) -> tuple[Instant, ...]:
    """Return what a reader finds: the active timeline first, then the history."""
    active = client.active.load()
    return with_history(active, client.archived.load()).instants


def bodies(client: TableMetaClient) -> dict[Instant, tuple[bytes | None, bytes | None]]:
    found = client.archived.load(bodies=True)
    return {one.instant: (one.metadata, one.plan) for one in found}


def names(path: Path) -> list[str]:
    return sorted(file.name for file in (path / HISTORY).iterdir())


def history(path: Path) -> dict[str, int]:
    """Names and sizes of the files of the current version."""
    version = (path / HISTORY / "_version_").read_text()
    manifest = json.loads((path / HISTORY / f"manifest_{version}").read_text())
    return {entry["fileName"]: entry["fileLen"] for entry in manifest["files"]}


def history_rows(path: Path) -> int:
    """Count the rows of the current version, as nobody's reader but DuckDB sees them."""
    files = [str(path / HISTORY / name) for name in history(path)]
    [[count]] = duckdb.execute(f"select count(*) from read_parquet({files})").fetchall()
    return int(count)


def on(client: TableMetaClient, storage: PosixStorage) -> TableMetaClient:
    """Another client of the table, with a storage of its own."""
    other = open_client(Path(client.storage.root))
    object.__setattr__(other, "storage", storage)
    return other


@pytest.fixture
def client(tmp_path: Path) -> TableMetaClient:
    return open_client(tmp_path / "t")


def test_the_history_file_is_what_hudi_writes(client: TableMetaClient, tmp_path: Path) -> None:
    commit = add(client, 10, body=b"first")
    clean = add(client, 20, Action.CLEAN, plan=b"clean plan", body=b"cleaned")
    assert archive(client, [clean, commit]) == (commit, clean)
    path = tmp_path / "t"
    name = f"{at(10)}_{at(20)}_0.parquet"
    assert names(path) == [name, "_version_", "manifest_1"]
    file = path / HISTORY / name
    assert (path / HISTORY / "_version_").read_bytes() == b"1"
    assert history(path) == {name: file.stat().st_size}
    parquet = pq.ParquetFile(file)
    columns = [parquet.schema.column(number) for number in range(6)]
    assert [(one.name, one.physical_type, str(one.logical_type)) for one in columns] == [
        ("instantTime", "BYTE_ARRAY", "String"),
        ("completionTime", "BYTE_ARRAY", "String"),
        ("action", "BYTE_ARRAY", "String"),
        ("metadata", "BYTE_ARRAY", "None"),
        ("plan", "BYTE_ARRAY", "None"),
        ("version", "INT32", "None"),
    ]
    assert [one.max_definition_level for one in columns] == [1, 1, 1, 1, 1, 0]
    assert set(parquet.metadata.metadata) == {b"parquet.avro.schema"}
    avro = json.loads(parquet.metadata.metadata[b"parquet.avro.schema"])
    assert avro["namespace"] == "org.apache.hudi.avro.model"
    assert avro["name"] == "HoodieLSMTimelineInstant"
    assert duckdb.execute(f"from '{file}'").fetchall() == [
        (at(10), at(15), "commit", b"first", None, 1),
        (at(20), at(25), "clean", b"cleaned", b"clean plan", 1),
    ]


@pytest.mark.parametrize(
    ("action", "plan", "inflight", "expected"),
    [
        (Action.COMMIT, b"", b"workload", None),
        (Action.DELTACOMMIT, b"", b"workload", None),
        (Action.CLEAN, b"plan", b"", b"plan"),
        (Action.COMPACTION, b"plan", b"", b"plan"),
        (Action.LOGCOMPACTION, b"plan", b"", b"plan"),
        (Action.CLUSTERING, b"plan", b"", b"plan"),
        (Action.REPLACECOMMIT, b"plan", b"workload", b"workload"),
        (Action.REPLACECOMMIT, b"", b"", None),
        (Action.ROLLBACK, b"plan", b"", None),
        (Action.INDEXING, b"plan", b"", None),
    ],
)
def test_plans_are_kept_for_the_actions_for_which_hudi_keeps_them(
    client: TableMetaClient, action: Action, plan: bytes, inflight: bytes, expected: bytes | None
) -> None:
    done = add(client, 10, action, plan=plan, inflight=inflight)
    archive(client, [done])
    assert bodies(client) == {done: (DONE, expected)}
    assert client.archived.load()[0].instant.action is action.completed_action


def test_an_empty_completed_file_is_a_null(client: TableMetaClient, tmp_path: Path) -> None:
    done = add(client, 10)
    (tmp_path / "t" / client.active.path(done)).write_bytes(b"")
    archive(client, [done])
    assert bodies(client) == {done: (None, None)}


def test_archived_instants_leave_no_file_and_others_stay(client: TableMetaClient) -> None:
    gone, left = add(client, 10), add(client, 20)
    pending = add(client, 30, upto=State.INFLIGHT)
    archive(client, [gone])
    assert {file.requested_time for file in client.active.scan().files} == {at(20), at(30)}
    assert whole(client) == (gone, left, pending)
    assert [one.instant for one in client.archived.load()] == [gone]
    # what is not there is left out
    assert archive(client, [gone, left]) == (left,)
    assert archive(client, []) == ()


@pytest.mark.parametrize("upto", [State.REQUESTED, State.INFLIGHT])
def test_pending_instants_are_refused(client: TableMetaClient, upto: State) -> None:
    done, pending = add(client, 10), add(client, 20, upto=upto)
    with pytest.raises(TableServiceError, match="is pending"):
        archive(client, [done, pending])
    assert whole(client) == (done, pending)
    assert client.archived.load() == ()


def test_savepoints_are_refused(client: TableMetaClient) -> None:
    pending = Instant(at(10), Action.SAVEPOINT, State.INFLIGHT)
    saved = client.active.complete(pending, at(20), b"saved")
    with pytest.raises(TableServiceError, match="Delete the savepoint"):
        archive(client, [saved])


def test_timelines_of_layout_1_are_refused(tmp_path: Path) -> None:
    old = replace(CONFIG, version=6, layout_version=1)
    with pytest.raises(TableServiceError, match="layout 1"):
        archive(open_client(tmp_path, old), [])


def test_large_instants_make_several_files(
    client: TableMetaClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiving, "FILE_BODY_BYTES", 100)
    monkeypatch.setattr(archiving, "_READ_TOGETHER", 2)
    done = [add(client, 10 * n, body=b"x" * 30) for n in range(1, 8)]
    archive(client, done)
    files = [name for name in names(tmp_path / "t") if name.endswith(".parquet")]
    assert files == [f"{at(10)}_{at(40)}_0.parquet", f"{at(50)}_{at(70)}_0.parquet"]
    assert names(tmp_path / "t").count("manifest_1") == 1
    assert whole(client) == tuple(done)


def test_ten_files_of_a_level_are_one_of_the_next(client: TableMetaClient, tmp_path: Path) -> None:
    done = []
    for n in range(1, 102):
        done.append(add(client, 10 * n))
        archive(client, done[-1:])
        # old versions keep their files for a while
        assert sum(HistoryFileName.parse(name) is not None for name in names(tmp_path / "t")) <= 40
    last = client.archived.load()
    assert tuple(one.instant for one in last) == tuple(done) == whole(client)
    expected = (f"{at(10)}_{at(1000)}_2.parquet", f"{at(1010)}_{at(1010)}_0.parquet")
    assert tuple(history(tmp_path / "t")) == expected


def test_files_are_not_merged_beyond_a_target_size(client: TableMetaClient, tmp_path: Path) -> None:
    done = [add(client, 10 * n) for n in range(1, 5)]
    for one in done:
        archive(client, [one], compaction_batch_size=2, target_file_bytes=10)
    assert whole(client) == tuple(done)
    files = [name for name in names(tmp_path / "t") if name.endswith(".parquet")]
    assert {parsed.level for name in files if (parsed := HistoryFileName.parse(name))} == {0}


def test_old_manifests_go_and_three_stay(client: TableMetaClient, tmp_path: Path) -> None:
    for n in range(1, 8):
        archive(client, [add(client, 10 * n)])
    manifests = [name for name in names(tmp_path / "t") if name.startswith("manifest_")]
    assert manifests == ["manifest_5", "manifest_6", "manifest_7"]


def test_a_reader_of_an_old_version_still_finds_its_files(client: TableMetaClient) -> None:
    archive(client, [add(client, 10)])

    class Slow(PosixStorage):
        """Archivals happen between the reads of this reader."""

        archived = False

        def read(self, path: str, max_bytes: int | None = None) -> bytes:
            data = super().read(path, max_bytes)
            if path.endswith("_version_") and not self.archived:
                self.archived = True
                for n in range(2, 5):
                    archive(client, [add(client, 10 * n)], compaction_batch_size=2)
            return data

    reader = on(client, Slow(client.storage.root, fsync=False))
    assert reader.archived.load()[0].instant.requested_time == at(10)


def test_the_same_range_twice_gets_two_names(client: TableMetaClient) -> None:
    commit, clean = add(client, 10), add(client, 10, Action.CLEAN)
    archive(client, [commit])
    archive(client, [clean])
    assert bodies(client) == {clean: (DONE, None), commit: (DONE, None)}


# --- crashes and rivals
def test_a_crash_at_any_step_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    template = tmp_path / "template"
    client = open_client(template)
    instants = []
    for n in range(1, 12):
        action = Action.CLEAN if n % 3 == 0 else Action.COMMIT
        plan = b"plan %d" % n if action is Action.CLEAN else b""
        instants.append(add(client, 10 * n, action, plan=plan, body=b"body %d" % n))
    archive(client, instants[:2], compaction_batch_size=3)
    archive(client, instants[2:4], compaction_batch_size=3)
    expected = {
        one: (b"body %d" % n, b"plan %d" % n if one.action is Action.CLEAN else None)
        for n, one in enumerate(instants, 1)
    }
    chosen = instants[4:7]

    def act(dying: TableMetaClient) -> object:
        return archive(dying, chosen, compaction_batch_size=3)

    seen = 0
    for path in deaths(template, tmp_path / "copies", act):
        seen += 1
        left = open_client(path)
        assert whole(left) == tuple(instants)
        for archived in left.archived.load(bodies=True):
            assert (archived.metadata, archived.plan) == expected[archived.instant]
        # the next run may take more than the one that died
        archive(left, instants[4 : 7 + seen % 2], compaction_batch_size=3)
        assert whole(left) == tuple(instants)
        assert history_rows(path) == len(left.archived.load()) == 7 + seen % 2
        assert len(left.active.load()) == 4 - seen % 2
        assert bodies(left) == {one: expected[one] for one in instants[: 7 + seen % 2]}
    assert seen * DEATHS_APART > 60


class Rival(PosixStorage):
    """Lets another archiver act before a certain file is written."""

    def __init__(self, root: str, before: str, act: Any) -> None:
        super().__init__(root, fsync=False)
        self._before, self._act = before, act

    def _meet(self, path: str) -> None:
        if self._act and path.endswith(self._before):
            act, self._act = self._act, None
            act()

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._meet(path)
        super().put_if_absent(path, data)

    def compare_and_set(self, path: str, data: bytes, expected: str | None) -> str:
        self._meet(path)
        return super().compare_and_set(path, data, expected)


@pytest.mark.parametrize("before", ["manifest_2", "_version_"])
@pytest.mark.parametrize("rounds", [1, 2, 6])
def test_an_archiver_that_lost_its_lock(client: TableMetaClient, before: str, rounds: int) -> None:
    done = [add(client, 10 * n) for n in range(1, 12)]
    archive(client, done[:1])

    def rival() -> None:
        for n in range(rounds):
            archive(client, [done[n + 1]])

    late = on(client, Rival(client.storage.root, before, rival))
    with pytest.raises((AlreadyExistsError, PreconditionFailedError)) as caught:
        archive(late, done[8:10])
    assert isinstance(caught.value, StorageError)
    assert whole(client) == tuple(done)
    archive(client, done[:9])
    assert whole(client) == tuple(done)
    # a manifest that was complete when its writer stopped is taken over by the next one
    held = done[:10] if before == "_version_" else done[:9]
    assert [one.instant for one in client.archived.load()] == held


@pytest.mark.parametrize("damage", ["cut", "missing file", "short file"])
def test_a_damaged_manifest_is_dropped(
    client: TableMetaClient, tmp_path: Path, damage: str
) -> None:
    first, second = add(client, 10), add(client, 20)
    archive(client, [first])
    folder = tmp_path / "t" / HISTORY
    entry = {"fileName": f"{at(20)}_{at(20)}_0.parquet", "fileLen": 9}
    text = json.dumps({"files": [entry]})
    if damage == "short file":
        (folder / str(entry["fileName"])).write_bytes(b"PAR1")
    (folder / "manifest_2").write_text(text[:20] if damage == "cut" else text)
    archive(client, [second])
    assert whole(client) == (first, second)
    assert history_rows(tmp_path / "t") == 2


def test_a_version_file_that_went_is_made_anew(client: TableMetaClient, tmp_path: Path) -> None:
    first, second = add(client, 10), add(client, 20)
    archive(client, [first])
    (tmp_path / "t" / HISTORY / "_version_").unlink()
    archive(client, [second])
    assert (tmp_path / "t" / HISTORY / "_version_").read_bytes() == b"2"
    assert whole(client) == (first, second)


@pytest.mark.parametrize("victim", ["manifest_1", "parquet"])
def test_a_damaged_history_is_named(client: TableMetaClient, tmp_path: Path, victim: str) -> None:
    first, second = add(client, 10), add(client, 20)
    archive(client, [first])
    [file] = (tmp_path / "t" / HISTORY).glob(f"*{victim}")
    file.unlink()
    again = add(client, 10) if victim == "parquet" else second
    with pytest.raises(CorruptMetadataError):
        archive(client, [again])
    assert client.active.load().find(again.requested_time) == again


def test_cost_does_not_grow_with_the_history(
    client: TableMetaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(1, 30):
        archive(client, [add(client, 10 * n)], compaction_batch_size=100)
    read = disk_requests(monkeypatch, "read")
    archive(client, [add(client, 1000)], compaction_batch_size=100)
    assert [path for _, path in read if path.endswith(".parquet")] == []
    assert len(read) < 8


ACTIONS = st.sampled_from([Action.COMMIT, Action.CLEAN, Action.ROLLBACK, Action.CLUSTERING])


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Action], list[list[int]]]:
    actions = draw(st.lists(ACTIONS, min_size=1, max_size=25))
    order = draw(st.permutations(range(len(actions))))
    cuts = sorted(draw(st.sets(st.integers(0, len(actions)), max_size=8)))
    bounds = pairwise([0, *cuts, len(order)])
    return actions, [list(order[begin:end]) for begin, end in bounds]


@given(histories(), st.integers(2, 4))
def test_any_pieces_in_any_order_add_up_to_the_same_timeline(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: tuple[list[Action], list[list[int]]],
    batch: int,
) -> None:
    actions, pieces = drawn
    path = tmp_path_factory.mktemp("table")
    client = open_client(path, CONFIG)
    instants = [add(client, 10 * n, action) for n, action in enumerate(actions, 1)]
    for piece in pieces:
        archive(client, [instants[n] for n in piece], compaction_batch_size=batch)
        assert whole(client) == Timeline.of(instants).instants
    assert client.active.load().instants == ()
    assert history_rows(path) == len(instants)


def done(ordinal: int, action: Action = Action.COMMIT) -> Instant:
    return Instant(at(ordinal), action, State.COMPLETED, at(ordinal + 5))


def pending(ordinal: int, action: Action = Action.COMMIT) -> Instant:
    return Instant(at(ordinal), action, State.INFLIGHT)


def archived(
    instants: Sequence[Instant],
    rules: ArchiveRules | None = None,
    last_clean: LastClean | None = None,
    retained_from: Sequence[InstantTime] = (),
    *more: Any,
) -> list[int]:
    rules = rules or ArchiveRules(2, 4)
    chosen = plan_archive(Timeline.of(instants), rules, last_clean, retained_from, *more)
    assert all(one in instants for one in chosen)
    return [int(one.requested_time[-5:]) for one in chosen]


SIX = [done(10 * n) for n in range(1, 7)]


def test_archiving_begins_beyond_the_maximum_and_stops_at_the_minimum() -> None:
    assert archived(SIX[:4]) == []
    assert archived(SIX[:5]) == [10, 20, 30]
    assert archived(SIX) == [10, 20, 30, 40]
    assert len(archived([done(10 * n) for n in range(1, 31)], ArchiveRules())) == 0
    assert len(archived([done(10 * n) for n in range(1, 32)], ArchiveRules())) == 11


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ([pending(35)], [10, 20]),
        ([pending(35, Action.CLUSTERING)], [10, 20]),
        ([pending(35, Action.ROLLBACK)], [10, 20]),
        ([pending(5)], []),
        ([pending(15)], []),
        ([pending(65)], [10, 20, 30, 40]),
        ([done(30, Action.SAVEPOINT)], [10, 20]),
        ([done(10, Action.SAVEPOINT)], []),
        ([done(25, Action.REPLACECOMMIT)], [10, 20]),
        ([done(25, Action.CLEAN), done(27, Action.ROLLBACK)], [10, 20, 25, 27, 30, 40]),
        ([done(45, Action.CLEAN), done(47, Action.ROLLBACK)], [10, 20, 30, 40]),
        ([done(25, Action.INDEXING), done(26, Action.RESTORE)], [10, 20, 26, 30, 40]),
        ([done(46, Action.RESTORE)], [10, 20, 30, 40]),
    ],
)
def test_what_keeps_instants(more: list[Instant], expected: list[int]) -> None:
    assert archived([*SIX, *more]) == expected


def test_rollbacks_and_restores_count_and_leave_the_minimum_of_writes() -> None:
    undone = [done(10 * n + 5, Action.ROLLBACK) for n in range(2, 4)]
    restored = done(45, Action.RESTORE)
    assert archived([*SIX[:3], *undone[:1]]) == []
    assert archived([*SIX[:3], *undone]) == [10]
    assert archived([*SIX[:5], *undone, restored]) == [10, 20, 25, 30]
    # writes that stay keep the rollbacks beside them, however many these are
    many = [done(10 + n, Action.ROLLBACK) for n in range(1, 10)]
    assert archived([*SIX[:2], *many]) == []


def test_cleans_go_at_their_own_pace_and_rollbacks_with_their_writes() -> None:
    cleans = [done(10 * n + 5, Action.CLEAN) for n in range(1, 5)]
    last = LastClean(cleans[-1], at(10))
    undone = done(27, Action.ROLLBACK)
    some = [*SIX[:4], *cleans, undone]
    assert archived(some, ArchiveRules(2, 9, max_cleans=4), last) == []
    assert archived(some, ArchiveRules(2, 9, max_cleans=3)) == [15, 25, 35, 45]
    # the next clean goes on from the last one
    rules, newest = ArchiveRules(2, 9, max_cleans=3), LastClean(cleans[-1], None)
    assert archived(some, rules, newest) == [15, 25, 35]


def test_beyond_savepoints_only_the_savepointed_stay() -> None:
    rules = ArchiveRules(2, 4, beyond_savepoint=True)
    saved, later = done(20, Action.SAVEPOINT), done(40, Action.SAVEPOINT)
    assert archived([*SIX, saved], rules) == [10, 30, 40, 50]
    # files that 35 replaced are kept by the savepoint and would come back without it
    cleaned = LastClean(done(90, Action.CLEAN), at(60))
    replace = done(35, Action.REPLACECOMMIT)
    assert archived([*SIX, saved, replace], rules, cleaned) == [10, 30]
    assert archived([*SIX, replace, later], rules, cleaned) == [10, 20, 30, 35, 50]


def test_the_last_clean_bounds_and_stays() -> None:
    clean = done(25, Action.CLEAN)
    older = done(15, Action.CLEAN)
    timeline = [*SIX, older, clean]
    assert archived(timeline, last_clean=LastClean(clean, at(30))) == [10, 15, 20]
    assert archived(timeline, last_clean=LastClean(clean, at(60))) == [10, 15, 20, 30, 40]
    assert archived(timeline, last_clean=LastClean(clean, None)) == [10, 15, 20, 30, 40]
    # with what completed after a retained one, formats would forget that, too
    waited = replace(done(15), completion_time=at(56))
    assert archived([*SIX, waited], last_clean=LastClean(clean, at(50))) == [10]
    assert archived([*SIX, waited], last_clean=LastClean(clean, at(60)))[:3] == [10, 15, 20]


@pytest.mark.parametrize(
    ("clean", "earliest", "expected"),
    [
        # 25 completed at 30
        (90, at(60), [10, 20, 25, 30]),
        (90, None, [10, 20, 25, 30]),
        (90, at(25), [10, 20]),
        (28, None, [10, 20]),
        (28, at(60), [10, 20]),
    ],
)
def test_a_replacecommit_stays_until_its_groups_are_deleted(
    clean: int, earliest: InstantTime | None, expected: list[int]
) -> None:
    cleaned = LastClean(done(clean, Action.CLEAN), earliest)
    timeline = [*SIX, done(25, Action.REPLACECOMMIT)]
    assert archived(timeline, ArchiveRules(3, 4), cleaned) == expected


def test_a_replacecommit_stays_while_what_it_replaced_is_stored() -> None:
    timeline = [*SIX, done(25, Action.REPLACECOMMIT), done(35, Action.REPLACECOMMIT)]
    cleaned = LastClean(done(90, Action.CLEAN), at(60))
    asked: list[int] = []

    def archived_but(*stored: int) -> list[int]:
        asked.clear()

        def decides(write: Instant) -> bool:
            asked.append(int(write.requested_time[-5:]))
            return asked[-1] in stored

        return archived(timeline, ArchiveRules(3, 4), cleaned, (), decides)

    assert (archived_but(), asked) == ([10, 20, 25, 30, 35], [25, 35])
    assert (archived_but(35), asked) == ([10, 20, 25, 30], [25, 35])
    assert (archived_but(25, 35), asked) == ([10, 20], [25])
    # a savepoint that the clean passed by may be deleted since
    for saved, expected in ((20, [10, 20]), (30, [10, 20, 25, 30]), (50, [10, 20, 25, 30, 35])):
        known = LastClean(cleaned.instant, cleaned.earliest_retained, {at(saved)})
        assert archived(timeline, ArchiveRules(3, 4), known) == expected


def test_bounds_from_elsewhere() -> None:
    assert archived(SIX, retained_from=[at(30), at(50)]) == [10, 20]
    assert archived(SIX, retained_from=[at(5)]) == []


@pytest.mark.parametrize(("due", "expected"), [(2, [10, 20, 30, 40]), (3, [10, 20, 30]), (9, [10])])
def test_deltacommits_that_the_next_compaction_counts_stay(due: int, expected: list[int]) -> None:
    deltas = [done(10 * n, Action.DELTACOMMIT) for n in range(1, 7)]
    deltas[1] = done(20)  # a compaction
    rules = ArchiveRules(1, 4, compaction_delta_commits=due)
    assert archived(deltas, rules) == expected
    assert archived([*deltas[:1], *deltas[2:]], rules) == ([] if due == 9 else [10, *expected[2:]])


def test_a_deltacommit_stays_that_completed_after_a_compaction_began() -> None:
    deltas = [done(10 * n, Action.DELTACOMMIT) for n in range(1, 7)]
    rules = ArchiveRules(1, 4)
    # the third was requested at 30 and completed at 35
    assert archived([*deltas, done(32)], rules) == [10, 20]
    assert archived([*deltas, done(36)], rules) == [10, 20, 30, 36, 40, 50]
    assert archived([*deltas, done(32), done(37)], rules) == [10, 20, 30, 32, 37, 40, 50]


def test_the_rest_stays_what_it_was() -> None:
    for count in range(1, 40):
        instants = [done(10 * n) for n in range(1, count)]
        chosen = plan_archive(Timeline.of(instants), ArchiveRules(), None)
        left = Timeline.of(one for one in instants if one not in chosen)
        assert all(left.is_committed(one.requested_time) for one in instants)
        assert len(left) in {count - 1, 20}
