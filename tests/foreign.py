"""Rows of a table as other programs read it, which share no code with this project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hudi import HudiReadOptions, HudiTableBuilder

Row = dict[str, Any]


def by_hudi_rs(
    path: str | Path,
    options: HudiReadOptions | None = None,
    storage: Mapping[str, str] | None = None,
) -> list[Row]:
    """All rows of a table, as hudi-rs finds them."""
    builder = HudiTableBuilder.from_base_uri(str(path)).with_storage_options(dict(storage or {}))
    return [row for batch in builder.build().read(options) for row in batch.to_pylist()]
