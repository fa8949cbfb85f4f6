"""Carrying out a clean: its instants, its damage, its crashes, and plans by somebody else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_core.actions.clean import (
    CleanWork,
    complete_clean,
    delete_cleaned,
    pending_cleans,
    request_clean,
    start_clean,
)
from hudi_core.errors import CorruptMetadataError, HudiError, TableServiceError, UnsafePathError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.actions import ActionInstant, CleanerPlan, CleanFileInfo
from hudi_core.model.instant import Action, Instant, State
from hudi_core.timeline.serde import decode_clean, decode_cleaner_plan, encode
from tests.unit.mortal_tables import DEATHS_APART, at, deaths, open_client

OLD = [f"{name}-0_0-0-0_{at(10)}.parquet" for name in "abc"]
LOG = f".a-0_{at(12)}.log.1_0-0-0"
NEW = f"a-0_0-0-0_{at(20)}.parquet"


def plan_of(*paths: str | None, partition: str = "p=1", drop: tuple[str, ...] = ()) -> CleanerPlan:
    return CleanerPlan(
        ActionInstant(at(20), "commit", "COMPLETED"),
        at(30),
        "KEEP_LATEST_COMMITS",
        {},
        file_paths_to_be_deleted_per_partition={
            partition: tuple(CleanFileInfo(path, False) for path in paths)
        },
        partitions_to_be_deleted=drop,
        extra_metadata={"who": "asked"},
    )


def fill(root: Path) -> None:
    for path in [
        *(root / "p=1" / name for name in (*OLD, LOG, NEW)),
        root / "q=2" / OLD[0],
        root / "p=1" / ".hoodie_partition_metadata",
        root / "q=2" / ".hoodie_partition_metadata",
    ]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("data")


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


AFTER = {f"p=1/{OLD[2]}", f"p=1/{NEW}", "p=1/.hoodie_partition_metadata"}


def test_a_clean_deletes_what_its_plan_names_and_says_so(client: TableMetaClient) -> None:
    root = Path(client.storage.root)
    requested = request_clean(client, at(50), whole_plan(str(root)))
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


def test_a_partition_that_is_filled_again_keeps_its_mark(client: TableMetaClient) -> None:
    root = Path(client.storage.root)
    requested = request_clean(client, at(50), whole_plan(str(root)))
    (root / "q=2" / NEW).write_text("of a running write")
    finish(client, requested)
    assert left(root) == {*AFTER, f"q=2/{NEW}", "q=2/.hoodie_partition_metadata"}


def test_files_that_are_gone_count_as_deleted(client: TableMetaClient) -> None:
    root = Path(client.storage.root)
    requested = request_clean(client, at(50), whole_plan(str(root)))
    (root / "p=1" / OLD[1]).unlink()
    metadata = decode_clean(client.active.read(finish(client, requested)), "x")
    assert metadata.total_files_deleted == 4


def test_the_plan_survives_the_store(client: TableMetaClient) -> None:
    plan = whole_plan(client.storage.root)
    requested = request_clean(client, at(50), plan)
    assert decode_cleaner_plan(client.active.read(requested), "x") == plan


def test_the_work_is_shared_out(client: TableMetaClient, tmp_path: Path) -> None:
    asked: list[int] = []

    def run_map(function: Any, items: Sequence[Any]) -> Any:
        asked.append(len(items))
        return map(function, items)

    shared = open_client(tmp_path / "t", run_map=run_map)
    finish(shared, request_clean(shared, at(50), whole_plan(shared.storage.root)))
    assert asked == [4, 1]
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
        None,
        "",
        "/elsewhere/p=1/{old}",
        "{root}/../p=1/{old}",
        "{root}/p=1/../p=1/{old}",
        "{root}/p=1/../../{old}",
        "{root}2/p=1/{old}",
        "{root}/q=2/{old}",
        "{root}/{old}",
        "{root}/p=1/x/{old}",
        "{root}/p=1/.hoodie_partition_metadata",
        "{root}/p=1/plain.parquet",
        "{root}/.hoodie/hoodie.properties",
        "{root}/.hoodie/timeline/{old}",
        "p=1/{old}",
        "file:p=1/{old}",
        "s3a://bucket{root}/p=1/{old}",
        "{root}/p=1/{old}\0",
        "{root}/p=1//{old}",
    ],
)
def test_a_forged_plan_deletes_nothing(client: TableMetaClient, path: str | None) -> None:
    root = client.storage.root
    whole = left(Path(root))
    spelled = path and path.format(root=root, old=OLD[0])
    plan = plan_of(f"{root}/p=1/{OLD[1]}", spelled)
    refuse(client, plan)
    assert left(Path(root)) == whole


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
