"""Data files that are symbolic links: followed inside of a table, refused where they lead out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.errors import HudiError, UnsafePathError
from tests.formats.service_tables import READERS, bag
from tests.formats.two_steps import READABLE, batch, small_table
from tests.unit.refusals import files

USES: dict[str, Callable[[hudi.Table], object]] = {
    "read": lambda t: t.to_arrow(),
    "as of": lambda t: t.to_arrow(as_of=t.timeline.completed_writes()[0]),
    "incremental": lambda t: t.incremental(),
    "upsert": lambda t: t.upsert(batch(2, "a")),
    "delete": lambda t: t.delete(batch(2, "b")),
    "validate": lambda t: t.validate(),
}


def secret(folder: Path) -> Path:
    """A file of another table, which whoever planted the link must not get to see."""
    other = small_table(folder / "other", "native")
    other.upsert(batch(9, "a", "c"))
    [file] = other.file_slices(filter=[("city", "=", "rome")])
    assert file.base_file is not None
    return folder / "other" / file.base_file.path


def linked(table: hudi.Table, target: Path) -> Path:
    """Put a link in the place of a data file; the size that metadata tells may be another."""
    [found] = table.file_slices(filter=[("city", "=", "rome")])
    assert found.base_file is not None
    path = Path(table.path, found.base_file.path)
    path.unlink()
    path.symlink_to(target)
    return path


@pytest.mark.parametrize("metadata_table", ["true", "false"])
@pytest.mark.parametrize("format_name", [*READABLE, "native"])
def test_a_link_out_of_it_is_not_read(
    tmp_path: Path, format_name: str, metadata_table: str
) -> None:
    options = {"hoodie.metadata.enable": metadata_table}
    table = small_table(tmp_path / "t", format_name, **options)
    outside = secret(tmp_path)
    linked(table, outside)
    for name, use in USES.items():
        with pytest.raises(HudiError, match="a symbolic link leads it") as caught:
            use(hudi.Table.open(table.path, options))
        assert isinstance(caught.value, UnsafePathError), name
    assert str(outside) in str(caught.value)


def test_a_folder_that_leads_out_is_no_partition(tmp_path: Path) -> None:
    table = small_table(tmp_path / "t", "native")
    outside = tmp_path / "moved"
    Path(table.path, "rome").rename(outside)
    Path(table.path, "rome").symlink_to(outside)
    before = files(outside)
    for use in USES.values():
        with pytest.raises(UnsafePathError, match="a symbolic link leads it"):
            use(hudi.Table.open(table.path))
    assert files(outside) == before


def test_a_link_that_stays_in_the_table_is_followed(tmp_path: Path) -> None:
    table = small_table(tmp_path / "t", "native")
    [found] = table.file_slices(filter=[("city", "=", "rome")])
    assert found.base_file is not None
    path = Path(table.path, found.base_file.path)
    kept = path.with_name("kept")
    path.rename(kept)
    path.symlink_to(kept.name)
    assert table.to_arrow().num_rows == 3
    table.upsert(batch(2, "a"))
    assert table.to_arrow(columns=["ts"]).column("ts").to_pylist().count(2) == 1


@pytest.mark.spark
def test_spark_is_not_given_a_link_out_of_the_table(tmp_path: Path, spark: SparkSession) -> None:
    table = small_table(tmp_path / "t", "native")
    linked(table, secret(tmp_path))
    with pytest.raises(UnsafePathError, match="a symbolic link leads it"):
        hudi.Table.open(table.path).read(spark)


@pytest.mark.parametrize("created", ["link", "folder"])
@pytest.mark.parametrize("format_name", ["native", "iceberg,delta"])
def test_a_link_to_a_table_is_a_name_of_it(tmp_path: Path, format_name: str, created: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    other = "folder" if created == "link" else "link"
    table = small_table(tmp_path / created / "t", format_name)
    table.upsert(batch(1, "a", "b"))
    opened = hudi.Table.open(str(tmp_path / other / "t"))
    opened.upsert(batch(2, "b", "c"))
    opened.insert_overwrite(batch(3, "a"))
    assert opened.validate().differences == table.validate().differences == ()
    rows = hudi.Table.open(table.path).to_arrow()
    for one in format_name.split(","):
        for read in READERS[one]:
            for folder in (created, other):
                assert bag(read(tmp_path / folder / "t"), rows.column_names) == bag(rows)
