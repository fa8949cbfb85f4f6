"""Tables in processes that were forked: a library's threads are not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hudi_core.extension.guard import Raised, Returned, attempt

SCRIPT = """
import os, sys
import pyarrow as pa
import hudi_core as hudi
from hudi_core.errors import HudiError
from hudi_core.storage.object_store import ObjectStorage

rows = pa.table({"id": [1], "v": [1]})
tables = {}
for name in ("native", "iceberg", "delta"):
    tables[name] = hudi.Table.create(f"{sys.argv[1]}/{name}", rows, record_key="id", format=name)
    tables[name].insert(rows)
store = ObjectStorage("memory://forks/t")
store.put("x", b"1")

def counted(count):
    try:
        return count()
    except HudiError as error:
        return f"{type(error).__name__} {error.library}"

if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
for name, table in tables.items():
    again = counted(lambda: hudi.Table.open(f"{sys.argv[1]}/{name}").count())
    print(name, counted(table.count), again, counted(lambda: table.upsert(rows).updated), sep=", ")
print(counted(lambda: store.head("x")), flush=True)
os._exit(0)
"""


def test_a_forked_process_reads_or_refuses_by_name(tmp_path: Path) -> None:
    command = (sys.executable, "-c", SCRIPT, str(tmp_path))
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    refused = "ForkedProcessError deltalake"
    assert ended.stdout.splitlines() == [
        "native, 1, 1, 1",
        "iceberg, 1, 1, 1",
        f"delta, {refused}, {refused}, {refused}",
        "ForkedProcessError obstore",
    ]


def test_a_panic_of_a_library_is_a_failure_of_the_plugin() -> None:
    panic = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})

    def call() -> None:
        raise panic("Forked process detected")

    outcome = attempt(call)
    assert isinstance(outcome, Raised)
    assert outcome.reason == "RuntimeError: Forked process detected"
    assert attempt(lambda: 1) == Returned(1)


def test_what_ends_the_process_passes() -> None:
    def leave() -> None:
        raise SystemExit

    with pytest.raises(SystemExit):
        attempt(leave)
