"""Cleans: what plans leave, and carrying them out through damage, crashes and forgeries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.actions.clean import (
    CleanWork,
    complete_clean,
    delete_cleaned,
    pending_cleans,
    request_clean,
    start_clean,
)
from hudi_core.actions.clean_plan import (
    RETAINED_SINCE_KEY,
    SAVEPOINTED_KEY,
    CleanRules,
    Needed,
    PartitionClean,
    PartitionFiles,
    Retention,
    clean_partition,
    make_clean_plan,
    never_back,
    partitions_to_clean,
    retain,
)
from hudi_core.config.kinds import CleanPolicy
from hudi_core.errors import CorruptMetadataError, HudiError, TableServiceError, UnsafePathError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.actions import ActionInstant, CleanerPlan, CleanFileInfo, CleanMetadata
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteStat
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import FileGroupId, FileId, FileStatus, PartitionPath, join_path
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import EARLIEST, InstantTime, to_datetime
from hudi_core.timeline.serde import decode_clean, decode_cleaner_plan, encode
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system import FileSystemView, replaced_groups
from tests.unit.mortal_tables import DEATHS_APART, at, deaths, open_client

COMMITS, VERSIONS, HOURS = CleanPolicy
P, Q = PartitionPath("p"), PartitionPath("q")
LATE = to_datetime(at(59999))
NOTHING = Needed()


@dataclass
class Table(FileIndex):
    """A table in memory: its instants, their metadata, and its files."""

    instants: list[Instant] = field(default_factory=list)
    metadata: dict[Instant, CommitMetadata] = field(default_factory=dict)
    files: dict[PartitionPath, set[str]] = field(default_factory=dict)

    def list_partitions(self) -> Sequence[PartitionPath]:
        return sorted(self.files)

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        return {
            path: [
                FileStatus(join_path(path, name), 1) for name in sorted(self.files.get(path, ()))
            ]
            for path in partitions
        }

    @property
    def timeline(self) -> Timeline:
        return Timeline.of(self.instants)

    def view(self) -> FileSystemView:
        return FileSystemView(self, self.timeline, self.replaced())

    def replaced(self) -> Mapping[FileGroupId, Instant]:
        return replaced_groups(self.timeline, self.metadata.__getitem__)

    def write(
        self,
        ordinal: int,
        base: Mapping[PartitionPath, Sequence[str]] | None = None,
        logs: Mapping[PartitionPath, Sequence[str]] | None = None,
        gone: Mapping[str, tuple[str, ...]] | None = None,
        state: State = State.COMPLETED,
        done: int | None = None,
    ) -> Instant:
        """Add a write of base files, log files, or one that replaces file groups."""
        action = Action.REPLACECOMMIT if gone is not None else Action.COMMIT
        action = Action.DELTACOMMIT if logs else action
        completion = at(ordinal + 5 if done is None else done)
        is_done = state is State.COMPLETED
        instant = Instant(at(ordinal), action, state, completion if is_done else None)
        self.instants.append(instant)
        for of, name in ((base, "{}-0_0-0-0_{}.parquet"), (logs, ".{}-0_{}.log.1_0-0-0")):
            for path, ids in (of or {}).items():
                names = {name.format(one, at(ordinal)) for one in ids}
                self.files.setdefault(path, set()).update(names)
        stats = {str(path): (WriteStat(),) for path in {**(base or {}), **(logs or {})}}
        self.metadata[instant] = CommitMetadata(stats)
        if gone is not None:
            ids_of = {path: tuple(f"{one}-0" for one in ids) for path, ids in gone.items()}
            replaced = ReplaceCommitMetadata(stats, partition_to_replace_file_ids=ids_of)
            self.metadata[instant] = replaced
        return instant

    def plan(
        self,
        rules: CleanRules,
        needed: Needed = NOTHING,
        now: datetime = LATE,
        since: InstantTime = EARLIEST,
    ) -> dict[PartitionPath, PartitionClean]:
        retention = never_back(retain(self.timeline, rules, now), self.timeline, since)
        view, replaced = self.view(), self.replaced()
        found = {}
        for path in self.list_partitions():
            files = PartitionFiles(view.file_groups([path]), self.list_files([path])[path])
            found[path] = clean_partition(files, replaced, retention, needed)
        return found

    def delete(self, plan: Mapping[PartitionPath, PartitionClean]) -> None:
        for path, one in plan.items():
            self.files[path] -= {deleted.rpartition("/")[2] for deleted in one.paths}


def instants_of(paths: Sequence[str]) -> list[str]:
    """Return which write each path is of, as its ordinal."""
    return [path.replace(".parquet", "").split("_")[-1][-5:].lstrip("0") for path in paths]


def updated(times: int) -> Table:
    """Return a table of one file group that was written so many times."""
    table = Table()
    for n in range(1, times + 1):
        table.write(10 * n, {P: ["a"]})
    return table


# --- clean: policies
def test_latest_commits_keep_what_a_reader_as_of_any_of_them_sees() -> None:
    table, rules = updated(6), CleanRules(commits_retained=2)
    assert retain(table.timeline, rules, LATE).earliest == table.instants[4]
    # 50 is retained; a reader that began right before it still sees 40
    assert instants_of(table.plan(rules)[P].paths) == ["10", "20", "30"]
    for enough in (6, 7):
        assert updated(6).plan(CleanRules(commits_retained=enough))[P] == PartitionClean()


def test_latest_versions_keep_slices_of_each_group() -> None:
    table = updated(4)
    table.write(50, {P: ["b"]})
    for count, gone in ((3, ["10"]), (1, ["10", "20", "30"]), (0, ["10", "20", "30"])):
        rules = CleanRules(VERSIONS, file_versions_retained=count)
        assert instants_of(table.plan(rules)[P].paths) == gone


def test_the_log_of_a_file_goes_with_it() -> None:
    table = updated(3)
    table.files[P] |= {f".a-0_{at(time)}.log.1_0-0-0.cdc" for time in (20, 30)}
    assert {log for one in table.view().all_slices() for log in one.log_files} == set()
    paths = table.plan(CleanRules(VERSIONS, file_versions_retained=1))[P].paths
    assert [path.rpartition(".")[2] for path in paths] == ["cdc", "parquet", "parquet"]
    assert at(20) in paths[0]


def test_latest_by_hours_keep_what_is_young() -> None:
    table = updated(6)
    now = to_datetime(at(50)) + timedelta(hours=3)
    rules = CleanRules(HOURS, hours_retained=3)
    assert retain(table.timeline, rules, now).earliest == table.instants[4]
    assert instants_of(table.plan(rules, now=now)[P].paths) == ["10", "20", "30"]
    assert table.plan(rules, now=now + timedelta(hours=1))[P] == PartitionClean()


def test_nothing_goes_that_a_pending_write_may_read() -> None:
    table = updated(3)
    table.write(35, {P: ["x"]}, state=State.INFLIGHT)
    for n in range(4, 9):
        table.write(10 * n, {P: ["a"]})
    for rules in (CleanRules(commits_retained=1), CleanRules(HOURS, hours_retained=0)):
        now = to_datetime(at(80))
        retention = retain(table.timeline, rules, now)
        assert retention.earliest == table.instants[2]
        assert instants_of(table.plan(rules, now=now)[P].paths) == ["10"]
    rules, last = CleanRules(commits_retained=1), table.instants[2]
    # the slices that a compaction reads are kept for themselves
    table.instants.insert(0, Instant(at(5), Action.COMPACTION, State.REQUESTED))
    assert retain(table.timeline, rules, LATE).earliest == last
    table.instants.insert(0, Instant(at(4), Action.DELTACOMMIT, State.INFLIGHT))
    assert retain(table.timeline, rules, LATE).earliest is None


def test_states_before_a_write_that_completed_late_keep_what_it_superseded() -> None:
    table, rules = Table(), CleanRules(commits_retained=2)
    table.write(10, {P: ["a"], Q: ["c"]})
    table.write(20, {P: ["a"]}, gone={"q": ("c",)}, done=47)
    for time in (30, 40):
        table.write(time, {P: ["b"]})
    for since in (EARLIEST, at(30)):  # also where a clean came before it completed
        assert not any(one.paths for one in table.plan(rules, since=since).values())
    table.write(50, {P: ["b"]})
    assert not table.plan(rules)[Q].paths
    table.write(60, {P: ["b"]})
    assert [instants_of(one.paths) for one in table.plan(rules).values()] == [["10", "30"], ["10"]]
    # of the clean before it is known that it left them
    last = CleanMetadata(at(48), 0, 0, at(30))
    looked_at = partitions_to_clean(
        table.timeline, retain(table.timeline, rules, LATE), last, [], table.metadata.__getitem__
    )
    assert sorted(looked_at or ()) == [P, Q]


def test_slices_go_with_their_logs_and_lost_attempts() -> None:
    table = Table()
    for time in (10, 30, 50):
        table.write(time, {P: ["a"]})
        table.write(time + 10, logs={P: ["a"]})
    table.files[P].add(f"a-0_0-0-1_{at(10)}.parquet")
    paths = table.plan(CleanRules(VERSIONS, file_versions_retained=2))[P].paths
    files = [f"p/a-0_0-0-{attempt}_{at(10)}.parquet" for attempt in range(2)]
    assert paths == (f"p/.a-0_{at(20)}.log.1_0-0-0", *files)
    assert table.plan(CleanRules(commits_retained=2))[P].paths == paths


def test_a_pending_compaction_keeps_its_slice_and_what_follows() -> None:
    table = updated(5)
    needed = Needed(compactions={FileGroupId(P, FileId("a-0")): at(20)})
    assert instants_of(table.plan(CleanRules(commits_retained=1), needed)[P].paths) == ["10"]
    rules = CleanRules(VERSIONS, file_versions_retained=1)
    assert instants_of(table.plan(rules, needed)[P].paths) == ["10"]


def test_savepointed_files_stay_with_their_slice() -> None:
    table = updated(5)
    needed = Needed(savepointed={("p", f"a-0_0-0-0_{at(20)}.parquet")})
    assert instants_of(table.plan(CleanRules(commits_retained=1), needed)[P].paths) == ["10", "30"]
    other = Needed(savepointed={("q", f"a-0_0-0-0_{at(20)}.parquet")})
    assert len(table.plan(CleanRules(commits_retained=1), other)[P].paths) == 3


# --- clean: replaced groups and partitions
def replaced_table() -> Table:
    table = Table()
    table.write(10, {P: ["a", "b"], Q: ["c"]})
    table.write(20, {P: ["d"]}, gone={"p": ("a",), "q": ("c",)})
    return table


def test_replaced_groups_stay_until_nobody_reads_them() -> None:
    table = replaced_table()
    table.write(30, {P: ["b"]})
    assert table.plan(CleanRules(commits_retained=2))[P].paths == ()
    table.write(40, {P: ["b"]})
    plan = table.plan(CleanRules(commits_retained=2))
    assert [path.split("_")[0] for path in plan[P].paths] == ["p/a-0"]
    assert plan[Q] == PartitionClean((f"q/c-0_0-0-0_{at(10)}.parquet",), True, at(20))


def test_replaced_groups_lose_slices_that_nobody_reads() -> None:
    table = updated(4)
    table.write(50, {P: ["b"]}, gone={"p": ("a",)})
    plan = table.plan(CleanRules(commits_retained=2))
    assert plan[P].paths == tuple(f"p/a-0_0-0-0_{at(time)}.parquet" for time in (10, 20))


def test_under_versions_replaced_groups_go_at_once() -> None:
    plan = replaced_table().plan(CleanRules(VERSIONS))
    assert [len(plan[P].paths), len(plan[Q].paths), plan[Q].drop] == [1, 1, True]
    # the folder of a table without partitions is never dropped
    table, root = Table(), PartitionPath("")
    table.write(10, {root: ["a"]})
    table.write(20, gone={"": ("a",)})
    expected = PartitionClean((f"a-0_0-0-0_{at(10)}.parquet",), False, at(20))
    assert table.plan(CleanRules(VERSIONS))[root] == expected


@pytest.mark.parametrize("stays", ["pending", "savepoint"])
def test_a_partition_with_a_file_left_is_not_dropped(stays: str) -> None:
    table = replaced_table()
    needed = NOTHING
    if stays == "pending":
        table.files[Q].add(f"z-0_0-0-0_{at(99)}.parquet")
    else:
        table.files[Q].add(f"y-0_0-0-0_{at(10)}.parquet")
        both = ReplaceCommitMetadata(partition_to_replace_file_ids={"q": ("c-0", "y-0")})
        table.metadata[table.instants[1]] = both
        needed = Needed(savepointed={("q", f"y-0_0-0-0_{at(10)}.parquet")})
    plan = table.plan(CleanRules(VERSIONS), needed)
    assert plan[Q] == PartitionClean((f"q/c-0_0-0-0_{at(10)}.parquet",), False, at(20))


# --- clean: which partitions
def test_only_partitions_touched_since_the_last_clean_are_looked_at() -> None:
    table = Table()
    for n, name in enumerate("uvwxyz", 1):
        table.write(10 * n, {PartitionPath(name): ["a"]})
    table.write(70, gone={"r": ("b",)})
    table.write(80, {PartitionPath("t"): ["a"]})

    def touched(clean: CleanMetadata | None, savepoints: Sequence[InstantTime] = ()) -> object:
        retention = Retention(CleanRules(), table.instants[7])
        read = table.metadata.__getitem__
        return partitions_to_clean(table.timeline, retention, clean, savepoints, read)

    def last(earliest: int, *saved: int) -> CleanMetadata:
        extra = {SAVEPOINTED_KEY: ",".join(at(n) for n in saved)} if saved else None
        return CleanMetadata(at(99), 0, 0, at(earliest) if earliest else "", extra_metadata=extra)

    assert touched(last(40)) == {"x", "y", "z", "r"}
    assert touched(last(80)) == set()
    assert touched(last(40, 20), [at(20)]) == {"x", "y", "z", "r"}
    # all of them: no clean to go on from, its end archived, a savepoint deleted since
    for clean in (None, last(0), last(5), last(40, 20)):
        assert touched(clean) is None
    # what was completed since that clean, though it began before all that it retained
    late = replace(table.instants[1], completion_time=at(100))
    table.instants[1], table.metadata[late] = late, table.metadata[table.instants[1]]
    assert touched(last(40)) == {"v", "x", "y", "z", "r"}


def test_the_plan_is_hudis_with_absolute_paths() -> None:
    table = replaced_table()
    for n in range(3, 6):
        table.write(10 * n, {P: ["b"]})
    rules = CleanRules(commits_retained=2)
    retention = retain(table.timeline, rules, LATE)
    plan = make_clean_plan("/lake/t", retention, table.plan(rules), table.timeline, [at(50)])
    assert plan is not None
    named, paths = plan.earliest_instant_to_retain, plan.file_paths_to_be_deleted_per_partition
    assert named == ActionInstant(at(40), "commit", "COMPLETED")
    assert plan.last_completed_commit_timestamp == at(50)
    assert (plan.policy, plan.version) == ("KEEP_LATEST_COMMITS", 2)
    assert {path: [one.file_path for one in files] for path, files in (paths or {}).items()} == {
        "p": [f"/lake/t/p/{one}-0_0-0-0_{at(10)}.parquet" for one in "ab"],
        "q": [f"/lake/t/q/c-0_0-0-0_{at(10)}.parquet"],
    }
    assert plan.partitions_to_be_deleted == ("q",)
    assert plan.extra_metadata == {SAVEPOINTED_KEY: at(50)}
    assert make_clean_plan("/t", retention, {P: PartitionClean()}, table.timeline) is None


def test_the_plan_tells_since_when_every_state_has_its_files() -> None:
    table = updated(5)  # one group, written at 10 to 50

    def told(rules: CleanRules, before: InstantTime = EARLIEST) -> str | None:
        found = never_back(retain(table.timeline, rules, LATE), table.timeline, before)
        files = table.plan(rules, since=before)
        plan = make_clean_plan("/t", found, files, table.timeline, retained_since=before)
        return None if plan is None else (plan.extra_metadata or {}).get(RETAINED_SINCE_KEY)

    # what goes was superseded at 40 the last time
    assert told(CleanRules(VERSIONS, file_versions_retained=2)) == at(40)
    assert told(CleanRules(commits_retained=2)) == at(40)
    # earlier cleans may have retained less
    assert told(CleanRules(commits_retained=4), at(50)) == at(50)
    assert told(CleanRules(VERSIONS, file_versions_retained=2), at(50)) == at(50)


def test_the_earliest_write_retained_never_moves_back() -> None:
    table = updated(5)

    def earliest(rules: CleanRules, since: InstantTime) -> str | None:
        found = never_back(retain(table.timeline, rules, LATE), table.timeline, since).earliest
        return None if found is None else found.requested_time

    assert earliest(CleanRules(commits_retained=3), EARLIEST) == at(30)
    assert earliest(CleanRules(commits_retained=3), at(20)) == at(30)
    assert earliest(CleanRules(commits_retained=3), at(41)) == at(50)
    # a young table, and writes that were undone
    assert earliest(CleanRules(commits_retained=9), at(40)) == at(40)
    assert earliest(CleanRules(commits_retained=3), at(70)) == at(50)
    assert earliest(CleanRules(VERSIONS), at(40)) is None
    # what a write may be reading that began before stays
    table.write(25, state=State.INFLIGHT)
    assert earliest(CleanRules(commits_retained=1), at(20)) == at(20)
    assert earliest(CleanRules(commits_retained=1), at(40)) is None


KINDS = st.sampled_from(["base", "base", "log", "replace", "pending"])
IDS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True)
STEPS = st.lists(st.tuples(KINDS, st.sampled_from([P, Q]), IDS), min_size=1, max_size=14)
RULES = st.builds(
    CleanRules, st.sampled_from(CleanPolicy), st.integers(1, 6), st.integers(1, 4), st.just(0)
)


def view_as_of(table: Table, time: InstantTime) -> dict[FileGroupId, set[str]]:
    return {
        one.group: {log.status.name for log in one.log_files}
        | ({one.base_file.status.name} if one.base_file else set())
        for one in table.view().latest_slices(as_of=time)
    }


# --- clean: writers that overlap
WRITES = st.lists(st.tuples(IDS, st.integers(0, 4)), min_size=1, max_size=14)


@given(WRITES, RULES, st.integers(0, 13))
def test_nothing_goes_that_a_write_saw_when_it_began(
    writes: list[tuple[list[str], int]], rules: CleanRules, before: int
) -> None:
    table, began, ends = Table(), 10 * before + 1, dict.fromkeys("abc", 0)
    for n, (ids, lasts) in enumerate(writes):
        start, end = 10 * n, 10 * (n + lasts) + 5
        # of two writes of one file group that overlap one is refused
        mine = [one for one in ids if ends[one] <= start]
        ends |= dict.fromkeys(mine, end)
        table.write(start, {P: mine}, done=end)
    completed = table.instants
    table.instants = [one for one in completed if (one.completion_time or "") < at(began)]
    seen = view_as_of(table, at(began))
    table.instants = [*completed, Instant(at(began), Action.COMMIT, State.INFLIGHT)]
    table.delete(table.plan(rules))
    assert {name for names in seen.values() for name in names} <= table.files[P]


# --- clean: any history
@given(STEPS, RULES, st.lists(st.integers(0, 13), max_size=3))
def test_any_clean_keeps_every_view_it_promises_and_little_else(
    steps: list[tuple[str, PartitionPath, list[str]]], rules: CleanRules, cleans: list[int]
) -> None:
    table = Table()
    clean: CleanMetadata | None = None
    for n, (kind, path, drawn) in enumerate(steps):
        gone_before = {group.file_id[:-2] for group in table.replaced()}
        ids = [f"{one}{n}" if kind == "replace" or one in gone_before else one for one in drawn]
        alive = {one.file_id[:-2] for one in table.view().latest_slices([path])}
        gone = {str(path): tuple(sorted(alive))} if kind == "replace" else None
        state = State.INFLIGHT if kind == "pending" else State.COMPLETED
        base, logs = ({}, {path: ids}) if kind == "log" else ({path: ids}, {})
        table.write(10 * (n + 1), base, logs, gone, state)
        if n not in cleans and n < len(steps) - 1:
            continue
        now = to_datetime(at(10 * n))
        retention = retain(table.timeline, rules, now)
        times = [one.requested_time for one in table.timeline.completed_writes()]
        first = retention.earliest.requested_time if retention.earliest else "9"
        promised = [*(time for time in times if time >= first), *times[-1:]]
        before = {time: view_as_of(table, time) for time in promised}
        read = table.metadata.__getitem__
        looked_at = partitions_to_clean(table.timeline, retention, clean, [], read)
        full = table.plan(rules, now=now)
        if looked_at is not None:
            # what the incremental clean skips, a full one would leave alone as well
            assert all(not one.paths for path, one in full.items() if path not in looked_at)
        table.delete(full)
        assert {time: view_as_of(table, time) for time in promised} == before
        again = table.plan(rules, now=now)
        assert all(one == PartitionClean() for one in again.values())
        if retention.earliest:
            clean = CleanMetadata("", 0, 0, retention.earliest.requested_time)
    if rules.policy is VERSIONS and not table.timeline.pending():
        groups = [one for one in table.view().file_groups() if one.id not in table.replaced()]
        assert all(len(one.slices) <= rules.file_versions_retained for one in groups)


OLD = [f"{name}-0_0-0-0_{at(10)}.parquet" for name in "abc"]
LOG = f".a-0_{at(12)}.log.1_0-0-0"
NEW = f"a-0_0-0-0_{at(20)}.parquet"


def plan_of(*paths: str | None, partition: str = "p=1", drop: tuple[str, ...] = ()) -> CleanerPlan:
    files = {partition: tuple(CleanFileInfo(path, False) for path in paths)}
    return CleanerPlan(
        ActionInstant(at(20), "commit", "COMPLETED"),
        at(30),
        "KEEP_LATEST_COMMITS",
        {},
        file_paths_to_be_deleted_per_partition=files,
        partitions_to_be_deleted=drop,
        extra_metadata={"who": "asked"},
    )


def fill(root: Path) -> None:
    for partition, names in (("p=1", (*OLD, LOG, NEW)), ("q=2", OLD[:1])):
        (root / partition).mkdir(parents=True)
        for name in (*names, ".hoodie_partition_metadata"):
            (root / partition / name).write_text("data")


@pytest.fixture
def client(tmp_path: Path) -> TableMetaClient:
    fill(tmp_path / "t")
    return open_client(tmp_path / "t")


def whole_plan(root: str) -> CleanerPlan:
    plan = plan_of(*(f"{root}/p=1/{name}" for name in (OLD[0], OLD[1], LOG)), drop=("q=2",))
    files = dict(plan.file_paths_to_be_deleted_per_partition or {})
    files["q=2"] = (CleanFileInfo(f"{root}/q=2/{OLD[0]}", False),)
    return replace(plan, file_paths_to_be_deleted_per_partition=files)


def finish(client: TableMetaClient, instant: Instant) -> Instant:
    work = start_clean(client, instant)
    assert isinstance(work, CleanWork)
    return complete_clean(client, work, at(99), delete_cleaned(client, work))


def left(root: Path) -> set[str]:
    files = (file for file in root.rglob("*") if file.is_file())
    names = {str(file.relative_to(root)) for file in files}
    return {name for name in names if not name.startswith(".hoodie/")}


AFTER = {f"p=1/{name}" for name in (OLD[2], NEW, ".hoodie_partition_metadata")}


def test_a_clean_deletes_what_its_plan_names_and_says_so(client: TableMetaClient) -> None:
    root = Path(client.storage.root)
    plan = whole_plan(str(root))
    requested = request_clean(client, at(50), plan)
    assert decode_cleaner_plan(client.active.read(requested), "x") == plan
    assert left(root) > AFTER
    done = finish(client, requested)
    assert left(root) == AFTER
    assert sorted(file.name for file in (root / ".hoodie/timeline").iterdir()) == [
        f"{at(50)}.clean.inflight",
        f"{at(50)}.clean.requested",
        f"{at(50)}_{at(99)}.clean",
    ]
    metadata = decode_clean(client.active.read(done), "x")
    assert (metadata.start_clean_time, metadata.earliest_commit_to_retain) == (at(50), at(20))
    assert metadata.last_completed_commit_timestamp == at(30)
    assert (metadata.total_files_deleted, metadata.version) == (4, 2)
    assert metadata.extra_metadata == {"who": "asked"}
    first, second = metadata.partition_metadata["p=1"], metadata.partition_metadata["q=2"]
    assert first.success_delete_files == first.delete_path_patterns == (OLD[0], OLD[1], LOG)
    assert first.failed_delete_files == ()
    assert (first.policy, first.partition_path) == ("KEEP_LATEST_COMMITS", "p=1")
    assert (first.is_partition_deleted, second.is_partition_deleted) == (False, True)


def test_what_changed_since_the_plan(client: TableMetaClient) -> None:
    root = Path(client.storage.root)
    requested = request_clean(client, at(50), whole_plan(str(root)))
    (root / "q=2" / NEW).write_text("of a running write")
    (root / "p=1" / OLD[1]).unlink()
    metadata = decode_clean(client.active.read(finish(client, requested)), "x")
    assert metadata.total_files_deleted == 4, "files that are gone count as deleted"
    mark = "q=2/.hoodie_partition_metadata"
    assert left(root) == {*AFTER, f"q=2/{NEW}", mark}, "a partition that is filled again has one"


def test_the_work_is_shared_out(client: TableMetaClient, tmp_path: Path) -> None:
    asked: list[int] = []

    def run_map(function: Any, items: Sequence[Any]) -> Any:
        asked.append(len(items))
        return map(function, items)

    shared = open_client(tmp_path / "t", run_map=run_map)
    finish(shared, request_clean(shared, at(50), whole_plan(shared.storage.root)))
    # files are deleted many at a time, and then the marks of partitions that are empty
    assert asked == [1, 1, 1]
    assert left(tmp_path / "t") == AFTER


def test_a_crash_at_any_step_is_made_good(tmp_path: Path) -> None:
    template = tmp_path / "template"
    fill(template)

    def act(dying: TableMetaClient) -> object:
        pending = pending_cleans(dying.timeline())
        if pending:
            return finish(dying, pending[0])
        return finish(dying, request_clean(dying, at(50), whole_plan(dying.storage.root)))

    seen = 0
    for path in deaths(template, tmp_path / "copies", act):
        seen += 1
        client = open_client(path)
        survivors = left(path)
        assert survivors >= AFTER
        if client.timeline().first is None:
            assert len(survivors) == len(AFTER) + 5
        if not client.timeline().completed().instants:
            act(client)
        assert {name for name in left(path) if ".tmp" not in name} == AFTER
        [clean] = client.timeline()
        assert clean == Instant(at(50), Action.CLEAN, State.COMPLETED, at(99))
        metadata = decode_clean(client.active.read(clean), "x")
        assert metadata.total_files_deleted == 4
    assert seen * DEATHS_APART > 30


def test_an_empty_plan_is_dropped(client: TableMetaClient) -> None:
    clean = client.active.create_requested(Instant(at(50), Action.CLEAN, State.REQUESTED))
    clean = client.active.to_inflight(clean)
    assert start_clean(client, clean) is None
    assert client.timeline().instants == ()


def test_plans_of_version_1_name_files_in_their_partition(client: TableMetaClient) -> None:
    plan = replace(
        plan_of(),
        version=1,
        files_to_be_deleted_per_partition={"p=1": (OLD[0],)},
        file_paths_to_be_deleted_per_partition=None,
        partitions_to_be_deleted=None,
    )
    finish(client, request_clean(client, at(50), plan))
    assert f"p=1/{OLD[0]}" not in left(Path(client.storage.root))


def test_other_spellings_of_the_table_are_accepted(client: TableMetaClient) -> None:
    root = client.storage.root
    plan = plan_of(f"file:{root}/p=1/{OLD[0]}", f"file://{root}/p=1/{OLD[1]}")
    finish(client, request_clean(client, at(50), plan))
    assert not {f"p=1/{OLD[0]}", f"p=1/{OLD[1]}"} & left(Path(root))


def test_bootstrapped_files_are_refused(client: TableMetaClient) -> None:
    info = CleanFileInfo("/elsewhere/x.parquet", True)
    plan = replace(plan_of(), file_paths_to_be_deleted_per_partition={"p=1": (info,)})
    with pytest.raises(TableServiceError, match="with Apache Hudi"):
        request_clean(client, at(50), plan)


@pytest.mark.parametrize(
    "path",
    [
        *(None, "", "{root}/{old}", "{root}2/p=1/{old}", "{root}/q=2/{old}", "p=1/{old}"),
        *("/elsewhere/p=1/{old}", "{root}/../p=1/{old}", "{root}/p=1/../p=1/{old}"),
        *("{root}/p=1/../../{old}", "{root}/p=1/x/{old}", "{root}/p=1//{old}", "file:p=1/{old}"),
        *("{root}/p=1/.hoodie_partition_metadata", "{root}/p=1/plain.parquet"),
        *("{root}/.hoodie/hoodie.properties", "{root}/.hoodie/timeline/{old}"),
        *("s3a://bucket{root}/p=1/{old}", "{root}/p=1/{old}\0"),
    ],
)
def test_a_forged_plan_deletes_nothing(client: TableMetaClient, path: str | None) -> None:
    root = client.storage.root
    refuse(client, plan_of(f"{root}/p=1/{OLD[1]}", path and path.format(root=root, old=OLD[0])))


@pytest.mark.parametrize(
    "partition",
    ["..", "../t/p=1", "/etc", ".hoodie", ".hoodie/timeline", "p=1/../..", "p=1//x", "."],
)
@pytest.mark.parametrize("place", ["files", "old files", "dropped"])
def test_forged_partitions_are_refused(client: TableMetaClient, partition: str, place: str) -> None:
    plan = plan_of(drop=(partition,) if place == "dropped" else ())
    if place == "files":
        path = f"{client.storage.root}/{partition}/{OLD[0]}"
        plan = plan_of(path, partition=partition)
    if place == "old files":
        plan = replace(plan, files_to_be_deleted_per_partition={partition: (OLD[0],)})
    refuse(client, plan)


@pytest.mark.parametrize("name", ["../x", f"../q=2/{OLD[0]}", f"x/{OLD[0]}", "plain", ""])
def test_forged_names_are_refused(client: TableMetaClient, name: str) -> None:
    refuse(client, replace(plan_of(), files_to_be_deleted_per_partition={"p=1": (name,)}))


def refuse(client: TableMetaClient, plan: CleanerPlan) -> None:
    clean = Instant(at(50), Action.CLEAN, State.REQUESTED)
    client.active.create_requested(clean, encode(plan))
    whole = left(Path(client.storage.root))
    with pytest.raises(CorruptMetadataError, match="Nothing was deleted") as caught:
        start_clean(client, clean)
    assert caught.value.path == f"{client.storage.root}/{client.active.path(clean)}"
    assert left(Path(client.storage.root)) == whole
    assert client.timeline().instants == (clean,)


def test_a_link_out_of_the_table_is_not_followed(client: TableMetaClient, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / OLD[0]).write_text("not yours")
    (tmp_path / "t" / "r=3").symlink_to(outside)
    plan = plan_of(f"{client.storage.root}/r=3/{OLD[0]}", partition="r=3")
    with pytest.raises(HudiError) as caught:
        finish(client, request_clean(client, at(50), plan))
    assert isinstance(caught.value, UnsafePathError)
    assert (outside / OLD[0]).exists()
