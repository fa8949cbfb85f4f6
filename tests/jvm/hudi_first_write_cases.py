"""The first thing that a process of Hudi-Spark does is a write to a table of version 8.

By its defaults such a write raises the table to version 9. Each case has processes of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

import hudi_core as hudi
from tests.jvm.engines import HUDI, Engine, EngineError
from tests.jvm.histories import Model, Step, read_by_hudi, read_by_us
from tests.jvm.hudi_made_cases import PLAIN, agree
from tests.jvm.report import OwnFailureError, own_failure
from tests.jvm.writers import HudiSpark, Writer, ours

VERSION_8: Final = replace(PLAIN, version="8")
MADE: Final = Step("insert", range(6))
WRITTEN: Final = Step("upsert", [0, 1, 20], ts=2)


@contextmanager
def new_process(folder: Path) -> Iterator[Engine]:
    """A process of Hudi-Spark that has done nothing yet."""
    engine = Engine(HUDI, folder / "spark")
    try:
        yield engine
    finally:
        engine.stop()


def failure(folder: Path, path: Path) -> str:
    """What a write with its defaults says, which fails in its metadata table."""
    with new_process(folder) as engine, pytest.raises(EngineError) as raised:
        WRITTEN.take(HudiSpark(engine), path, PLAIN)
    assert "Error while completing streaming commit to metadata" in str(raised.value)
    return str(raised.value).splitlines()[-1]


@own_failure("Hudi-Spark takes its metadata records for others after an upgrade in a new process")
def test_it_fails(tmp_path: Path) -> None:
    """On our table as on its own."""
    MADE.take(ours, tmp_path / "ours", VERSION_8)
    with new_process(tmp_path) as engine:
        MADE.take(HudiSpark(engine), tmp_path / "its", VERSION_8)
    found = {failure(tmp_path, tmp_path / whose) for whose in ("ours", "its")}
    if found == {"java.lang.ArrayIndexOutOfBoundsException: Index 9 out of bounds for length 7"}:
        raise OwnFailureError(f"on both tables: {found}")
    assert not found


@pytest.mark.parametrize("next_writer", ["ours", "Hudi-Spark"])
def test_what_it_leaves(tmp_path: Path, next_writer: str) -> None:
    """The rows as they were, in version 9; the next writer takes the rest of it away."""
    path, model = tmp_path / "table", Model()
    MADE.take(ours, path, VERSION_8)
    model.take(MADE)
    failure(tmp_path, path)
    assert hudi.Table.open(str(path)).config.version == 9
    assert read_by_us(path) == model.content
    with new_process(tmp_path) as engine:
        assert read_by_hudi(engine, path) == model.content
        write: Writer = ours if next_writer == "ours" else HudiSpark(engine)
        WRITTEN.take(write, path, PLAIN)
        model.take(WRITTEN)
        agree(engine, path, model, next_writer)


@pytest.mark.parametrize("way", ["it reads before", "it leaves the version", "we upgrade"])
def test_ways_around_it(tmp_path: Path, way: str) -> None:
    """A process that reads before, does not upgrade, or finds version 9, writes right."""
    path, model, shape = tmp_path / "table", Model(), PLAIN
    MADE.take(ours, path, VERSION_8)
    model.take(MADE)
    if way == "we upgrade":
        hudi.Table.open(str(path)).upgrade(9)
    with new_process(tmp_path) as engine:
        if way == "it reads before":
            assert read_by_hudi(engine, path) == model.content
        if way == "it leaves the version":
            shape = VERSION_8
        WRITTEN.take(HudiSpark(engine), path, shape)
        model.take(WRITTEN)
        agree(engine, path, model, way)
