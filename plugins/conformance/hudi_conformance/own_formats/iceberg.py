"""The suite of the Iceberg format."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import load_file_io
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import StaticTable
from pyiceberg.table.update import update_table_metadata

from hudi_conformance.formats import TwoStepFormat, TwoStepFormatSuite
from hudi_conformance.formats.under_test import Row


def by_pyiceberg(path: Path) -> Iterable[Row]:
    """The rows of a table as pyiceberg reads them, by its folder."""
    rows: list[Row] = StaticTable.from_metadata(str(path)).scan().to_arrow().to_pylist()
    return rows


def append_with_pyiceberg(path: Path) -> None:
    """Append a row as a writer that keeps Iceberg tables in folders."""
    hint = path / "metadata" / "version-hint.text"
    table = StaticTable.from_metadata(str(path))

    class Folder(NoopCatalog):
        def commit_table(self, table: Any, requirements: Any, updates: Any) -> Any:
            made = update_table_metadata(table.metadata, updates)
            number = int(hint.read_text(encoding="utf-8")) + 1
            file = path / "metadata" / f"v{number}.metadata.json"
            ToOutputFile.table_metadata(made, load_file_io().new_output(str(file)))
            hint.write_text(str(number), encoding="utf-8")
            return type("Answer", (), {"metadata": made, "metadata_location": str(file)})()

    table.catalog = Folder("folder")
    table.append(table.scan(limit=1).to_arrow())


class IcebergSuite(TwoStepFormatSuite):
    """Apache Iceberg, read by pyiceberg."""

    format = TwoStepFormat(
        "iceberg",
        by_pyiceberg,
        lose=lambda path: shutil.rmtree(path / "metadata"),
        intrude=append_with_pyiceberg,
    )
