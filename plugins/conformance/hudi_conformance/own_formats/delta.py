"""The suite of the Delta Lake format."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from hudi_conformance.formats import TwoStepFormat, TwoStepFormatSuite
from hudi_conformance.formats.under_test import Row


def by_deltalake(path: Path) -> Iterable[Row]:
    """The rows of a table as delta-rs reads them, deletion vectors and all."""
    query = QueryBuilder().register("found", DeltaTable(str(path)))
    rows: list[Row] = pa.table(query.execute("select * from found").read_all()).to_pylist()
    return rows


def append_with_deltalake(path: Path) -> None:
    """Append a row with delta-rs."""
    some = DeltaTable(str(path)).to_pyarrow_table().slice(0, 1)
    write_deltalake(str(path), some, mode="append")


class DeltaSuite(TwoStepFormatSuite):
    """Delta Lake, read by delta-rs."""

    format = TwoStepFormat(
        "delta",
        by_deltalake,
        lose=lambda path: shutil.rmtree(path / "_delta_log"),
        intrude=append_with_deltalake,
    )
