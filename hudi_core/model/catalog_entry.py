"""A table's entry in the catalog of a Spark session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class SparkCatalogEntry:
    """What a session's catalog has under a name.

    Attributes
    ----------
    path
        Where it says that the table is.
    columns
        Its columns.
    partition_columns
        Names of those by which it says that the table is partitioned.
    properties
        Its properties, and the options that it was made with.
    is_managed
        Whether Spark deletes and moves the folder with the name.
    note
        What its columns say to a source in Python about the table; ``None`` for nothing.
    """

    path: str
    columns: pa.Schema
    partition_columns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    is_managed: bool = False
    note: Mapping[str, Any] | None = None
