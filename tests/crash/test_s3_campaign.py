"""A sample of the rig on a store of S3's protocol, and proof that it sees what it is to see."""

from __future__ import annotations

from multiprocessing.pool import Pool

import pytest

from tests.crash.campaign import count_requests, run, sample
from tests.crash.counting_storage import pinned
from tests.crash.s3_campaign import S3_STEPS_FILE, requests_by_name, s3_cases
from tests.crash.s3_faults import S3Fault
from tests.crash.s3_rig import S3Verdict
from tests.crash.s3_scenes import S3Case

pytestmark = pytest.mark.impure  # a pool of processes runs the cases

SCENES = (
    S3Case("native@s3", "insert"),
    S3Case("native@s3", "create"),
    S3Case("iceberg@s3", "delete"),
    S3Case("delta@s3", "upsert"),
)
SAMPLE = 3


@pytest.fixture(scope="module")
def counted(pool: Pool) -> list[S3Verdict]:
    return count_requests(pool, SCENES)


def test_every_changing_request_is_on_record(counted: list[S3Verdict]) -> None:
    """Run with HUDI_PIN=1 to accept requests that are new or gone."""
    assert pinned(S3_STEPS_FILE, requests_by_name(counted)) == {}


def test_requests_of_libraries_are_seen(counted: list[S3Verdict]) -> None:
    seen = {(one.case.format_name, one.case.scene): set(one.steps) for one in counted}
    assert "PUT _delta_log/N.json if absent" in seen["delta@s3", "upsert"]
    assert "PUT data" in seen["native@s3", "insert"]  # by pyarrow


def test_a_sample_of_all_faults_breaks_no_promise(pool: Pool, counted: list[S3Verdict]) -> None:
    cases = sample(s3_cases(counted), SAMPLE)
    verdicts = list(run(pool, cases))
    assert len(verdicts) == SAMPLE
    assert {str(one.case): one.violations for one in verdicts if one.violations} == {}


MUTANTS = [
    ("no look at the log after an error", "delta@s3", "PUT _delta_log/N.json if absent"),
    ("no look at the token", "delta@s3", "PUT .locks/table_lock.json if same"),
]


@pytest.mark.parametrize(("mutant", "format_name", "lost"), MUTANTS)
def test_an_error_taken_at_its_word_is_caught(
    mutant: str, format_name: str, lost: str, pool: Pool, counted: list[S3Verdict]
) -> None:
    """The request is done and answered by an error; its client repeats it, and is refused."""
    (usual,) = (one for one in counted if one.case.format_name == format_name)
    fault = S3Fault(1 + usual.steps.index(lost), "lost")
    right = usual.case._replace(fault=fault)
    wrong = right._replace(mutant=mutant)
    verdicts = {one.case: one for one in run(pool, [right, wrong])}
    assert verdicts[right].violations == ()
    assert verdicts[wrong].violations != ()
