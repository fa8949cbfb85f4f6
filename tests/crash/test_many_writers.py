"""A sample of writers, services, and signals on one table; see ``make writers``."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.crash.kinds import LOGGED, SPLIT
from tests.crash.many_writers import (
    ALL_FORMATS,
    Answers,
    Shared,
    require_right,
    require_stable,
    run,
)
from tests.crash.s3_service import s3_service
from tests.samples import IS_WHOLE, sampled

pytestmark = pytest.mark.impure  # processes are killed

_OF_FILES = ("iceberg", f"{SPLIT} iceberg", f"{SPLIT} delta")
TRIED_FORMATS = ALL_FORMATS if IS_WHOLE else (LOGGED, *sampled(_OF_FILES, 3))


@pytest.mark.parametrize("table_format", TRIED_FORMATS)
def test_no_acknowledged_row_is_lost(tmp_path: Path, table_format: str) -> None:
    name, _, where = table_format.partition("@")
    with s3_service() if where else nullcontext() as store:
        table = Shared.at(tmp_path, store)
        # a lock of a dead one on a store is free after ten seconds only
        writers, commits = (4, 20) if IS_WHOLE else (2, 4) if where else (3, 4)
        answers = run(table, name, writers, commits, seed=7)
    assert len(answers.acked) >= (writers - writers // 2) * commits


def test_a_lost_row_is_noticed(tmp_path: Path) -> None:
    table = Shared.at(tmp_path)
    table.create("native")
    with pytest.raises(AssertionError, match="acknowledged and lost"):
        require_right(table, Answers(acked={"nobody"}))


def test_a_past_state_that_changes_is_noticed(tmp_path: Path) -> None:
    table = Shared.at(tmp_path)
    table.diary("look").write_text("same 1\n")
    assert require_stable(table) == 1
    for line in ("other 1 {('a', 'x', 1)}", "lost ['w0-1']"):
        table.diary("look").write_text(f"same 1\n{line}\n")
        with pytest.raises(AssertionError, match="a reader found"):
            require_stable(table)
