"""Tables that are damaged, forged, or more than this release knows: named, and left."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.actions.rollback import make_plan, relative_files
from hudi_core.config.storage_move import StorageMove
from hudi_core.errors import (
    CorruptMetadataError,
    HudiError,
    NotATableError,
    SchemaError,
    UnsupportedTableError,
)
from hudi_core.metadata.log.completeness import _decoded
from hudi_core.model.actions import InstantInfo, RollbackPlan, RollbackRequest
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import parse_instant_time
from hudi_core.read.connector.predicate import TupleDomain
from hudi_core.read.connector.splits import Split
from hudi_core.services.adoption.adopt import AdoptionRecord
from hudi_core.storage.claims import Claim
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import update_properties
from hudi_core.timeline.serde import decode_record, encode
from hudi_core.txn.creation import creation_folders
from tests.tables import copied, new_table, rows
from tests.unit.refusals import refused

DEAD = parse_instant_time("20260101000000000")
"""Instant of a writer that died, long before anything else in the table."""
OWN = f"{uuid.UUID(int=7)}-0_0-0-0_{DEAD}.parquet"
OF_ANOTHER = OWN.replace(DEAD, "20260102000000000")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give a table with one committed row, in a folder with something else in it."""
    (tmp_path / "victim.parquet").write_text("not yours")
    copied(tmp_path / "table", new_table, rows("a", part="x"), name="damaged")
    return tmp_path / "table"


def ids(path: Path) -> list[str]:
    return sorted(hudi.Table.open(path).to_arrow("id").column(0).to_pylist())


def upsert(path: Path, *new: str) -> None:
    hudi.Table.open(path).upsert(rows(*new, part="x"))


def overwrite(path: Path, mode: Any = "append") -> None:
    hudi.write(rows("b", part="x"), path, mode)


def committed(path: Path) -> Path:
    return next((path / ".hoodie/timeline").glob("*.commit"))


def committed_file(path: Path) -> Path:
    return next((path / "x").glob("*.parquet"))


# --- hoodie.properties
# ----------------------------------------------------------------------------


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


@pytest.mark.parametrize(
    "damage",
    [cut, lambda data: data.replace(b"=damaged", b"=damage"), lambda _: b"", lambda _: b"\xff\x00"],
)
def test_damaged_properties(damage: Callable[[bytes], bytes], path: Path) -> None:
    properties = path / ".hoodie/hoodie.properties"
    whole = properties.read_bytes()
    properties.write_bytes(damage(whole))
    for action in (hudi.Table.open, overwrite, lambda path: overwrite(path, "overwrite")):
        with refused(path, CorruptMetadataError, "hoodie.properties", "backup"):
            action(path)
    # a change of the properties that was cut off leaves the backup
    (path / ".hoodie/hoodie.properties.backup").write_bytes(whole)
    assert ids(path) == ["a"]
    upsert(path, "b")
    assert ids(path) == ["a", "b"]
    assert hudi.Table.open(path).config.name == "damaged"


def test_missing_properties(path: Path) -> None:
    properties = path / ".hoodie/hoodie.properties"
    properties.rename(path / ".hoodie/hoodie.properties.backup")
    upsert(path, "b")
    assert ids(path) == ["a", "b"]
    for left in (path / ".hoodie").glob("hoodie.properties*"):
        left.unlink()
    with refused(path, NotATableError, "hoodie.properties"):
        hudi.Table.open(path)


# --- the timeline
# ---------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [cut, lambda _: b"", lambda data: data[:-3] + b"xyz"])
def test_a_damaged_instant_is_named(damage: Callable[[bytes], bytes], path: Path) -> None:
    instant = committed(path)
    instant.write_bytes(damage(instant.read_bytes()))
    for action in (ids, upsert, lambda path: hudi.Table.open(path).incremental()):
        with refused(path, CorruptMetadataError, instant.name):
            action(path)


def test_a_damaged_plan_is_named(path: Path) -> None:
    plan = path / f".hoodie/timeline/{DEAD}.rollback.requested"
    plan.write_bytes(cut(committed(path).read_bytes()))
    assert ids(path) == ["a"]
    with refused(path, CorruptMetadataError, plan.name):
        upsert(path, "b")


@pytest.mark.parametrize(
    ("action", "state"),
    [
        ("indexing", "requested"),
        ("frobnication", "requested"),
    ],
)
def test_pending_actions_of_others_stop_writers(action: str, state: str, path: Path) -> None:
    (path / f".hoodie/timeline/{DEAD}.{action}.{state}").touch()
    with refused(path, UnsupportedTableError, DEAD, action, "finish or roll"):
        upsert(path, "b")
    with refused(path, UnsupportedTableError, DEAD, action):
        hudi.Table.open(path).rollback(committed(path).name[:17])
    assert ids(path) == ["a"]


@pytest.mark.parametrize("action", ["compaction", "logcompaction"])
def test_a_compaction_without_its_plan_stops_writers(action: str, path: Path) -> None:
    (path / f".hoodie/timeline/{DEAD}.{action}.requested").touch()
    with refused(path, CorruptMetadataError, f"{DEAD}.{action}.requested", "it is empty"):
        upsert(path, "b")
    assert ids(path) == ["a"]


