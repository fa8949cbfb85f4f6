"""Tables that are damaged, forged, or more than this release knows: named, and left as they are."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import CorruptMetadataError, HudiError, NotATableError, UnsupportedTableError
from hudi_core.model.actions import InstantInfo, RollbackPlan, RollbackRequest
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import update_properties
from hudi_core.timeline.serde import encode
from tests.unit.refusals import refused

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string())])
DEAD = "20260101000000000"
"""Instant of a writer that died, long before anything else in the table."""


def rows(*ids: str) -> pa.Table:
    return pa.table({"id": list(ids), "part": ["x"] * len(ids)}, schema=SCHEMA)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give a table with one committed row, in a folder with something else in it."""
    (tmp_path / "victim.parquet").write_text("not yours")
    path = tmp_path / "table"
    table = hudi.Table.create(
        str(path),
        SCHEMA,
        name="damaged",
        record_key="id",
        partition_by="part",
        options={"hoodie.fs.fsync": "false"},
    )
    table.insert(rows("a"))
    return path


def ids(path: Path) -> list[str]:
    return sorted(hudi.Table.open(str(path)).to_arrow().column("id").to_pylist())


def upsert(path: Path, *new: str) -> None:
    hudi.Table.open(str(path)).upsert(rows(*new))


def committed(path: Path) -> Path:
    return next((path / ".hoodie/timeline").glob("*.commit"))


# --- hoodie.properties
# ----------------------------------------------------------------------------


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def other_checksum(data: bytes) -> bytes:
    return data.replace(b"hoodie.table.name=damaged", b"hoodie.table.name=damage")


@pytest.mark.parametrize("damage", [cut, other_checksum, lambda _: b"", lambda _: b"\xff\x00\xff"])
def test_damaged_properties(damage: Callable[[bytes], bytes], path: Path) -> None:
    properties = path / ".hoodie/hoodie.properties"
    whole = properties.read_bytes()
    properties.write_bytes(damage(whole))
    for action in (
        lambda: hudi.Table.open(str(path)),
        lambda: hudi.write(rows("b"), str(path)),
        lambda: hudi.write(rows("b"), str(path), "overwrite"),
    ):
        with refused(path, CorruptMetadataError, "hoodie.properties", "backup"):
            action()

    # a change of the properties that was cut off leaves the backup
    (path / ".hoodie/hoodie.properties.backup").write_bytes(whole)
    assert ids(path) == ["a"]
    upsert(path, "b")
    assert ids(path) == ["a", "b"]
    assert hudi.Table.open(str(path)).config.name == "damaged"


def test_missing_properties(path: Path) -> None:
    properties = path / ".hoodie/hoodie.properties"
    properties.rename(path / ".hoodie/hoodie.properties.backup")
    upsert(path, "b")
    assert ids(path) == ["a", "b"]
    for left in (path / ".hoodie").glob("hoodie.properties*"):
        left.unlink()
    with refused(path, NotATableError, "hoodie.properties"):
        hudi.Table.open(str(path))


# --- the timeline
# ---------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [cut, lambda _: b"", lambda data: data[:-3] + b"xyz"])
def test_a_damaged_instant_is_named(damage: Callable[[bytes], bytes], path: Path) -> None:
    instant = committed(path)
    instant.write_bytes(damage(instant.read_bytes()))
    for action in (
        lambda: ids(path),
        lambda: upsert(path, "b"),
        lambda: hudi.Table.open(str(path)).incremental(),
    ):
        with refused(path, CorruptMetadataError, instant.name):
            action()


def test_a_damaged_plan_is_named(path: Path) -> None:
    plan = path / f".hoodie/timeline/{DEAD}.rollback.requested"
    plan.write_bytes(cut(committed(path).read_bytes()))
    assert ids(path) == ["a"]
    with refused(path, CorruptMetadataError, plan.name):
        upsert(path, "b")


@pytest.mark.parametrize(
    "name",
    [
        f"{DEAD}.compaction.requested",
        f"{DEAD}.logcompaction.inflight",
        f"{DEAD}.deltacommit.inflight",
        f"{DEAD}.indexing.requested",
        f"{DEAD}.frobnication.requested",
    ],
)
def test_pending_actions_of_others_stop_writers(name: str, path: Path) -> None:
    (path / ".hoodie/timeline" / name).touch()
    action = name.split(".")[1]
    with refused(path, UnsupportedTableError, DEAD, action, "finish or roll"):
        upsert(path, "b")
    last = committed(path).name[:17]
    with refused(path, UnsupportedTableError, DEAD, action):
        hudi.Table.open(str(path)).rollback(last)
    assert ids(path) == ["a"]


