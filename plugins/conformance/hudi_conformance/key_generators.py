"""What a key generator must do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

import hudi_core as hudi
from hudi_conformance.processes import in_another_process

_ROWS = pa.table(
    {
        "id": [f"{number:03d}" for number in range(40)],
        "city": ["Ulm", "Bonn", "Köln", "Bern"] * 10,
        "value": list(range(40)),
    }
)
_WRITE = """
import json, sys
import pyarrow.parquet as pq
from hudi_conformance.key_generators import made_of

print(json.dumps(made_of(sys.argv[1], pq.read_table(sys.argv[2]), json.loads(sys.argv[3]))))
"""

Made = list[list[str]]
"""The record key and the partition path of each row."""


def made_of(path: str, rows: pa.Table, options: Mapping[str, str]) -> Made:
    """Write rows into a new table, and return what the key generator made of each.

    Parameters
    ----------
    rows
        Are distinguished by their column ``_position``.
    """
    schema = rows.schema
    table = hudi.Table.create(path, schema, options={**options, "hoodie.table.name": "keys"})
    table.insert(rows)
    found = table.to_arrow().sort_by("_position")
    keys = found.column("_hoodie_record_key").to_pylist()
    paths = found.column("_hoodie_partition_path").to_pylist()
    return [list(pair) for pair in zip(keys, paths, strict=True)]


class KeyGeneratorSuite:
    """Tests of a key generator.

    Attributes
    ----------
    name
        Its name among the entry points.
    rows
        Rows that it takes, each with another record key, at least two.
    record_key, partition_by
        The table's record key and partition fields.
    options
        Options of its own, and of the table.
    """

    name: ClassVar[str]
    rows: ClassVar[pa.Table] = _ROWS
    record_key: ClassVar[Sequence[str]] = ("id",)
    partition_by: ClassVar[Sequence[str]] = ("city",)
    options: ClassVar[Mapping[str, str]] = {}

    def all_options(self) -> dict[str, str]:
        """The options of a table with the key generator."""
        return {
            "hoodie.datasource.write.keygenerator.type": self.name,
            "hoodie.datasource.write.recordkey.field": ",".join(self.record_key),
            "hoodie.datasource.write.partitionpath.field": ",".join(self.partition_by),
            **self.options,
        }

    def numbered(self) -> pa.Table:
        """The rows with their positions."""
        return self.rows.append_column("_position", pa.array(range(self.rows.num_rows)))

    def made(self, tmp_path: Path) -> Made:
        """What is made of the rows."""
        return made_of(str(tmp_path / "all"), self.numbered(), self.all_options())

    def test_every_row_has_a_key_of_its_own(self, tmp_path: Path) -> None:
        made = self.made(tmp_path)
        assert len(made) == self.rows.num_rows
        assert len({key for key, _ in made}) == self.rows.num_rows

    def test_the_company_of_a_row_changes_nothing(self, tmp_path: Path) -> None:
        rows, made = self.numbered(), self.made(tmp_path)
        backwards = rows.take(pa.array(range(rows.num_rows - 1, -1, -1)))
        assert made_of(str(tmp_path / "back"), backwards, self.all_options()) == made
        half = rows.num_rows // 2
        parts = [rows.slice(0, half), rows.slice(half)]
        apart = [
            made_of(str(tmp_path / f"part{number}"), part, self.all_options())
            for number, part in enumerate(parts)
        ]
        assert [*apart[0], *apart[1]] == made

    def test_another_process_makes_the_same(self, tmp_path: Path) -> None:
        file = tmp_path / "rows.parquet"
        pq.write_table(self.numbered(), file)
        options = json.dumps(self.all_options())
        printed = in_another_process(_WRITE, str(tmp_path / "other"), str(file), options)
        assert json.loads(printed) == self.made(tmp_path)

    def test_an_upsert_finds_its_rows(self, tmp_path: Path) -> None:
        path = str(tmp_path / "table")
        options = {**self.all_options(), "hoodie.table.name": "keys"}
        rows = self.numbered()
        hudi.Table.create(path, rows.schema, options=options).insert(rows)
        table = hudi.Table.open(path)
        result = table.upsert(rows)
        assert (result.inserted, result.updated) == (0, rows.num_rows)
        assert table.to_arrow().num_rows == rows.num_rows

    def test_a_delete_finds_its_row(self, tmp_path: Path) -> None:
        path = str(tmp_path / "table")
        options = {**self.all_options(), "hoodie.table.name": "keys"}
        rows = self.numbered()
        table = hudi.Table.create(path, rows.schema, options=options)
        table.insert(rows)
        table.delete(rows.slice(0, 1))
        assert table.to_arrow().num_rows == rows.num_rows - 1
