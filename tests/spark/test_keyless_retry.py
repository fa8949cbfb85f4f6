"""Generated keys are the same when a Spark task runs again, and are there once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import hudi as hudi_rs
import pytest

SCRIPT = Path(__file__).with_name("keyless_writer.py")
ROWS = 60

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("keyless")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("operation", ["bulk_insert", "insert", "insert_overwrite"])
def test_attempts_make_the_same_keys(operation: str, written: tuple[Path, dict[str, Any]]) -> None:
    folder, report = written
    tasks = report[operation]
    assert len(tasks) == 2
    for first, second in tasks.values():
        assert first == second
        assert first
    found = [
        row
        for batch in hudi_rs.HudiTableBuilder.from_base_uri(str(folder / operation)).build().read()
        for row in batch.to_pylist()
    ]
    keys = {row["_hoodie_record_key"] for row in found}
    assert len(keys) == len(found) == (ROWS if operation == "insert_overwrite" else 2 * ROWS)
    assert {key for attempts in tasks.values() for key in attempts[0]} <= keys
    times = 1 if operation == "insert_overwrite" else 2
    assert Counter(row["n"] for row in found) == Counter(
        n % 7 for n in range(ROWS) for _ in range(times)
    )
