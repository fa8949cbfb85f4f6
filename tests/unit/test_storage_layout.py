"""The seam between logical and physical paths."""

from __future__ import annotations

import pytest

from hudi_core.errors import InvalidOptionError, UnsafePathError
from hudi_core.storage.layout import StrategyLayout, layout_of
from hudi_core.storage.strategy import storage_strategy

PATHS = ["file.parquet", "a=1/b=2/file.parquet", ".hoodie/timeline/1.commit", "a/.hoodie_x"]


class Hashed:
    """A strategy with folders above, as RFC-60 has them."""

    depth = 2

    def location(self, partition_path: str, file_name: str) -> str:
        return f"{len(partition_path):x}-{file_name[:3]}/trips"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "name", [None, "default", "org.apache.hudi.x.HoodieDefaultStorageStrategy"]
)
def test_by_default_a_file_lies_where_the_table_says(name: str | None, path: str) -> None:
    layout = StrategyLayout(storage_strategy(name))
    assert layout.physical(path) == path
    assert layout.logical(path) == path


def test_a_strategy_puts_folders_above_data_files_alone() -> None:
    layout = StrategyLayout(Hashed())
    assert layout.physical("file.parquet") == "0-fil/trips/file.parquet"
    assert layout.physical("a=1/file.parquet") == "3-fil/trips/a=1/file.parquet"
    for path in (".hoodie/timeline/1.commit", "a=1/.hoodie_partition_metadata"):
        assert layout.physical(path) == path
    for path in (*PATHS, "a=1/.hoodie_partition_metadata"):
        assert layout.logical(layout.physical(path)) == path


def test_a_path_above_the_strategys_folders_is_no_file_of_the_table() -> None:
    with pytest.raises(UnsafePathError):
        StrategyLayout(Hashed()).logical("0-fil/trips")


@pytest.mark.parametrize("path", ["../x", "/x", "", "a//b"])
def test_unsafe_paths_are_refused(path: str) -> None:
    layout = layout_of({})
    with pytest.raises(UnsafePathError):
        layout.physical(path)
    with pytest.raises(UnsafePathError):
        layout.logical(path)


@pytest.mark.parametrize("name", ["HoodieObjectStorageStrategy", "os.system", ""])
def test_an_unknown_strategy_is_an_error(name: str) -> None:
    with pytest.raises(InvalidOptionError, match="not known"):
        layout_of({"hoodie.storage.strategy.class": name})
