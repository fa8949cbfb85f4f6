"""How many requests a small write makes of an object store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from tests.moto_s3 import S3Service, serving

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])


@pytest.fixture(scope="module")
def requests() -> list[str]:
    return []


@pytest.fixture(scope="module")
def counted_s3(requests: list[str]) -> Iterator[S3Service]:
    def counting(application: Any) -> Any:
        def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            requests.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}")
            found: Iterable[bytes] = application(environ, start_response)
            return found

        return answer

    with serving(counting) as service:
        yield service


def rows(count: int, first: int, ts: int) -> pa.Table:
    numbers = range(first, first + count)
    columns = {
        "id": [f"k{number}" for number in numbers],
        "city": [f"c{number % 4}" for number in numbers],
        "ts": [ts] * count,
    }
    return pa.table(columns, SCHEMA)


@pytest.mark.parametrize(
    ("format_", "metadata", "most"),
    [("native", "true", 66), ("native", "false", 45), ("iceberg", "true", 120)],
)
def test_an_upsert_into_four_partitions_makes_so_many_requests(
    format_: str, metadata: str, most: int, counted_s3: S3Service, requests: list[str]
) -> None:
    options = {**counted_s3.given, "hoodie.metadata.enable": metadata}
    table = hudi.Table.create(
        counted_s3.new_root(),
        SCHEMA,
        name="t",
        record_key="id",
        partition_by="city",
        ordering_field="ts",
        options={**options, "hoodie.table.format": format_},
    )
    table.upsert(rows(4000, 0, 1))
    table.upsert(rows(1000, 0, 2))
    requests.clear()

    table.upsert(rows(1000, 2500, 3))

    assert len(requests) <= most, requests
    data_files = [one for one in requests if one.endswith(".parquet")]
    # each is looked up, merged and put with one request; none is asked for beforehand
    assert sorted(one.partition(" ")[0] for one in data_files) == ["GET"] * 8 + ["PUT"] * 4
    assert table.count() == 4000
