"""Of many files a write reads the keys of those only that may hold an incoming key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.index import locating, tagging

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64())])
FAST = {"hoodie.fs.fsync": "false", "hoodie.parquet.small.file.limit": "0"}
# UTF-8 and UTF-16 order the last two differently
KEYS = (("a1", "a3"), ("b1", "b3"), ("c1", "é3"), ("\uff00", "\U0001f600"))


def rows(keys: Sequence[str], n: int) -> pa.Table:
    return pa.table({"id": keys, "city": ["oslo"] * len(keys), "n": [n] * len(keys)}, SCHEMA)


def files_read(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Paths of the files whose keys are asked for from now on, each task having one file."""
    read: set[str] = set()
    for name in ("read_record_keys", "read_known_keys"):
        original = getattr(locating, name)

        def note(context: Any, path: str, *rest: Any, original: Any = original) -> Any:
            read.add(path)
            return original(context, path, *rest)

        monkeypatch.setattr(locating, name, note)
    monkeypatch.setattr(tagging, "_FILES_PER_TASK", 1)
    return read


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("has_ranges", [True, False])
def test_files_without_an_incoming_key_are_not_read(
    index: str, has_ranges: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranges = {"hoodie.metadata.index.column.stats.enable": str(has_ranges).lower()}
    options = {**FAST, **ranges, "hoodie.index.type": index}
    table = hudi.Table.create(
        str(tmp_path / "t"), SCHEMA, record_key="id", partition_by="city", options=options
    )
    for keys in KEYS:
        table.bulk_insert(rows(keys, 1))
    read = files_read(monkeypatch)
    result = table.upsert(rows(["b3", "a2", "new", "\U0001f600"], 2))
    assert (result.updated, result.inserted) == (2, 2)
    # "new" lies between the keys of the third file, "a2" between those of the first
    assert len(read) == 4
    read.clear()
    result = table.upsert(rows(["b1", "b2"], 3))
    assert (result.updated, result.inserted) == (1, 1)
    found = dict(zip(*table.to_arrow(columns=["id", "n"]).to_pydict().values(), strict=True))
    assert len(found) == 11
    assert {key for key, n in found.items() if n == 3} == {"b1", "b2"}
    assert {key for key, n in found.items() if n == 2} == {"b3", "a2", "new", "\U0001f600"}
    # the new rows are in a file of their own, with keys from "a2" to "new"
    assert len(read) == (2 if has_ranges else 5)
