"""Stored rollback plans: spellings of paths that are accepted, and those that are not."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.actions.rollback import make_plan, relative_files
from hudi_core.errors import CorruptMetadataError
from hudi_core.model.actions import InstantInfo, RollbackPlan, RollbackRequest
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import parse_instant_time
from hudi_core.timeline.serde import decode_record, encode

TIME = parse_instant_time("20260101000000000")
OTHER = parse_instant_time("20260102000000000")
OWN = f"{uuid.UUID(int=7)}-0_0-0-0_{TIME}.parquet"
SCHEMA = pa.schema([("id", pa.string())])
LOCAL, S3, TOP, AZURE = (
    "/lake/my table",
    "s3://bucket/lake/t",
    "s3://bucket",
    "abfss://c@account.dfs.core.windows.net/t",
)


def plan_of(path: str) -> RollbackPlan:
    request = RollbackRequest("x", None, TIME, (path,))
    return RollbackPlan(InstantInfo(TIME, "commit"), (request,))


def test_hudi_takes_no_null_for_the_log_blocks_of_a_rollback() -> None:
    """Its rollback ends with a NullPointerException, as `make interop` shows."""
    target = Instant(TIME, Action.COMMIT, State.INFLIGHT)
    plan = make_plan(LOCAL, target, {PartitionPath("x"): [OWN], PartitionPath("y"): []})
    stored = decode_record(encode(plan), "plan").fields["RollbackRequests"]
    assert [one["logBlocksToBeDeleted"] for one in stored] == [{}, {}]


@pytest.mark.parametrize(
    ("root", "path"),
    [
        (LOCAL, f"{LOCAL}/x/{OWN}"),
        (LOCAL, f"file:{LOCAL}/x/{OWN}"),
        (LOCAL, f"file://{LOCAL}/x/{OWN}"),
        (S3, f"{S3}/x/{OWN}"),
        (S3, f"s3a://bucket/lake/t/x/{OWN}"),
        (S3.replace("s3", "s3a"), f"{S3}/x/{OWN}"),
        (TOP, f"s3a://bucket/x/{OWN}"),
        (AZURE, f"{AZURE}/x/{OWN}"),
        (AZURE, f"abfs://c/t/x/{OWN}"),
        ("memory://m/t", f"memory://m/t/x/{OWN}"),
        ("gs://bucket/t", f"gs://bucket/t/x/{OWN}"),
    ],
)
def test_other_spellings_of_a_place(root: str, path: str) -> None:
    assert relative_files(plan_of(path), root, TIME, "plan") == [("x", f"x/{OWN}")]


@pytest.mark.parametrize(
    ("root", "path"),
    [
        (LOCAL, f"file:/elsewhere/x/{OWN}"),
        (LOCAL, f"file:{LOCAL}2/x/{OWN}"),
        (LOCAL, f"file:{LOCAL}/../x/{OWN}"),
        (LOCAL, f"file:{LOCAL}/x/../x/{OWN}"),
        (LOCAL, f"file:/lake/../{LOCAL}/x/{OWN}"),
        (LOCAL, f"/a/..{LOCAL}/x/{OWN}"),
        (LOCAL, f"file:/a/..{LOCAL}/x/{OWN}"),
        (LOCAL, f"file:{LOCAL}/x//{OWN}"),
        (LOCAL, f"file:///{LOCAL}/x/{OWN}"),
        (LOCAL, f"file://host{LOCAL}/x/{OWN}"),
        (LOCAL, f"file:{LOCAL}/x/{OWN}/"),
        (LOCAL, f"file:{LOCAL}/.hoodie/{OWN}"),
        (LOCAL, f"file:{LOCAL}/x/{OWN.replace(TIME, OTHER)}"),
        (LOCAL, f"file:{LOCAL}/x/{OWN}\0"),
        (LOCAL, f"file:{LOCAL}"),
        (LOCAL, "file:"),
        (LOCAL, ""),
        (LOCAL, f"x/{OWN}"),
        (LOCAL, f"file:x/{OWN}"),
        (LOCAL, f"hdfs://host{LOCAL}/x/{OWN}"),
        (LOCAL, f"s3a://bucket{LOCAL}/x/{OWN}"),
        (S3, f"s3a://other/lake/t/x/{OWN}"),
        (S3, f"s3a://bucket/lake/t2/x/{OWN}"),
        (S3, f"s3a://bucket/lake/t/../t/x/{OWN}"),
        (S3, f"gs://bucket/lake/t/x/{OWN}"),
        (S3, f"s3a://user:secret@bucket/lake/t/x/{OWN}"),
        (S3, f"lake/t/x/{OWN}"),
        (TOP, f"s3a://bucket/.hoodie/{OWN}"),
        (TOP, f"s3a://bucket//x/{OWN}"),
        (AZURE, AZURE.replace("account", "other") + f"/x/{OWN}"),
    ],
)
def test_what_is_not_surely_inside_is_refused(root: str, path: str) -> None:
    with pytest.raises(CorruptMetadataError, match="Nothing was deleted"):
        relative_files(plan_of(path), root, TIME, "plan")


def test_relative_paths_are_refused_in_the_table_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (f"x/{OWN}", f"file:x/{OWN}", f"./x/{OWN}"):
        with pytest.raises(CorruptMetadataError):
            relative_files(plan_of(path), str(tmp_path), TIME, "plan")


@pytest.mark.parametrize("scheme", ["file:", "file://"])
def test_a_rollback_that_hudi_began_is_finished(scheme: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = hudi.Table.create(
        str(path), SCHEMA, name="t", record_key="id", options={"hoodie.fs.fsync": "false"}
    )
    table.insert(pa.table({"id": ["a"]}, SCHEMA))
    timeline = path / ".hoodie/timeline"
    for name in (f"{TIME}.commit.requested", f"{TIME}.inflight"):
        (timeline / name).touch()
    (path / OWN).write_text("half")
    plan = timeline / f"{TIME[:-1]}9.rollback.requested"
    plan.write_bytes(encode(plan_of(f"{scheme}{path}/{OWN}")))
    table.insert(pa.table({"id": ["b"]}, SCHEMA))
    assert not (path / OWN).exists()
    assert not list(timeline.glob(f"{TIME}*"))
    assert sorted(table.to_arrow()["id"].to_pylist()) == ["a", "b"]
