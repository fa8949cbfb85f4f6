"""Tables whose writes are staged."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_core as hudi
from tests.formats.service_tables import new_table
from tests.formats.stages.staged_rows import FORMATS


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> hudi.Table:
    return new_table(tmp_path / "t", request.param)


@pytest.fixture
def native(tmp_path: Path) -> hudi.Table:
    return new_table(tmp_path / "t")