def test_a_dead_writer_of_logs_is_rolled_back(path: Path) -> None:
    (path / f".hoodie/timeline/{DEAD}.deltacommit.inflight").touch()
    upsert(path, "b")
    assert ids(path) == ["a", "b"]
    assert not list((path / ".hoodie/timeline").glob(f"{DEAD}.deltacommit*"))


def test_a_restore_without_its_plan_is_named(path: Path) -> None:
    (path / ".hoodie/timeline" / f"{DEAD}.restore.inflight").touch()
    with refused(path, CorruptMetadataError, f"{DEAD}.restore.requested", "backup"):
        upsert(path, "b")
    assert ids(path) == ["a"]


# --- features
# -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "unreadable"),
    [
        ("hoodie.bootstrap.base.path", "/elsewhere", True),
        ("hoodie.table.base.file.format", "ORC", True),
        ("hoodie.table.metadata.partitions", "expr_index_a,files", False),
        ("hoodie.table.metadata.partitions.inflight", "expr_index_a", False),
        ("hoodie.record.merge.mode", "CUSTOM", False),
    ],
)
def test_features_that_are_not_written(key: str, value: str, unreadable: bool, path: Path) -> None:
    update_properties(PosixStorage(str(path)), {key: value})
    words = value.split(",", maxsplit=1)[0] if key != "hoodie.bootstrap.base.path" else key
    for operation in ("insert", "bulk_insert", "upsert", "delete"):
        with refused(path, UnsupportedTableError, str(path), words):
            getattr(hudi.Table.open(path), operation)(rows("b", part="x"))
    with refused(path, UnsupportedTableError, words):
        overwrite(path)
    with refused(path, UnsupportedTableError, words):
        hudi.Table.open(path).rollback(committed(path).name[:17])
    if unreadable:
        with refused(path, UnsupportedTableError, words):
            ids(path)
    else:
        assert ids(path) == ["a"]


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        ("hoodie.table.version", "10", UnsupportedTableError),
        ("hoodie.table.format", "os:system", HudiError),
    ],
)
def test_tables_that_do_not_open(key: str, value: str, error: type[HudiError], path: Path) -> None:
    properties = path / ".hoodie/hoodie.properties"
    lines = properties.read_text().splitlines()
    others = [line for line in lines if not line.startswith((f"{key}=", "#"))]
    properties.write_text("\n".join([*others, f"{key}={value.replace(':', chr(92) + ':')}", ""]))
    for action in (hudi.Table.open, overwrite):
        with refused(path, error, value):
            action(path)


# --- forgeries
# ------------------------------------------------------------------------------------


def dead_writer(path: Path) -> Path:
    """Leave what a writer that died leaves: its instant and one data file."""
    timeline = path / ".hoodie/timeline"
    (timeline / f"{DEAD}.commit.requested").touch()
    (timeline / f"{DEAD}.inflight").touch()
    (path / "x" / OWN).write_text("half")
    return path / "x" / OWN


def plan_of(*paths: str) -> RollbackPlan:
    return RollbackPlan(InstantInfo(DEAD, "commit"), (RollbackRequest("x", None, DEAD, paths),))


def put_plan(path: Path, *paths: str) -> Path:
    """Leave a rollback of the dead writer that somebody requested."""
    plan = path / f".hoodie/timeline/{DEAD[:-1]}9.rollback.requested"
    plan.write_bytes(encode(plan_of(*paths)))
    return plan


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_rollback_of_the_dead_writer_is_finished(scheme: str, path: Path) -> None:
    file = dead_writer(path)
    put_plan(path, f"{scheme}{file}")
    upsert(path, "b")
    assert not file.exists()
    assert ids(path) == ["a", "b"]
    assert not list((path / ".hoodie/timeline").glob(f"{DEAD}*"))


@pytest.mark.parametrize(
    "target",
    [
        *("{outside}/victim.parquet", "{table}/../victim.parquet", "/etc/passwd"),
        *("{table}/x/../../victim.parquet", "{table}/x/./{own}", "{table}//x/{own}"),
        *("{table}/.hoodie/hoodie.properties", "{table}/.hoodie/{own}", "{table}/x/{committed}"),
        *("{table}", "x/{own}", "{table}2/x/{own}"),
    ],
)
@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_a_forged_plan_deletes_nothing(target: str, state: str, path: Path) -> None:
    data = committed_file(path)
    own = dead_writer(path)
    forged = target.format(outside=path.parent, table=path, own=OWN, committed=data.name)
    plan = put_plan(path, str(own), forged)  # right in all but one
    if state == "inflight":
        plan.with_suffix(".inflight").touch()
    with refused(path.parent, CorruptMetadataError, "rollback.requested", forged, "Nothing"):
        upsert(path, "b")
    assert ids(path) == ["a"]


