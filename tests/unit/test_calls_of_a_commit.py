"""How much paperwork a small commit is: calls of functions of the project, and modules entered."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pyarrow as pa

import hudi_core as hudi
from tests.tables import new_table

HOME = str(Path(hudi.__file__).parent.parent)
PACKAGES = ("hudi_core", "native_format")


def three_cities(count: int, ts: int) -> pa.Table:
    keys = range(count)
    return pa.table(
        {
            "id": [f"k{key}" for key in keys],
            "city": [("rome", "oslo", "bern")[key % 3] for key in keys],
            "ts": [ts] * count,
            "value": [float(key) for key in keys],
        }
    )


def calls_by_module(action: Callable[[], object]) -> Counter[str]:
    """Calls of functions of the project, a generator's steps included, by file."""
    calls = Counter[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls[frame.f_code.co_filename] += 1

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    inside = tuple(f"{HOME}/{package}/" for package in PACKAGES)
    return Counter({file: count for file, count in calls.items() if file.startswith(inside)})


def test_a_small_upsert(tmp_path: Path) -> None:
    """20 rows into 30 of three partitions, in a table that has seen some commits."""
    path = str(tmp_path / "t")
    table = new_table(path, three_cities(1, 0).schema)
    table.upsert(three_cities(30, 1))
    table.upsert(three_cities(5, 2))
    table = hudi.Table.open(path)
    table.upsert(three_cities(5, 3))
    calls = calls_by_module(lambda: table.upsert(three_cities(20, 4)))
    assert calls.total() <= 6_000
    assert len(calls) <= 180
