"""A sample of writers, a cleaner, and signals on one table; see ``make writers``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.many_writers import Told, create, require_right, run
from tests.samples import IS_WHOLE

pytestmark = pytest.mark.impure  # processes are killed

FORMATS = ("native", "iceberg", "delta") if IS_WHOLE else ("iceberg",)


@pytest.mark.parametrize("table_format", FORMATS)
def test_no_acknowledged_row_is_lost(tmp_path: Path, table_format: str) -> None:
    told = run(tmp_path / "t", table_format, writers=3, commits=20 if IS_WHOLE else 4, seed=7)
    assert len(told.acked) >= 8


def test_a_lost_row_is_noticed(tmp_path: Path) -> None:
    create(tmp_path / "t", "native")
    with pytest.raises(AssertionError, match="acknowledged and lost"):
        require_right(tmp_path / "t", Told(acked={"nobody"}))
