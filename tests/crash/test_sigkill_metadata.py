"""What is done about a metadata table is cut short at any step: readers stay right, and the next
writer makes good.

It is made, committed to, compacted, cleaned, archived, added to, partly dropped, deleted, and made
good after another one died (``mend``). At one step of these the process dies, before it, after it
or with half of its bytes written; or the step fails, and what was begun must be undone, and must
succeed when it is done once more.

Some steps are drawn; ``HUDI_CRASHES=all`` takes all of them. How many steps of which kind each
scene has is in ``metadata_steps.json``: a call that is not known to it fails the test
(``HUDI_PIN=1`` rewrites it).
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hudi import HudiTableBuilder

from hudi_core.metadata.table import StoredPartitions, metadata_client
from hudi_core.model.files import BaseFileName, LogFileName
from hudi_core.storage.posix_reader import TEMPORARY_PREFIX
from tests.crash.counting_storage import ERRORS, KILLS, Fault, in_fork, pinned
from tests.crash.metadata_scenes import (
    BATCH,
    COLUMNS,
    LAST,
    SCENES,
    Report,
    Rows,
    Scene,
    own_rows,
    pending_instants,
    play,
    play_and_keep,
    play_twice,
    prepare_table,
    upsert,
    write_next,
)
from tests.property.test_metadata_model import check_metadata, client_of
from tests.samples import sampled

PINNED = Path(__file__).with_name("metadata_steps.json")
STEPS = {
    name: sum(json.loads(PINNED.read_text()).get(name, {"not counted yet": 1}).values())
    for name in SCENES
}
STATES = 2
"""States of the disk that are looked at where not all are."""
TOGETHER = 20
"""Steps of which one test fails each, where all are taken."""
PAIRS = 6
ALL_PAIRS = 200
IS_ALL = os.environ.get("HUDI_CRASHES") == "all"
UNKNOWN = "CommitStateUnknownError"


class Templates:
    """The tables of the scenes, made when they are asked for, and their steps, counted then.

    All are at one path when they are used, for plans on a timeline name files by whole paths.
    """

    def __init__(self, folder: Path) -> None:
        self._kept = folder / "kept"
        self._path = folder / "table"
        self._reports: dict[str, Report] = {}

    def report(self, name: str) -> Report:
        """Return what happens where nothing goes wrong."""
        if name not in self._reports:
            scene = SCENES[name]
            shutil.rmtree(self._path, ignore_errors=True)
            prepare_table(self._path, scene)
            self.keep(name)
            done = in_fork(play, str(self._path), scene, None)
            assert done.status == 0
            self._reports[name] = done.answer
            assert (done.answer.error, done.answer.warnings) == (None, [])
            assert read(self._path) == scene.new
            check_finished(self._path, scene, scene.new)
        return self._reports[name]

    def keep(self, name: str) -> None:
        """Keep the table as it is now."""
        shutil.copytree(self._path, self._kept / name)

    def copy(self, name: str) -> Path:
        """Return a table as it was kept."""
        shutil.rmtree(self._path, ignore_errors=True)
        shutil.copytree(self._kept / name, self._path)
        return self._path


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    return Templates(tmp_path_factory.mktemp("scenes"))


def read(path: Path) -> Rows:
    """Return what both readers see; it must be the same."""
    builder = HudiTableBuilder.from_base_uri(str(path))
    batches = builder.with_option("hoodie.metadata.enable", "true").build().read()
    rows = [row for batch in batches for row in batch.to_pylist()]
    found = [(row["id"], row["part"], row["ts"]) for row in rows]
    own = own_rows(str(path))
    assert own == set(found)
    assert len(own) == len(found)
    return own


# --- counting
@pytest.mark.parametrize("name", SCENES)
def test_the_steps_of_a_scene_are_known(name: str, templates: Templates) -> None:
    assert pinned(PINNED, {name: templates.report(name).names}) == {}


# --- dying
@pytest.mark.parametrize("name", sampled(list(SCENES), 4))
def test_the_disk_reads_and_mends_as_it_is_at_every_step(
    name: str, templates: Templates, tmp_path: Path
) -> None:
    templates.report(name)
    path = templates.copy(name)
    states = in_fork(play_and_keep, str(path), SCENES[name], str(tmp_path)).answer
    assert {one.at for one in states} == set(range(1, STEPS[name] + 1))
    for state in states if IS_ALL else random.Random(name).sample(states, STATES):
        shutil.rmtree(path)
        shutil.move(state.path, path)
        check_aftermath(path, SCENES[name], state)


class Part(NamedTuple):
    """Some steps of a scene, and how each goes wrong."""

    name: str
    how: str
    first: int
    last: int


def parts(hows: Sequence[str], seed: int, *, is_all: bool) -> list[Part]:
    """Return what is tried: all steps, or one of each scene."""
    if is_all:
        return [
            Part(name, how, first, min(first + TOGETHER - 1, count))
            for name, count in STEPS.items()
            for first in range(1, count + 1, TOGETHER)
            for how in hows
        ]
    drawn = random.Random(seed)
    some = [(name, drawn.choice(hows), drawn.randint(1, STEPS[name])) for name in SCENES]
    return [Part(name, how, at, at) for name, how, at in some]


def said(part: Part) -> str:
    return "-".join(map(str, part))


def faults(part: Part, templates: Templates) -> Iterator[Fault]:
    """Yield the faults of some steps, where they are not the same as others."""
    tearable = templates.report(part.name).tearable
    for at in range(part.first, part.last + 1):
        if not IS_ALL or not part.how.endswith("torn") or at in tearable:
            yield Fault(at, part.how)


@pytest.mark.parametrize("part", parts(KILLS, 15, is_all=False), ids=said)
def test_whoever_dies_leaves_a_table_that_reads_and_mends(part: Part, templates: Templates) -> None:
    """The same by processes that really die, for a few."""
    for fault in faults(part, templates):
        path = templates.copy(part.name)
        assert in_fork(play, str(path), SCENES[part.name], fault).is_killed, fault
        check_aftermath(path, SCENES[part.name], fault)


def check_aftermath(path: Path, scene: Scene, at: object) -> None:
    held = read(path)
    assert held in (scene.old, scene.new), at
    check_metadata(path, must=False, columns=COLUMNS)
    assert write_next(str(path), scene) == [], at
    # what goes on does so before anything else is written
    rows = scene.new if scene.goes_on and scene.new | {LAST} == read(path) else held
    check_finished(path, scene, rows | {LAST})


def check_finished(path: Path, scene: Scene, rows: Rows) -> None:
    """Nothing is left to do, nor of what was not done."""
    assert read(path) == rows
    client = client_of(path)
    partitions = StoredPartitions.of(client.as_stored().config)
    assert partitions.building == ()
    if not partitions.complete:
        # deleted, and nobody has written since
        assert scene is SCENES["delete"]
        return
    check_metadata(path, must=True, columns=COLUMNS)
    assert pending_instants(str(path)) == []
    own = metadata_client(client)
    instants = own.timeline().instants
    assert {one.action for one in instants} >= scene.services
    known = {one.requested_time for one in instants}
    known |= {one.instant.requested_time for one in own.archived.load()}
    folder = path / ".hoodie/metadata"
    assert {one.name for one in folder.iterdir() if one.name[0] != "."} == set(partitions.complete)
    for file in folder.glob("[!.]*/*"):
        name = BaseFileName.parse(file.name) or LogFileName.parse(file.name)
        is_mark = file.name == ".hoodie_partition_metadata"
        is_hidden = file.name.startswith(TEMPORARY_PREFIX)
        assert is_mark or is_hidden or (name is not None and name.instant in known), file
    assert not [file for file in (path / ".hoodie/.temp").rglob("*") if file.is_file()]


def moments() -> Iterator[tuple[str, float, float]]:
    drawn = random.Random(93)
    for number in range(ALL_PAIRS if IS_ALL else PAIRS):
        yield list(STEPS)[number % len(STEPS)], drawn.random(), drawn.random()


@pytest.mark.parametrize(("name", "first", "second"), list(moments()))
def test_whoever_makes_good_may_die_as_well(
    name: str, first: float, second: float, templates: Templates
) -> None:
    at = 1 + int(first * len(templates.report(name).names))
    scene, path = SCENES[name], templates.copy(name)
    assert in_fork(play, str(path), scene, Fault(at, "torn")).is_killed
    held = read(path)
    written = frozenset(row for row in held if row[0] not in {one[0] for one in BATCH}) | BATCH
    after = replace(scene, act=upsert, old=held, new=written)
    cut = f"{name} cut short at {at}"
    templates.keep(cut)
    steps = len(in_fork(play, str(path), after, None).answer.names)
    templates.copy(cut)
    assert in_fork(play, str(path), after, Fault(1 + int(second * steps), "torn")).is_killed
    check_aftermath(path, after, (name, first, second))


# --- failing
@pytest.mark.parametrize("part", parts(ERRORS, 16, is_all=IS_ALL), ids=said)
def test_what_fails_is_undone_and_succeeds_the_next_time(part: Part, templates: Templates) -> None:
    scene = SCENES[part.name]
    for fault in faults(part, templates):
        path = templates.copy(part.name)
        check_failure(path, scene, fault)


def check_failure(path: Path, scene: Scene, fault: Fault) -> None:
    ended = in_fork(play_twice, str(path), scene, fault)
    assert ended.status == 0, fault
    failed, rows, pending, retried = ended.answer
    if failed.error is None:
        assert rows == scene.new, fault
    elif failed.error != UNKNOWN:
        assert rows == scene.old or (scene.goes_on and rows == scene.new), fault
        # a rollback, with what it tells the metadata table, is left for the next writer to finish
        undoing = {one[:17] for one in pending if ".rollback" in one}
        assert scene.goes_on or {one[:17] for one in pending} == undoing, fault
    if retried is not None:
        # what is there already cannot be made, nor what is gone be deleted
        assert retried.error in (None, "TableServiceError"), fault
    assert read(path) == scene.new, fault
    following = in_fork(write_next, str(path), scene)
    assert following == (0, []), fault
    check_finished(path, scene, scene.new | {LAST})
