"""What an index must do."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.spi import BaseIndex, load_extension

_SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("value", pa.int64())])
_KEYS = 60


class IndexSuite:
    """Tests of an index.

    Attributes
    ----------
    name
        Its name among the entry points.
    steps
        Writes of a history.
    """

    name: ClassVar[str]
    steps: ClassVar[int] = 8

    def is_global(self) -> bool:
        """Whether the index finds keys in all partitions."""
        kind = load_extension("hudi.indexes", self.name)
        assert issubclass(kind, BaseIndex)
        return kind.is_global

    def rows(self, table: hudi.Table) -> list[dict[str, Any]]:
        """The rows of a table, in an order."""
        rows = table.to_arrow(columns=_SCHEMA.names).to_pylist()
        return sorted(rows, key=lambda row: (row["id"], row["part"], row["value"]))

    @pytest.mark.parametrize("seed", range(3))
    def test_a_history_leaves_what_the_simple_index_leaves(self, tmp_path: Path, seed: int) -> None:
        chance = random.Random(seed)
        simple = "GLOBAL_SIMPLE" if self.is_global() else "SIMPLE"
        tables = {
            name: hudi.Table.create(
                str(tmp_path / name),
                _SCHEMA,
                name="t",
                record_key="id",
                partition_by="part",
                options={"hoodie.parquet.small.file.limit": "0"},
            )
            for name in (self.name, simple)
        }
        for step in range(self.steps):
            keys = chance.sample(range(_KEYS), chance.randint(1, _KEYS // 2))
            rows = pa.table(
                {
                    "id": [f"k{key:04d}" for key in keys],
                    "part": [chance.choice("abc") for _ in keys],
                    "value": [step] * len(keys),
                },
                schema=_SCHEMA,
            )
            deletes = step > 1 and chance.random() < 0.25
            for name, table in tables.items():
                write = table.delete if deletes else table.upsert
                write(rows, options={"hoodie.index.type": name})
            assert self.rows(tables[self.name]) == self.rows(tables[simple]), step

    def test_a_key_that_is_stored_is_updated(self, tmp_path: Path) -> None:
        table = hudi.Table.create(str(tmp_path / "t"), _SCHEMA, name="t", record_key="id")
        index = {"hoodie.index.type": self.name}
        rows = pa.table({"id": ["a", "b"], "part": ["", ""], "value": [1, 1]}, schema=_SCHEMA)
        table.upsert(rows, options=index)
        result = table.upsert(rows.slice(0, 1), options=index)
        assert (result.inserted, result.updated) == (0, 1)
