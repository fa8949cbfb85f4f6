"""Splits: how files are cut and weighed, and that nothing of one is lost on its way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.config.connector import ConnectorConfig
from hudi_core.errors import InvalidOptionError, SchemaError
from hudi_core.model.files import FileId, PartitionPath
from hudi_core.model.instant_time import InstantTime
from hudi_core.read.connector.listing import ScannedFile
from hudi_core.read.connector.partitions import PartitionInfo, PartitionKey, partition_info
from hudi_core.read.connector.predicate import ALL, NONE, TupleDomain
from hudi_core.read.connector.splits import Split, SplitFactory
from hudi_core.read.plan import PlannedSlice

MB = 1 << 20
SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "6"}), pa.field("città", pa.string())]
)
INFO = PartitionInfo(
    PartitionPath("città=東/b"),
    "città=東%2Fb",
    (PartitionKey("città", "東/b"), PartitionKey("n", None)),
)


def listed(size: int, logs: tuple[str, ...] = (), log_bytes: int = 0) -> ScannedFile:
    path = f"{INFO.path}/f-0_0-1-2_20260101000000000.parquet"
    file = PlannedSlice(
        *(path, f"s3://b/t/{path}", size, INFO.path),
        *(FileId("f-0"), {}, InstantTime("20260101000000000")),
    )
    return ScannedFile(file, logs, log_bytes)


def factory(predicate: TupleDomain = ALL, options: Mapping[str, str] | None = None) -> SplitFactory:
    config = ConnectorConfig.from_options(options or {})
    return SplitFactory.of("s3://b/t", SCHEMA, predicate, "a mark", config)


@pytest.mark.parametrize(
    ("size", "lengths"),
    [
        (300 * MB, [128, 128, 44]),
        (140 * MB, [140]),
        (141 * MB, [128, 13]),
        (128 * MB, [128]),
        (256 * MB, [128, 128]),
        (MB, [1]),
        (0, [0]),
    ],
)
def test_a_file_is_cut_near_the_target(size: int, lengths: list[int]) -> None:
    splits = list(factory().splits(listed(size), INFO))
    assert [split.length // MB for split in splits] == lengths
    assert splits[0].start == 0
    assert [one.start + one.length for one in splits] == [*(one.start for one in splits[1:]), size]
    assert {split.file_size for split in splits} == {size}


def test_a_file_with_logs_is_one_split() -> None:
    [split] = factory().splits(listed(300 * MB, (".f-0_1.log.1",), MB), INFO)
    assert (split.length, split.weight, split.log_files) == (300 * MB, 1.0, (".f-0_1.log.1",))
    [light] = factory().splits(listed(0, (".f-0_1.log.1",), 64 * MB), INFO)
    assert light.weight == 0.5, "the logs are read, too"


@pytest.mark.parametrize(
    ("size", "weight"), [(0, 0.05), (MB, 0.05), (64 * MB, 0.5), (128 * MB, 1.0), (140 * MB, 1.0)]
)
def test_small_splits_weigh_less(size: int, weight: float) -> None:
    [split] = factory().splits(listed(size), INFO)
    assert split.weight == weight


def test_options_decide_about_sizes_and_weights() -> None:
    made = factory(
        options={
            "hudi.target-split-size": "10MB",
            "hudi.standard-split-weight-size": "20MB",
            "hudi.minimum-assigned-split-weight": "0.3",
        }
    )
    assert [split.weight for split in made.splits(listed(24 * MB), INFO)] == [0.5, 0.5, 0.3]
    alike = factory(options={"hudi.size-based-split-weights-enabled": "false"})
    assert [split.weight for split in alike.splits(listed(MB), INFO)] == [1.0]


@pytest.mark.parametrize(
    "options",
    [
        {"hudi.target-split-size": "128"},
        {"hudi.target-split-size": "0MB"},
        {"hudi.minimum-assigned-split-weight": "0"},
        {"hudi.minimum-assigned-split-weight": "1.5"},
        {"hudi.min-partition-batch-size": "200"},
        {"hudi.split-loader-parallelism": "0"},
        {"hive.metastore.uri": "metastore:9083"},
    ],
    ids=str,
)
def test_options_that_cannot_be_used(options: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError):
        ConnectorConfig.from_options(options)


def test_defaults_are_those_of_the_connector_for_trino() -> None:
    config = ConnectorConfig()
    assert (config.max_outstanding, config.max_per_second) == (10_000, 2**31 - 1)
    assert (config.loader_parallelism, config.generator_parallelism) == (10, 4)
    assert (config.min_partition_batch, config.max_partition_batch) == (10, 100)
    assert (config.target_split_size, config.standard_weight_size) == (128 * MB, 128 * MB)
    assert (config.weighted, config.minimum_weight) == (True, 0.05)


@pytest.mark.parametrize("wanted", [ALL, NONE, TupleDomain.of([("id", ">", 3)], SCHEMA)])
def test_a_split_travels_as_json(wanted: TupleDomain) -> None:
    made = [
        *factory(wanted).splits(listed(300 * MB), INFO),
        *factory(wanted).splits(listed(1, (".l",), 1), INFO),
    ]
    for split in made:
        again = Split.from_json(split.to_json())
        assert again == split
        assert again.schema.equals(SCHEMA, check_metadata=True), "field ids find columns"


@pytest.mark.parametrize(
    "change",
    [
        {"start": -1},
        {"length": "5"},
        {"length": True},
        {"schema": "AAAA"},
        {"schema": "%"},
        {"instant": "now"},
        {"file": 1},
        {"predicate": {"x": {}}},
        {"partitionKeys": [1]},
        {"logFiles": [None]},
        {"mark": None},
    ],
    ids=str,
)
def test_other_json_is_refused(change: dict[str, Any]) -> None:
    [split] = factory().splits(listed(1), INFO)
    document = json.loads(split.to_json()) | change
    with pytest.raises(SchemaError):
        Split.from_json(json.dumps(document))
    for text in ("", "[]", "{}"):
        with pytest.raises(SchemaError, match="no split"):
            Split.from_json(text)


def test_a_partition_has_the_name_of_a_metastore() -> None:
    info = partition_info(PartitionPath("2026/a b"), {"day": "2026-01-31", "who": "a/b", "n": None})
    assert info.name == "day=2026-01-31/who=a%2Fb/n=__HIVE_DEFAULT_PARTITION__"
    assert partition_info(PartitionPath("odd"), {}).name == "odd"
