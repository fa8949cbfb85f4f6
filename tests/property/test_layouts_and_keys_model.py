"""Random histories of tables in any layout, with keys of any kind, against plain tables."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings

import hudi_core as hudi
from tests.crash.kinds import creation_options, data_root, hudi_rs_reads, storage_path
from tests.formats.service_tables import bag, by_hudi_rs, by_iceberg
from tests.formats.virtual_tables import GENERATORS, KEY_COLUMNS, LEVELS, equal, history, made
from tests.samples import IS_WHOLE
from tests.tables import FORMATS

HASHES = {
    "few": {"hoodie.storage.strategy.hash.bits": "2"},
    "by partition": {
        "hoodie.storage.strategy.hash.input": "PARTITION_AND_FILE_ID",
        "hoodie.storage.strategy.hash.function": "XXHASH64",
        "hoodie.storage.strategy.hash.bits": "32",
    },
    "no prefixes": {"hoodie.storage.strategy.class": "default"},
}


@dataclass(frozen=True)
class Kind:
    """What a table differs in from a plain one with stored keys.

    ``spread``: which of :data:`HASHES` places its files below a storage path; ``None`` for none.
    ``level``: which of the virtual keys it has; ``None`` where it stores its keys.
    """

    format_name: str
    generator: str
    index: str
    spread: str | None
    level: str | None

    def options(self, path: Path) -> dict[str, str]:
        if self.spread is None:
            return {}
        given = {**creation_options("spread", path), **HASHES[self.spread]}
        if self.spread == "no prefixes":
            del given["hoodie.storage.strategy.hash.bits"]
        return given


CHOICES: tuple[tuple[str | None, ...], ...] = (
    FORMATS,
    tuple(GENERATORS),
    ("SIMPLE", "BLOOM", "RECORD_INDEX", "BUCKET"),
    (None, *HASHES),
    (None, *LEVELS),
)
KINDS: st.SearchStrategy[Kind] = st.builds(Kind, *map(st.sampled_from, CHOICES))


def by_others(path: Path, format_name: str) -> list[Counter[str]]:
    """The rows that each reader sees which can read the table."""
    found = [by_hudi_rs(path)] if hudi_rs_reads(path) else []
    if format_name == "iceberg":
        found.append(by_iceberg(path))
    if format_name == "delta":
        found.append(DeltaTable(str(data_root(path))).to_pyarrow_table())
    return [bag(one, KEY_COLUMNS.names) for one in found]


def compare(folder: Path, kind: Kind, seed: int, length: int, spark: Any = None) -> None:
    path = folder / "other"
    plain = made(folder / "plain", None, generator=kind.generator, index=kind.index)
    other = made(
        path,
        kind.level,
        generator=kind.generator,
        index=kind.index,
        table_format=kind.format_name,
        **kind.options(path),
    )
    seen: dict[str, Counter[str]] = {}
    for step in history(seed, by_ts=kind.generator == "simple number", length=length):
        assert step.run(other, spark) == step.run(plain), step.operation
        equal(other, plain)
        rows = bag(plain.to_arrow(), KEY_COLUMNS.names)
        if step.operation in ("rollback", "restore"):  # what they took back is no state any more
            writes = {one.requested_time for one in other.timeline.completed_writes()}
            seen = {time: then for time, then in seen.items() if time in writes}
        for write in other.timeline.completed_writes()[-1:]:
            seen[write.requested_time] = rows
        for theirs in by_others(path, kind.format_name):
            assert theirs == rows, step.operation
    again = hudi.Table.open(str(path))
    for time, then in seen.items():
        assert bag(again.to_arrow(as_of=time), KEY_COLUMNS.names) == then, time
    report = again.validate(keys=True)
    assert (report.differences, report.orphans) == ((), ())
    in_table = [one for one in path.rglob("*.parquet") if ".hoodie" not in one.parts]
    assert bool(in_table) == (kind.spread is None)
    if kind.spread is not None:
        again.drop()
        assert not [one for one in storage_path(path).rglob("*") if one.is_file()]


@pytest.mark.timeout(3600)
@settings(
    max_examples=200 if IS_WHOLE else 3,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(kind=KINDS, seed=st.integers(0, 10_000), length=st.integers(3, 8))
def test_histories_are_those_of_a_plain_table(
    tmp_path_factory: pytest.TempPathFactory, kind: Kind, seed: int, length: int
) -> None:
    folder = tmp_path_factory.mktemp("kinds")
    compare(folder, kind, seed, length)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "kind",
    [
        Kind("native", "custom", "BLOOM", "few", None),
        Kind("iceberg", "timestamp", "SIMPLE", "by partition", "no key column"),
        Kind("delta", "complex", "RECORD_INDEX", "no prefixes", "no meta columns"),
    ],
    ids=lambda kind: kind.format_name,
)
def test_spark_writes_the_same(tmp_path: Path, spark: Any, kind: Kind) -> None:
    compare(tmp_path, kind, 7, 4, spark)


@pytest.mark.parametrize("seed", range(40) if IS_WHOLE else range(1))
def test_spark_writes_random_histories(tmp_path: Path, spark: Any, seed: int) -> None:
    dice = random.Random(seed)
    kind = Kind(*map(dice.choice, CHOICES))  # type: ignore[arg-type]
    print(kind)
    compare(tmp_path, kind, dice.randrange(10_000), dice.randint(3, 8), spark)
