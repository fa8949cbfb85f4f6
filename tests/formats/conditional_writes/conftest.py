"""A table of each format."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_core as hudi
from tests.formats.conditional_writes.conditional_tables import FORMATS, new_table, some


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> hudi.Table:
    made = new_table(tmp_path / "t", request.param)
    made.upsert(
        some(
            (1, "rome", 10, 1.0, "a"),
            (2, "rome", 20, None, "b"),
            (3, "oslo", 30, 3.0, None),
            (4, "oslo", 40, 4.0, "d"),
        )
    )
    return made
