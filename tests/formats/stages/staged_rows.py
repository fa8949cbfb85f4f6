"""What a stage has, and what a table has without its stages."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import hudi_core as hudi
from hudi_core.services.stage import Stage
from tests.formats.service_tables import SCHEMA, bag

FORMATS = ("native", "iceberg", "delta")


def folder(table: hudi.Table) -> Path:
    return Path(table.path) / ".hoodie/.stage"


def tree(table: hudi.Table) -> set[Path]:
    """All of a table but its stages and locks."""
    apart = {".stage", ".locks"}
    return {one for one in Path(table.path).rglob("*") if not apart & set(one.parts)}


def rows(stage: Stage) -> Counter[str]:
    return bag(stage.to_arrow(), SCHEMA.names)
