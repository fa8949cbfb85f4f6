"""The BLOOM index asks the filters of the metadata table, and leaves footers closed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import CorruptMetadataError
from hudi_core.index import locating, tagging
from hudi_core.index import stored_filters as module
from hudi_core.metadata.partitions import bloom_filters
from hudi_core.metadata.partitions.bloom_filters import BloomFilters
from hudi_core.metadata.records import BloomFilterEntry, PartitionChange
from tests.property.test_index_model import ApartEngine
from tests.tables import new_table

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64())])
FILTERS = {"hoodie.metadata.index.bloom.filter.enable": "true"}
FAST = {"hoodie.parquet.small.file.limit": "0"}
UNASKED = {"hoodie.bloom.index.use.metadata": "false"}
FILES = 8


class Opened:
    """Paths whose footers were opened for an index, and whose keys were read."""

    def __init__(self) -> None:
        self.footers: list[str] = []
        self.keys: list[str] = []


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    seen = Opened()
    for name, paths in (("read_known_keys", seen.footers), ("read_record_keys", seen.keys)):
        original = getattr(locating, name)

        def note(context: Any, path: str, *rest: Any, o: Any = original, p: Any = paths) -> Any:
            p.append(path)
            return o(context, path, *rest)

        monkeypatch.setattr(locating, name, note)
    return seen


def rows(keys: Sequence[str], n: int) -> pa.Table:
    return pa.table({"id": keys, "city": ["oslo"] * len(keys), "n": [n] * len(keys)})


def interleaved(number: int) -> list[str]:
    """Keys of a file whose range holds those of all others."""
    return [f"a{number}", *(f"k{one * FILES + number:04}" for one in range(20)), f"z{number}"]


def table_of(path: Path, **options: str) -> hudi.Table:
    table = new_table(path, SCHEMA, {"hoodie.index.type": "BLOOM", **FAST, **FILTERS, **options})
    for number in range(FILES):
        table.bulk_insert(rows(interleaved(number), 0))
    return table


def updated(table: hudi.Table, n: int) -> set[str]:
    found = table.to_arrow(["id", "n"]).to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"] for row in found if row["n"] == n}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_BLOOM"])
@pytest.mark.parametrize("ranges", ["true", "false"])
def test_no_footer_is_opened(
    index: str,
    wide: bool,
    ranges: str,
    tmp_path: Path,
    opened: Opened,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stats = {"hoodie.metadata.index.column.stats.enable": ranges}
    table = table_of(tmp_path / "t", **{"hoodie.index.type": index}, **stats)
    monkeypatch.setattr(tagging, "_FILES_PER_TASK", 3 if wide else 32)
    engine = ApartEngine() if wide else None
    wanted = ["k0003", "k0011", "k0500", "new"]

    result = table.upsert(rows(wanted, 1), options=UNASKED, engine=engine)

    assert (result.updated, result.inserted) == (2, 2)
    assert len(opened.footers) == FILES
    assert len(opened.keys) == 1
    opened.footers.clear()
    opened.keys.clear()

    result = table.upsert(rows([*wanted, "k0001", "other"], 2), engine=engine)

    # the new keys of the first upsert have a file of their own
    assert (result.updated, result.inserted) == (5, 1)
    assert opened.footers == []
    assert len(opened.keys) == 3
    assert updated(table, 2) == {*wanted, "k0001", "other"}
    assert table.validate().is_valid


def test_files_without_a_filter_are_asked_themselves(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(tmp_path / "t")
    with monkeypatch.context() as patch:
        patch.setattr(BloomFilters, "of_commit", lambda *_: PartitionChange())
        table.bulk_insert(rows(["a8", "k9000", "z8"], 0))
    footerless = {"hoodie.parquet.bloom.filter.enabled": "false"}
    table.bulk_insert(rows(["a9", "k9001", "k9002", "z9"], 0), options=footerless)
    result = table.upsert(rows(["k9000", "k9001", "none"], 1))
    assert (result.updated, result.inserted) == (2, 1)
    assert len(opened.footers) == 2
    assert updated(table, 1) == {"k9000", "k9001", "none"}


@pytest.mark.parametrize(
    "entry",
    [
        BloomFilterEntry("SIMPLE", "20260101000000000", b"of another kind"),
        BloomFilterEntry("DYNAMIC_V0", "20260101000000000", b""),
        BloomFilterEntry("DYNAMIC_V0", "", b"", is_deleted=True),
    ],
)
def test_a_filter_that_says_nothing_rules_nothing_out(
    entry: BloomFilterEntry, tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(tmp_path / "t")
    with monkeypatch.context() as patch:
        original = bloom_filters._record

        def other(partition: Any, name: str, _: Any) -> Any:
            return original(partition, name, entry)

        patch.setattr(bloom_filters, "_record", other)
        table.bulk_insert(rows(["a8", "k9000", "z8"], 0))
    result = table.upsert(rows(["k9000"], 1))
    assert (result.updated, result.inserted) == (1, 0)
    assert len(opened.footers) == 1


def test_a_damaged_filter_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(tmp_path / "t")
    with monkeypatch.context() as patch:
        original = bloom_filters._entry
        patch.setattr(
            bloom_filters, "_entry", lambda file, time, _: original(file, time, b"not base64!")
        )
        table.bulk_insert(rows(["a8", "k9000", "z8"], 0))
    with pytest.raises(CorruptMetadataError, match=r"bloom_filters.*repair"):
        table.upsert(rows(["k9000"], 1))
    assert table.upsert(rows(["k9000"], 1), options=UNASKED).updated == 1


@pytest.mark.parametrize(
    "options", [UNASKED, {"hoodie.metadata.enable": "false"}, {"hoodie.metadata.validate": "true"}]
)
def test_options_have_the_footers_opened(
    options: dict[str, str], tmp_path: Path, opened: Opened
) -> None:
    table = table_of(tmp_path / "t")
    assert table.upsert(rows(["k0001", "other"], 1), options=options).updated == 1
    assert len(opened.footers) == FILES


def test_a_table_without_filters_has_its_footers_opened(tmp_path: Path, opened: Opened) -> None:
    table = table_of(tmp_path / "t", **{"hoodie.metadata.index.bloom.filter.enable": "false"})
    assert table.upsert(rows(["k0001", "other"], 1)).updated == 1
    assert len(opened.footers) == FILES
    opened.footers.clear()
    # built later, it serves the next write
    table.upsert(rows(["k0002", "z100"], 2), options=FILTERS)
    opened.footers.clear()
    assert table.upsert(rows(["k0001", "other"], 3)).updated == 2
    assert opened.footers == []


def test_filters_are_looked_up_for_some_files_at_once(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(tmp_path / "t")
    batches: list[int] = []
    original = module.KnownFooters._load

    def note(self: Any, ordinals: Sequence[int]) -> Any:
        batches.append(len(ordinals))
        return original(self, ordinals)

    monkeypatch.setattr(module.KnownFooters, "_load", note)
    size = max(one.base_file.size for one in table.file_slices() if one.base_file is not None)
    monkeypatch.setattr(module, "_BYTES_AT_ONCE", 2 * size + 1)
    assert table.upsert(rows(["k0001", "k0004"], 1)).updated == 2
    assert batches == [3, 3, 2]
    assert opened.footers == []
