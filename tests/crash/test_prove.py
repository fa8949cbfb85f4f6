"""A sample of the crash rig, and proof that the rig sees what it is to see; see ``make prove``."""

from __future__ import annotations

from multiprocessing.pool import Pool
from typing import Any

import pytest

from tests.crash.campaign import (
    HOWS,
    STEPS_FILE,
    Counted,
    all_cases,
    count,
    run,
    sample,
    scenes,
    steps_by_name,
)
from tests.crash.counting_storage import Fault, pinned
from tests.crash.late_requests import LANDS, LATE
from tests.crash.rig import Case, Verdict
from tests.crash.scenes import BETWEEN, COMPLETED_FILE
from tests.crash.tables import SEVERAL
from tests.samples import sampled, taken

pytestmark = pytest.mark.impure  # a pool of processes runs the cases

SAMPLE = 20


@pytest.fixture(scope="module")
def counted(request: pytest.FixtureRequest, pool: Pool) -> list[Counted]:
    """Every ninth scene, those that broken protocols need, and all of them in `make campaigns`."""
    test = "test_a_broken_protocol_is_caught"
    broken = [taken(request, test, name) for name in ("format_name", "scene")]
    needed = set(zip(*broken, strict=True))
    every = list(scenes())
    some = sampled(every, 9)
    chosen = [one for one in every if one in some or (one.format_name, one.scene) in needed]
    return count(pool, chosen)


def ended(pool: Pool, *cases: Case) -> list[Verdict]:
    return list(run(pool, cases))


def test_every_step_is_on_record(counted: list[Counted]) -> None:
    """Run with HUDI_PIN=1 to accept steps that are new or gone."""
    assert pinned(STEPS_FILE, steps_by_name(counted)) == {}


def test_a_sample_of_all_faults_breaks_no_promise(pool: Pool, counted: list[Counted]) -> None:
    cases = sample(all_cases(counted, HOWS, 10), SAMPLE)
    verdicts = ended(pool, *cases)
    assert len(verdicts) == SAMPLE
    assert {str(one.case): one.violations for one in verdicts if one.violations} == {}


UNDONE = "remove timeline/N.commit.requested"
LOG_MADE = "link _delta_log/N.json"
PROPERTIES = "link hoodie.properties"
TYPE_CHANGED = "replace hoodie.properties"
MUTANTS = [
    ("no replay", "delta", "upsert", "before", BETWEEN),
    ("rollback without the format", "iceberg", "rollback", "after", UNDONE),
    ("format before timeline", "iceberg", "upsert", "before", COMPLETED_FILE),
    ("no look after an error", "native", "upsert", "err_after", COMPLETED_FILE),
    ("no look at the format after an error", "iceberg", "upsert", "err_after", BETWEEN),
    ("metadata table last", "native", "upsert", "after", COMPLETED_FILE),
    ("properties first", "delta", "create", "before", LOG_MADE),
    ("no replay", SEVERAL, "upsert", "before", BETWEEN),
    ("rollback without the format", SEVERAL, "rollback", "after", UNDONE),
    ("fence of the first format", SEVERAL, "upsert", "before", BETWEEN),
    ("no mark of a creation", "native", "create", "before", PROPERTIES),
    ("type without a compaction", "native", "logged_to_copy_on_write", "after", TYPE_CHANGED),
]


@pytest.mark.parametrize(("mutant", "format_name", "scene", "how", "step"), MUTANTS)
def test_a_broken_protocol_is_caught(
    mutant: str,
    format_name: str,
    scene: str,
    how: str,
    step: str,
    pool: Pool,
    counted: list[Counted],
) -> None:
    (usual,) = (one for one in counted if one.name == f"{format_name}.{scene}")
    # a change of the order changes the numbers
    (changed,) = count(pool, [Case(format_name, scene, mutant=mutant)])
    right, wrong = [
        one.verdict.case._replace(fault=Fault(one.number(step), how)) for one in (usual, changed)
    ]
    verdicts: dict[Any, Verdict] = {one.case: one for one in ended(pool, right, wrong)}
    assert verdicts[right].violations == ()
    assert verdicts[wrong].violations != ()


def test_a_rollback_that_the_format_is_not_told_of_is_caught_by_a_late_request(pool: Pool) -> None:
    right = Case("delta", "upsert", Fault(0, LATE), Fault(20, LANDS))
    wrong = right._replace(mutant="plain rollback")
    verdicts = {one.case: one for one in ended(pool, right, wrong)}
    assert verdicts[right].violations == ()
    assert verdicts[wrong].violations != ()
