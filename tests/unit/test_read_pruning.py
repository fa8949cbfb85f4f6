"""Partition pruning: what a path says about the rows below it, and what it does not."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.config.kinds import KeyGeneratorType
from hudi_core.config.table import TableConfig
from hudi_core.model.files import PartitionPath
from hudi_core.read.filters import to_filter
from hudi_core.read.partition_pruning import PartitionPruner

SCHEMA = pa.schema(
    [
        ("_hoodie_partition_path", pa.string()),
        ("city", pa.string()),
        ("n", pa.int32()),
        ("day", pa.date32()),
        ("ok", pa.bool_()),
        ("at", pa.timestamp("us", "UTC")),
        ("x", pa.int64()),
    ]
)


def pruner(*fields: str, **changes: Any) -> PartitionPruner:
    config = TableConfig(name="t", record_key_fields=("x",), partition_fields=fields)
    return PartitionPruner(dataclasses.replace(config, **changes), SCHEMA)


def kept(pruner: PartitionPruner, row_filter: Any, *paths: str) -> list[str]:
    wanted = to_filter(row_filter, SCHEMA)
    return list(pruner.keep([PartitionPath(path) for path in paths], wanted))


@pytest.mark.parametrize(
    ("field", "paths", "condition", "expected"),
    [
        ("city", ["Paris", "Rome"], ("city", "=", "Rome"), ["Rome"]),
        ("city", ["Paris", "Rome"], ("city", "!=", "Rome"), ["Paris"]),
        ("city", ["Paris", "Rome", "Oslo"], ("city", "in", ["Oslo", "Bonn"]), ["Oslo"]),
        ("city", ["Paris", "Rome"], ("x", "=", 1), ["Paris", "Rome"]),
        ("n", ["10", "9", "-1"], ("n", ">", 8), ["10", "9"]),
        ("day", ["2026-01-31", "2026-02-01"], ("day", "<", "2026-02-01"), ["2026-01-31"]),
        ("ok", ["true", "false"], ("ok", "=", True), ["true"]),
    ],
)
@pytest.mark.parametrize("hive", [False, True])
def test_partitions_without_matching_rows_are_dropped(
    field: str, paths: list[str], condition: Any, expected: list[str], hive: bool
) -> None:
    prefix = f"{field}=" if hive else ""
    found = kept(pruner(field, hive_style=hive), [condition], *(prefix + path for path in paths))
    assert found == [prefix + path for path in expected]


@pytest.mark.parametrize(
    ("field", "path", "condition"),
    [
        # nulls and empty texts share this folder
        ("city", "__HIVE_DEFAULT_PARTITION__", ("city", "=", "Rome")),
        ("city", "__HIVE_DEFAULT_PARTITION__", ("city", "is null", None)),
        # days since the epoch, as one of Hudi's writers puts dates
        ("day", "20484", ("day", "=", "1999-01-01")),
        ("at", "2026-01-01", ("at", "=", "1999-01-01")),
        ("n", "many", ("n", "=", 1)),
        ("n", "99999999999999999999", ("n", "=", 1)),
        ("n", "9999999999", ("n", "=", 1)),
        # slashes may stand for the dashes of a date
        ("city", "2026/01/31", ("city", "=", "2026-01-31")),
    ],
)
def test_a_path_that_is_not_certain_is_kept(field: str, path: str, condition: Any) -> None:
    assert kept(pruner(field), [condition], path) == [path]


def test_several_fields() -> None:
    paths = ["city=Rome/n=1", "city=Rome/n=2", "city=Oslo/n=1"]
    several = pruner("city", "n", keygen_type=KeyGeneratorType.COMPLEX, hive_style=True)

    assert kept(several, [("n", "=", 1)], *paths) == [paths[0], paths[2]]
    assert kept(several, [("n", "=", 1), ("city", "=", "Rome")], *paths) == [paths[0]]
    either = (pc.field("n") == 2) | (pc.field("city") == "Oslo")
    assert kept(several, either, *paths) == paths[1:]


def test_escaped_values_are_compared_as_they_were() -> None:
    escaped = pruner("city", url_encode=True)
    assert kept(escaped, [("city", "=", "a=b")], "a%3Db", "a%3Dc") == ["a%3Db"]
    plain = pruner("city")
    assert kept(plain, [("city", "=", "a%3Db")], "a%3Db", "a%3Dc") == ["a%3Db"]


@pytest.mark.parametrize(
    "kind", [KeyGeneratorType.TIMESTAMP, KeyGeneratorType.CUSTOM, KeyGeneratorType.USER_PROVIDED]
)
def test_generators_that_change_the_value_prune_by_the_path_column_only(
    kind: KeyGeneratorType,
) -> None:
    changed = pruner("n", keygen_type=kind)

    assert kept(changed, [("n", "=", 1)], "20260131", "20260201") == ["20260131", "20260201"]
    by_path = [("_hoodie_partition_path", "=", "20260131")]
    assert kept(changed, by_path, "20260131", "20260201") == ["20260131"]


def test_a_generator_that_is_not_named_is_not_trusted() -> None:
    """Tables of early releases do not name it; what Hudi would infer may be another one."""
    unnamed = pruner("n", raw={"hoodie.table.partition.fields": "n"})
    named = pruner("n", raw={"hoodie.table.keygenerator.type": "SIMPLE"})

    assert kept(unnamed, [("n", "=", 1)], "1", "2") == ["1", "2"]
    assert kept(named, [("n", "=", 1)], "1", "2") == ["1"]


def test_values_of_a_path() -> None:
    several = pruner("city", "n", keygen_type=KeyGeneratorType.COMPLEX)

    assert several.values(PartitionPath("Rome/__HIVE_DEFAULT_PARTITION__")) == {
        "city": "Rome",
        "n": None,
    }
    assert several.values(PartitionPath("only")) == {}
    assert pruner().values(PartitionPath("")) == {}


def test_without_filter_or_fields_everything_is_kept() -> None:
    assert kept(pruner("city"), None, "a", "b") == ["a", "b"]
    assert kept(pruner(), [("city", "=", "x")], "") == [""]