def test_a_restore_without_its_plan_is_named(path: Path) -> None:
    (path / ".hoodie/timeline" / f"{DEAD}.restore.inflight").touch()
    with refused(path, CorruptMetadataError, f"{DEAD}.restore.requested", "backup"):
        upsert(path, "b")
    assert ids(path) == ["a"]


# --- features
# -------------------------------------------------------------------------------------

FEATURES = [
    ("hoodie.table.type", "MERGE_ON_READ", True),
    ("hoodie.bootstrap.base.path", "/elsewhere", True),
    ("hoodie.table.base.file.format", "ORC", True),
    ("hoodie.table.metadata.partitions", "expr_index_a,files", False),
    ("hoodie.table.metadata.partitions.inflight", "expr_index_a", False),
    ("hoodie.record.merge.mode", "CUSTOM", False),
]


@pytest.mark.parametrize(("key", "value", "unreadable"), FEATURES)
def test_features_that_are_not_written(key: str, value: str, unreadable: bool, path: Path) -> None:
    update_properties(PosixStorage(str(path)), {key: value})
    words = value.split(",", maxsplit=1)[0] if key != "hoodie.bootstrap.base.path" else key
    for operation in ("insert", "bulk_insert", "upsert", "delete"):
        with refused(path, UnsupportedTableError, str(path), words):
            getattr(hudi.Table.open(str(path)), operation)(rows("b"))
    with refused(path, UnsupportedTableError, words):
        hudi.write(rows("b"), str(path))
    with refused(path, UnsupportedTableError, words):
        hudi.Table.open(str(path)).rollback(committed(path).name[:17])
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
def test_tables_that_cannot_even_be_opened(
    key: str, value: str, error: type[HudiError], path: Path
) -> None:
    properties = path / ".hoodie/hoodie.properties"
    lines = [
        line
        for line in properties.read_text().splitlines()
        if not line.startswith((f"{key}=", "#", "hoodie.table.precombine"))
    ]
    properties.write_text("\n".join([*lines, f"{key}={value.replace(':', chr(92) + ':')}", ""]))
    for action in (lambda: hudi.Table.open(str(path)), lambda: hudi.write(rows("b"), str(path))):
        with refused(path, error, value):
            action()


# --- forgeries
# ------------------------------------------------------------------------------------


def dead_writer(path: Path) -> Path:
    """Leave what a writer that died leaves: its instant and one data file."""
    timeline = path / ".hoodie/timeline"
    (timeline / f"{DEAD}.commit.requested").touch()
    (timeline / f"{DEAD}.inflight").touch()
    file = path / "x" / f"{uuid.UUID(int=7)}-0_0-0-0_{DEAD}.parquet"
    file.write_text("half")
    return file


def plan_of(*paths: str) -> bytes:
    request = RollbackRequest("x", None, DEAD, paths)
    return encode(RollbackPlan(InstantInfo(DEAD, "commit"), (request,)))


def test_the_dead_writer_of_these_tests_is_rolled_back(path: Path) -> None:
    file = dead_writer(path)
    (path / f".hoodie/timeline/{DEAD[:-1]}9.rollback.requested").write_bytes(plan_of(str(file)))
    upsert(path, "b")
    assert not file.exists()
    assert ids(path) == ["a", "b"]
    assert not list((path / ".hoodie/timeline").glob(f"{DEAD}*"))


@pytest.mark.parametrize(
    "target",
    [
        "{outside}/victim.parquet",
        "{table}/../victim.parquet",
        "{table}/x/../../victim.parquet",
        "{table}/x/./{own}",
        "{table}//x/{own}",
        "{table}/.hoodie/hoodie.properties",
        "{table}/.hoodie/{own}",
        "{table}/x/{committed}",
        "{table}",
        "/etc/passwd",
        "x/{own}",
        "{table}2/x/{own}",
    ],
)
@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_a_forged_plan_deletes_nothing(target: str, state: str, path: Path) -> None:
    own = dead_writer(path)
    data = next(file for file in (path / "x").glob("*.parquet") if file != own)
    forged = target.format(outside=path.parent, table=path, own=own.name, committed=data.name)
    timeline = path / ".hoodie/timeline"
    # a plan that is right in all but one
    (timeline / f"{DEAD[:-1]}9.rollback.requested").write_bytes(plan_of(str(own), forged))
    if state == "inflight":
        (timeline / f"{DEAD[:-1]}9.rollback.inflight").touch()
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
    own = dead_writer(path)
    data = next(file for file in (path / "x").glob("*.parquet") if file != own)
    name = marker.format(own=own.name, committed=data.name)
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
        plan = path / f".hoodie/timeline/{DEAD[:-1]}9.rollback.requested"
        plan.write_bytes(plan_of(f"{path}/linked/{own.name}"))
    try:
        upsert(path, "b")
    except HudiError as error:
        assert "linked" in str(error)  # noqa: PT017 - either way is right, if it is said why
    assert victim.read_text() == "not yours"
