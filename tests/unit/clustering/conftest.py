"""A table with several small files."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_core as hudi
from tests.unit.clustering.clustered_tables import made


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return made(tmp_path / "t")
