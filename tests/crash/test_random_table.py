"""A sample of random histories with all services and deaths; see ``make prove``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from hudi_core.services.opening import open_table
from tests.crash import random_past
from tests.crash.kinds import (
    KINDS,
    LOGGED,
    LOGGED_9,
    LOGGED_BARE,
    LOGGED_KINDS,
    SPLIT,
    STORED,
    data_root,
)
from tests.crash.random_commits import run
from tests.crash.random_past import SEEDS, STEPS
from tests.crash.random_table import FOREIGN, LIMITED, TIGHT, RandomTable
from tests.crash.table_states import run_histories
from tests.crash.tables import ALL_FORMATS, SEVERAL
from tests.samples import IS_WHOLE
from tests.tables import FORMATS

UNBOUNDED = {
    "active instants": {"hoodie.archive.automatic": "false"},
    "of metadata": {
        "hoodie.metadata.keep.min.commits": "1000",
        "hoodie.metadata.keep.max.commits": "1001",
    },
}
pytestmark = pytest.mark.impure  # writers die in processes of their own


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_table_stays_right_and_small(tmp_path: Path, table_format: str) -> None:
    bounds = run(tmp_path / "t", table_format, 500 if IS_WHOLE else 15, seed=11, options=TIGHT)
    assert bounds.largest["active"] > 8
    assert bounds.table.done["upsert"] > 4


@pytest.mark.parametrize(
    ("kind", "table_format"),
    [
        *[("spread", "delta"), ("spread", "native"), ("virtual", "iceberg"), ("bare", "native")],
        *[(LOGGED, "native"), (LOGGED_9, "native")],
    ],
)
def test_so_does_a_table_of_another_kind(tmp_path: Path, kind: str, table_format: str) -> None:
    path, commits = tmp_path / "t", 100 if IS_WHOLE else 8
    bounds = run(path, table_format, commits, seed=3, options=TIGHT, kind=kind)
    assert bounds.table.done["upsert"] > 2
    assert (data_root(path) == path) == (kind != "spread")
    assert bool(list(path.glob("[xyz]/*.parquet"))) == (kind != "spread")


@pytest.mark.parametrize(
    ("kind", "table_format"),
    [
        *[(STORED, name) for name in (ALL_FORMATS if IS_WHOLE else ("native", SEVERAL))],
        *[(kind, "native") for kind in (LOGGED_KINDS if IS_WHOLE else (LOGGED, LOGGED_BARE))],
        *[(SPLIT, name) for name in (ALL_FORMATS[1:] if IS_WHOLE else (SEVERAL,))],
    ],
)
def test_all_retained_states_are_as_they_were(tmp_path: Path, kind: str, table_format: str) -> None:
    for seed in SEEDS if IS_WHOLE else SEEDS[2:]:
        steps = STEPS // len(SEEDS) + 1 if IS_WHOLE else 20
        table = random_past.run(tmp_path / str(seed), table_format, steps, seed, kind)
        assert table.done["upsert"]
        assert {*LIMITED, *FOREIGN, "purge"} & table.done.keys()


def test_a_past_state_that_changes_is_noticed(tmp_path: Path) -> None:
    table = RandomTable(tmp_path / "t", "native")
    for number in (1, 2):
        table.write("upsert", [1, number])
    table.look_back()
    table.follow(min(table.past))
    table.past[min(table.past)] = {}
    with pytest.raises(AssertionError, match="as of"):
        table.look_back()
    with pytest.raises(AssertionError):
        table.follow(min(table.past))
    # what must stay is gone
    table.past, promised = dict(table.past), set(table.readable)
    table.serve("clean, one version")
    table.readable = promised
    with pytest.raises(AssertionError, match="was to be retained"):
        table.look_back()


@pytest.mark.parametrize("kinds", [KINDS, LOGGED_KINDS], ids=["any format", "logged"])
def test_short_histories_keep_every_promise(kinds: Sequence[str]) -> None:
    assert run_histories(100 if IS_WHOLE else 3, kinds=kinds)["histories"]


@pytest.mark.parametrize(("what", "limits"), UNBOUNDED.items())
def test_a_timeline_that_only_grows_is_noticed(
    tmp_path: Path, what: str, limits: Mapping[str, str]
) -> None:
    with pytest.raises(AssertionError, match=what):
        run(tmp_path / "t", "native", 200, seed=2, options={**TIGHT, **limits})


def test_a_lost_row_and_a_lost_state_are_noticed(tmp_path: Path) -> None:
    table = RandomTable(tmp_path / "t", "native")
    table.write("insert", [1, 2])
    table.write("upsert", [1])
    table.possible = [{}]
    with pytest.raises(AssertionError):
        table.check()
    with pytest.raises(AssertionError, match="are none of"):
        table.write("upsert", [2])


def test_a_promised_state_that_the_format_forgets_is_noticed(tmp_path: Path) -> None:
    table = RandomTable(tmp_path / "t", "iceberg")
    for _ in range(3):
        table.write("upsert", [1])
    opened = open_table(table.table.path, {})
    opened.host.archive_instants(opened.client, opened.timeline().completed_writes()[:-1])
    with pytest.raises(AssertionError, match="the format does not name"):
        table.check()
    with pytest.raises(AssertionError, match="was to be saved"):
        table.save(0)
    with pytest.raises(AssertionError, match="was to be restored"):
        table.restore(0)
