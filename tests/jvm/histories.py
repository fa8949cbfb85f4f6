"""A table's life, which either writer can lead, and a dictionary that says what is left of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa

import hudi_core as hudi
from hudi_core.model.instant import Instant
from tests.formats.columns import CITIES, TYPED
from tests.formats.delta_tables import content, row
from tests.jvm.engines import Engine
from tests.jvm.writers import Shape, Writer

Row = dict[str, Any]
ENCODED: Final = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
FOLDERS: Final = {
    "rome": "rome",
    "oslo": "oslo",
    "new york": "new york",
    "a%b": "a%25b",
    None: "__HIVE_DEFAULT_PARTITION__",
}
"""Folders of the cities, encoded."""


@dataclass(frozen=True)
class Step:
    """One operation.

    ``operation``: as Hudi names it. ``keys``: numbers of the rows, which decide their cities.
    ``ts``: ordering value of the rows, and what they hold. ``city``: the partition that
    ``delete_partition`` deletes.
    """

    operation: str
    keys: Sequence[int] = ()
    ts: int = 0
    city: str | None = None

    def rows(self) -> pa.Table:
        """The rows that it brings."""
        return pa.Table.from_pylist([made(key, self.ts) for key in self.keys], TYPED)

    def take(self, write: Writer, path: Path, shape: Shape) -> None:
        """Let a writer take the step."""
        if self.operation == "delete_partition":
            hive = "hoodie.datasource.write.hive_style_partitioning" in shape.options
            folder = f"{'city=' if hive else ''}{FOLDERS[self.city]}"
            named = {"hoodie.datasource.write.partitions.to.delete": folder}
            write(self.operation, Step("", [0]).rows(), path, shape.with_options(named))
        else:
            write(self.operation, self.rows(), path, shape)


def made(key: int, ts: int) -> Row:
    """A row, whose values follow from its key and its ordering value."""
    return row(key, ts, key - ts / 4)


@dataclass
class Model:
    """Rows by their keys; of two versions the one with the greater ordering value stays, or the
    later one where nothing is ordered."""

    rows: dict[int, Row] = field(default_factory=dict)
    is_ordered: bool = True

    def take(self, step: Step) -> None:
        """Do what a step does."""
        given = {key: made(key, step.ts) for key in step.keys}
        cities = {one["city"] for one in given.values()}
        match step.operation:
            case "insert" | "bulk_insert":
                assert not given.keys() & self.rows.keys()
                self.rows |= given
            case "upsert":
                for key, new in given.items():
                    stored = self.rows.get(key) if self.is_ordered else None
                    if stored is None or stored["ts"] <= new["ts"]:
                        self.rows[key] = new
            case "delete":
                for key in given:
                    self.rows.pop(key, None)
            case "insert_overwrite":
                self._keep(lambda one: one["city"] not in cities)
                self.rows |= given
            case "insert_overwrite_table":
                self.rows = given
            case "delete_partition":
                self._keep(lambda one: one["city"] != step.city)
            case other:
                raise AssertionError(other)

    def _keep(self, stays: Callable[[Row], bool]) -> None:
        self.rows = {key: one for key, one in self.rows.items() if stays(one)}

    @property
    def content(self) -> Counter[str]:
        """What readers are to see."""
        return content(pa.Table.from_pylist(list(self.rows.values()), TYPED))


def of_city(city: str | None, first: int, count: int) -> list[int]:
    """Numbers of rows of one city, from a number on."""
    start = first + (CITIES.index(city) - first) % len(CITIES)
    return list(range(start, start + count * len(CITIES), len(CITIES)))


LIFE: Final = (
    Step("insert", range(12)),
    Step("upsert", [0, 1, 2, 3, 20, 21], ts=2),
    Step("upsert", [0, 5, 22], ts=1),
    Step("delete", [3, 4]),
    Step("bulk_insert", range(30, 36)),
    Step("insert_overwrite", of_city("oslo", 40, 3)),
    Step("delete_partition", city="new york"),
    Step("insert", of_city("new york", 60, 2)),
)
"""Every operation but the one that replaces the whole table."""
AGE: Final = tuple(Step("upsert", [0, 5, 100 + number], ts=10 + number) for number in range(6))
"""More commits: with those of :data:`LIFE` enough to have the metadata table compacted."""


def live(
    steps: Iterable[Step], write: Writer, path: Path, shape: Shape, model: Model
) -> Iterator[Step]:
    """Take steps one by one, the model with them; yield each when it is done."""
    for step in steps:
        step.take(write, path, shape)
        model.take(step)
        yield step


def read_by_us(path: Path, as_of: str | None = None) -> Counter[str]:
    """Rows as this project reads them."""
    return content(hudi.Table.open(str(path)).to_arrow(as_of=as_of))


def read_by_hudi(
    engine: Engine, path: Path, options: Mapping[str, str] | None = None
) -> Counter[str]:
    """Rows as Hudi-Spark reads them."""
    return content(engine.read(path, options))


def changes_by_hudi(engine: Engine, path: Path, since: Instant) -> Counter[str]:
    """Rows that an incremental query of Hudi-Spark finds since an instant.

    It takes the encoded name of a partition for the value of its column, also in its own tables:
    ``test_changes_of_encoded_partitions`` shows it.
    """
    found = engine.read(path, since_options(since))
    place = found.schema.get_field_index("city")
    cities = [city and unquote(city) for city in found["city"].to_pylist()]
    return content(
        found.set_column(place, found.schema.field(place), pa.array(cities, pa.string()))
    )


def encoded_changes(write: Writer, path: Path, shape: Shape) -> Instant:
    """Make a table whose last write brings one row, to a partition whose name is encoded.

    ``shape``: of a table that is partitioned by city, whose names are encoded. The city of the row
    is ``a%b``. Returns: The write before.
    """
    Step("insert", of_city("oslo", 0, 1)).take(write, path, shape)
    Step("insert", of_city("a%b", 10, 1)).take(write, path, shape)
    return hudi.Table.open(str(path)).timeline.completed_writes()[0]


def since_options(since: Instant) -> dict[str, str]:
    """Options of Hudi's incremental query of what completed after an instant."""
    return {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": since.effective_completion_time,
    }
