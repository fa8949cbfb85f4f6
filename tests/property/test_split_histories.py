"""Split tables of every format live through random steps, and all readers see the same rows.

After each step: the rows of a model, by ours and by readers of the table's formats; in the end each
state that is retained, by each format's own means. ``make campaigns`` takes 50 histories;
``make interop`` has the Sparks read such tables, too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.samples import sampled
from tests.split_histories import COUNT, History


# polars says which of its planners it prefers
@pytest.mark.filterwarnings("ignore:Iceberg scan planning")
@pytest.mark.parametrize("number", sampled(range(COUNT), 25))
def test_all_readers_see_the_rows_of_a_model(tmp_path: Path, number: int) -> None:
    history = History(tmp_path / "t", number)
    for _ in history.steps(16):
        history.check()
    history.check_past()
