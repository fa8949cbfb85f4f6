"""Overwrites that replace named partitions beside those of their rows, in every format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_core.model.commit import ReplaceCommitMetadata
from tests.formats.service_tables import FORMATS, agree, batch, new_table


@pytest.mark.parametrize("named", ["oslo", {"city": "oslo"}])
@pytest.mark.parametrize("keys", ["ac", ""])
@pytest.mark.parametrize("table_format", ["native", *FORMATS])
def test_partitions_without_new_rows_are_replaced_too(
    tmp_path: Path, table_format: str, keys: str, named: Any
) -> None:
    path = tmp_path / "t"
    table = new_table(path, table_format)

    result = table.insert_overwrite(batch(5, *keys), partitions=[named])

    left = {"a", "c"} if keys else {"a", "b"}
    assert set(table.to_arrow()["id"].to_pylist()) == left
    assert isinstance(result.metadata, ReplaceCommitMetadata)
    assert len(result.metadata.partition_to_replace_file_ids) == (2 if keys else 1)
    agree(path)


def test_a_partition_that_is_not_there_replaces_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.insert_overwrite(batch(5), partitions=[{"city": "bari"}])
    assert table.to_arrow().num_rows == 4
