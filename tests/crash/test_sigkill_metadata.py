"""A writer of a table with a metadata table is killed: readers stay right, the next writer mends.

Writers die while they build the metadata table, while they commit to it, while they compact it, and
while they make good what another one left that died. A step of the disk is drawn for every case;
``HUDI_CRASHES=all`` takes every step.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import hudi as hudi_rs
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.metadata.table import metadata_client
from tests.property.test_metadata_model import check_metadata, client_of

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])
COLUMNS = (
    *("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key"),
    *SCHEMA.names,
)
INDEXED = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"}
FAST = {"hoodie.fs.fsync": "false"}
SAMPLE = 24
PARTS = 10
"""Tests that share out the steps of one scene, where every step is taken."""
HOWS = ("before", "after", "torn")
Rows = frozenset[tuple[str, str, int]]


class Nursery(Protocol):
    def run(self, **job: Any) -> dict[str, Any]: ...


class Scene(NamedTuple):
    """What a table is before the writer comes that dies, and what this one does.

    Attributes
    ----------
    created
        Options of the table.
    given
        Options of the writer.
    writes
        How many writes the table has.
    is_wounded
        Whether another writer died before, with its commit in the metadata table.
    """

    created: dict[str, str]
    given: dict[str, str]
    writes: int = 1
    is_wounded: bool = False


OFF = {"hoodie.metadata.enable": "false"}
SCENES = {
    "commit": Scene(INDEXED, INDEXED),
    "build": Scene(OFF, INDEXED),
    "compact": Scene(INDEXED, {**INDEXED, "hoodie.metadata.compact.max.delta.commits": "2"}, 3),
    "mend": Scene(INDEXED, INDEXED, 1, True),
}
BATCH = [("a", "x", 5), ("c", "y", 5), ("n", "z", 5)]


def named(*rows: tuple[str, str, int]) -> list[dict[str, Any]]:
    return [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]


def rows_of(found: list[dict[str, Any]]) -> Rows:
    return frozenset((row["id"], row["part"], row["ts"]) for row in found)


OLD = rows_of(named(("a", "x", 0), ("b", "x", 0), ("c", "y", 0), ("d", "y", 0)))
NEW = frozenset(row for row in OLD if row[0] not in ("a", "c")) | frozenset(BATCH)


def read(path: Path) -> Rows:
    """Return what both readers see; it must be the same."""
    own = rows_of(hudi.Table.open(str(path)).to_arrow().to_pylist())
    batches = hudi_rs.HudiTable(str(path)).read()
    assert rows_of([row for batch in batches for row in batch.to_pylist()]) == own
    return own


def job(path: Path, scene: Scene, **more: Any) -> dict[str, Any]:
    options = {**FAST, **scene.given}
    return {"path": str(path), "operation": "upsert", "rows": named(*BATCH), "options": options} | (
        more
    )


@pytest.fixture(scope="module")
def templates(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, made = tmp_path_factory.mktemp("templates"), {}
    for name, scene in SCENES.items():
        made[name] = folder / name
        table = hudi.Table.create(
            str(made[name]),
            SCHEMA,
            name="killed",
            record_key="id",
            partition_by="part",
            options={**FAST, **scene.created},
        )
        for _ in range(scene.writes):
            table.upsert(pa.Table.from_pylist(named(*OLD), SCHEMA))
        if scene.is_wounded:
            kill_between_the_completions(made[name], scene, nursery)
    return made


def kill_between_the_completions(path: Path, scene: Scene, nursery: Nursery) -> None:
    """Leave a write that is complete in the metadata table and nowhere else."""
    scratch = path.with_name("scratch")
    shutil.copytree(path, scratch)
    steps = nursery.run(**job(scratch, scene))["steps"]
    for at in range(steps, 0, -1):
        shutil.rmtree(scratch)
        shutil.copytree(path, scratch)
        nursery.run(**job(scratch, scene, at=at, how="before"))
        client = client_of(scratch)
        pending = {one.requested_time for one in client.timeline().pending()}
        if pending & {one.requested_time for one in metadata_client(client).timeline().completed()}:
            shutil.rmtree(path)
            scratch.rename(path)
            return
    raise AssertionError("no writer died between the two")


@pytest.fixture(scope="module")
def lengths(
    templates: dict[str, Path], nursery: Nursery, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, int]:
    folder, counted = tmp_path_factory.mktemp("lengths"), {}
    for name, template in templates.items():
        shutil.copytree(template, folder / name)
        answer = nursery.run(**job(folder / name, SCENES[name]))
        assert "steps" in answer, answer
        counted[name] = answer["steps"]
        assert read(folder / name) == NEW
        check_metadata(folder / name, must=True, columns=COLUMNS)
    return counted


def moments() -> Iterator[tuple[str, tuple[float, float], str]]:
    """Yield what dies, in which span of its steps, at each of these in turn, and how."""
    if os.environ.get("HUDI_CRASHES") == "all":
        spans = [(part / PARTS, (part + 1) / PARTS) for part in range(PARTS)]
        yield from ((name, span, how) for name in SCENES for span in spans for how in HOWS)
        return
    chosen = random.Random(15)
    for number in range(SAMPLE):
        share = chosen.random()
        yield list(SCENES)[number % len(SCENES)], (share, share), chosen.choice(HOWS)


def die_and_mend(path: Path, scene: Scene, nursery: Nursery, at: int, how: str) -> None:
    killed = nursery.run(**job(path, scene, at=at, how=how))
    assert killed == {"killed": signal.SIGKILL}
    held = read(path)
    assert held in (OLD, NEW)
    check_metadata(path, must=False, columns=COLUMNS)

    answer = nursery.run(**job(path, scene, rows=named(("q", "x", 9))))
    assert answer.get("instants"), answer
    assert read(path) == held | {("q", "x", 9)}
    check_metadata(path, must=True, columns=COLUMNS)
    client = client_of(path)
    for one in (client, metadata_client(client)):
        assert not one.timeline().pending().instants


@pytest.mark.parametrize(("name", "span", "how"), list(moments()))
def test_a_killed_writer_leaves_a_table_that_reads_and_mends(
    name: str,
    span: tuple[float, float],
    how: str,
    templates: dict[str, Path],
    lengths: dict[str, int],
    nursery: Nursery,
    tmp_path: Path,
) -> None:
    path, length = tmp_path / "table", lengths[name]
    first = 1 + int(span[0] * length)
    for at in range(first, max(first, int(span[1] * length)) + 1):
        shutil.copytree(templates[name], path)
        die_and_mend(path, SCENES[name], nursery, at, how)
        shutil.rmtree(path)
