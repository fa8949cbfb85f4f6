"""Rows of a table as other programs read it, which share no code with this project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hudi import HudiReadOptions, HudiTableBuilder

Row = dict[str, Any]


def by_hudi_rs(path: str | Path, options: HudiReadOptions | None = None) -> list[Row]:
    """All rows of a table on this machine, as hudi-rs finds them."""
    batches = HudiTableBuilder.from_base_uri(str(path)).build().read(options)
    return [row for batch in batches for row in batch.to_pylist()]
