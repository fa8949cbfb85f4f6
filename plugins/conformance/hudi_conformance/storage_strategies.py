"""What a storage strategy must do."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

import hudi_core as hudi
from hudi_core.spi import StorageStrategy, load_extension

_OPTION = "hoodie.storage.strategy."


class StorageStrategySuite:
    """Tests of a storage strategy.

    Attributes
    ----------
    name
        Its name among the entry points.
    options
        Its own options, without ``hoodie.storage.strategy.``.
    partitions
        Paths of partitions.
    """

    name: ClassVar[str]
    options: ClassVar[Mapping[str, str]] = {}
    partitions: ClassVar[Sequence[str]] = ("", "a", "city=rome", "2026/11/23")

    def strategy(self, options: Mapping[str, str] | None = None) -> StorageStrategy:
        """A new strategy."""
        kind = load_extension("hudi.storage_strategies", self.name)
        assert issubclass(kind, StorageStrategy)
        return kind(self.options if options is None else options)

    def places(self) -> Sequence[tuple[str, str]]:
        """Partitions and ids of file groups, always the same."""
        ids = [f"{uuid.uuid5(uuid.NAMESPACE_OID, str(number))}-0" for number in range(200)]
        return [(partition, one) for partition in self.partitions for one in ids]

    def test_a_file_group_has_one_place(self) -> None:
        first = self.strategy()
        stored, sent = self.strategy(first.settings), pickle.loads(pickle.dumps(first))
        for partition, file_id in self.places():
            place = first.location(partition, file_id)
            for other in (stored, sent):
                assert other.location(partition, file_id) == place

    def test_many_places_are_those_of_each(self) -> None:
        strategy = self.strategy()
        for partition in self.partitions:
            ids = [one for at, one in self.places() if at == partition]
            each = [strategy.location(partition, one) for one in ids]
            assert list(strategy.locations(partition, ids)) == each

    def test_places_are_folders_of_its_depth(self) -> None:
        strategy = self.strategy()
        for partition, file_id in self.places():
            place = strategy.location(partition, file_id)
            folders = place.split("/") if place else []
            assert len(folders) == strategy.depth, place
            assert not {"", ".", ".."} & {*folders}, place
            assert not any(one.startswith(".") for one in folders), place
            assert strategy.is_location(place), place

    def test_settings_are_texts_that_make_the_same(self) -> None:
        settings = self.strategy().settings
        assert all(isinstance(each, str) for pair in settings.items() for each in pair)
        assert dict(self.strategy(settings).settings) == dict(settings)

    def test_a_table_is_written_read_and_dropped(self, tmp_path: Path) -> None:
        rows = pa.table({"id": ["a", "b", "c"], "part": ["x", "y", "y"], "value": [1, 2, 3]})
        store = tmp_path / "store"
        given = {f"{_OPTION}{name}": value for name, value in self.options.items()}
        table = hudi.Table.create(
            str(tmp_path / "t"),
            rows.schema,
            name="t",
            record_key="id",
            partition_by="part",
            options={f"{_OPTION}class": self.name, "hoodie.storage.path": str(store), **given},
        )
        table.insert(rows)
        table.upsert(rows.slice(1, 1))
        table.delete(rows.slice(2))
        again = hudi.Table.open(str(tmp_path / "t"))
        found = again.to_arrow(["id", "part", "value"]).sort_by("id").to_pylist()
        assert found == rows.slice(0, 2).to_pylist()
        assert again.validate().is_valid
        assert not list((tmp_path / "t").glob("*/*.parquet"))
        assert list(store.rglob("*.parquet"))
        again.drop()
        assert not [one for one in store.rglob("*") if one.is_file()]
