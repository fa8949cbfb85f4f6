"""A sample of writers, services, and signals on one table; see ``make writers``."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.crash.many_writers import Answers, Shared, require_right, run
from tests.crash.s3_campaign import S3_FORMATS
from tests.crash.s3_service import s3_service
from tests.samples import IS_WHOLE
from tests.tables import FORMATS as LOCAL_FORMATS

pytestmark = pytest.mark.impure  # processes are killed

TRIED_FORMATS = (*LOCAL_FORMATS, *S3_FORMATS) if IS_WHOLE else ("iceberg",)


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