@pytest.mark.parametrize(
    "marker",
    [
        "x/{committed}.marker.MERGE",
        "x/{own}.marker.EVIL",
        "x/victim.parquet.marker.CREATE",
        ".hoodie/{own}.marker.CREATE",
    ],
)
def test_a_forged_marker_deletes_nothing(marker: str, path: Path) -> None:
    name = marker.format(own=OWN, committed=committed_file(path).name)
    dead_writer(path)
    forged = path / f".hoodie/.temp/{DEAD}" / name
    forged.parent.mkdir(parents=True)
    forged.touch()
    with refused(path.parent, CorruptMetadataError, name, "Nothing was deleted"):
        upsert(path, "b")
    assert ids(path) == ["a"]


@pytest.mark.parametrize("how", ["listing", "marker", "plan"])
def test_a_link_out_of_the_table_is_not_followed(how: str, path: Path) -> None:
    own = dead_writer(path)
    outside = path.parent / "outside"
    outside.mkdir()
    victim = outside / own.name
    victim.write_text("not yours")
    (outside / ".hoodie_partition_metadata").touch()
    (path / "linked").symlink_to(outside)
    if how == "marker":
        marker = path / f".hoodie/.temp/{DEAD}/linked/{own.name}.marker.CREATE"
        marker.parent.mkdir(parents=True)
        marker.touch()
    elif how == "plan":
        put_plan(path, f"{path}/linked/{own.name}")
    try:
        upsert(path, "b")
    except HudiError as error:
        assert "linked" in str(error)  # noqa: PT017 - either way is right, if it is said why
    assert victim.read_text() == "not yours"


# --- JSON that is nested without end
DEEP = "[" * 100_000


FILES: Any = SimpleNamespace(root="memory://table", read=lambda *_: DEEP.encode())
"""A storage whose every file is such a text."""


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (lambda: Split.from_json(DEEP), SchemaError),
        (lambda: TupleDomain.from_json(DEEP, pa.schema([])), SchemaError),
        (lambda: Claim.decode(DEEP.encode(), "claim"), CorruptMetadataError),
        (lambda: AdoptionRecord.load(FILES), CorruptMetadataError),
        (lambda: creation_folders(FILES), CorruptMetadataError),
        # the parser of a stored property, whose caller names the file
        (lambda: StorageMove.parse(DEEP), ValueError),
    ],
)
def test_deep_json_is_damage(read: Callable[[], object], error: type[Exception]) -> None:
    with pytest.raises(error) as found:
        read()
    assert "Recursion" not in str(found.value)


def test_notes_of_somebody_else_are_nothing() -> None:
    assert _decoded(DEEP) == {}


LOCAL, S3, TOP = "/lake/my table", "s3://bucket/lake/t", "s3://bucket"
AZURE = "abfss://c@account.dfs.core.windows.net/t"


def test_hudi_takes_no_null_for_the_log_blocks_of_a_rollback() -> None:
    """Its rollback ends with a NullPointerException, as `make interop` shows."""
    target = Instant(DEAD, Action.COMMIT, State.INFLIGHT)
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
    assert relative_files(plan_of(path), root, DEAD, "plan") == [("x", f"x/{OWN}")]


OUTSIDE = {
    LOCAL: [
        *("", "file:", "x/OWN", "file:x/OWN", "ROOT2/x/OWN", "/a/..ROOT/x/OWN", "file:ROOT"),
        *("file:/a/..ROOT/x/OWN", "file:/lake/../ROOT/x/OWN", "file:/elsewhere/x/OWN"),
        *("hdfs://hostROOT/x/OWN", "file://hostROOT/x/OWN", "s3a://bucketROOT/x/OWN"),
        *("file:///ROOT/x/OWN", "file:ROOT/x/OWN/", "file:ROOT/x//OWN", "file:ROOT/x/OWN\0"),
        *("file:ROOT2/x/OWN", "file:ROOT/../x/OWN", "file:ROOT/x/../x/OWN"),
        *("file:ROOT/.hoodie/OWN", f"file:ROOT/x/{OF_ANOTHER}"),
    ],
    S3: [
        *("s3a://other/lake/t/x/OWN", "s3a://bucket/lake/t2/x/OWN", "gs://bucket/lake/t/x/OWN"),
        *("s3a://bucket/lake/t/../t/x/OWN", "s3a://user:secret@bucket/lake/t/x/OWN"),
        "lake/t/x/OWN",
    ],
    TOP: ["s3a://bucket/.hoodie/OWN", "s3a://bucket//x/OWN"],
    AZURE: [AZURE.replace("account", "other") + "/x/OWN"],
}


@pytest.mark.parametrize(
    ("root", "path"), [(root, path) for root, paths in OUTSIDE.items() for path in paths]
)
def test_what_is_not_surely_inside_is_refused(root: str, path: str) -> None:
    spelled = path.replace("ROOT", root).replace("OWN", OWN)
    with pytest.raises(CorruptMetadataError, match="Nothing was deleted"):
        relative_files(plan_of(spelled), root, DEAD, "plan")


def test_relative_paths_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (f"x/{OWN}", f"file:x/{OWN}", f"./x/{OWN}"):
        with pytest.raises(CorruptMetadataError):
            relative_files(plan_of(path), str(tmp_path), DEAD, "plan")
