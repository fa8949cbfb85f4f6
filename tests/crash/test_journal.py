"""Campaigns that were stopped go on where they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.counting_storage import Fault
from tests.crash.journal import Journal, digest
from tests.crash.rig import Case, Verdict
from tests.crash.s3_scenes import S3Case

DONE, BROKEN = Case("native", "upsert", Fault(3, "torn")), Case("delta", "upsert")
ON_STORE = S3Case("delta@s3", "upsert")


def test_what_broke_a_promise_or_was_cut_off_is_run_again(tmp_path: Path) -> None:
    path = tmp_path / "proven.jsonl"
    journal = Journal(path, "these")
    journal.write(Verdict(DONE, (), ("a",), (), "acked", 0.5))
    journal.write(Verdict(BROKEN, ("1: rows are lost",), (), (), "acked", 0.5))
    with path.open("a") as file:
        file.write('["delta@s3 ups')
    verdicts, left = Journal(path, "these").split([DONE, BROKEN, ON_STORE])
    assert [(one.case, one.cpu_s) for one in verdicts] == [(DONE, 0.5)]
    assert left == [BROKEN, ON_STORE]
    journal.write(Verdict(BROKEN, (), (), (), "acked", 0.25))
    assert Journal(path, "these").split([DONE, BROKEN, ON_STORE])[1] == [ON_STORE]


def test_what_other_sources_have_proven_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "proven.jsonl"
    Journal(path, "these").write(Verdict(DONE, (), (), (), "acked", 0.5))
    with pytest.raises(ValueError, match="other sources"):
        Journal(path, "those")
    Journal(path, "these")
    assert digest() == digest()


def test_without_a_file_nothing_is_kept() -> None:
    journal = Journal(None)
    journal.write(Verdict(DONE, (), (), (), "acked", 0.5))
    assert journal.split([DONE]) == ([], [DONE])
