"""The cells of the matrix: operation x index x layout x table version x place.

Every cell has a name; samples are cells in which any two values of different axes meet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cache
from heapq import heapreplace
from itertools import combinations, product
from typing import Final

from tests.interop.matrix_layouts import BUCKETS, LAYOUTS, Layout

OPERATIONS: Final = (
    "insert",
    "insert-dropping",
    "upsert",
    "upsert-flagged",
    "upsert-partial",
    "delete",
    "bulk_insert-NONE",
    "bulk_insert-PARTITION_SORT",
    "bulk_insert-GLOBAL_SORT",
    "bulk_insert-PARTITION_PATH_REPARTITION",
    "bulk_insert-PARTITION_PATH_REPARTITION_AND_SORT",
    "insert_overwrite",
    "insert_overwrite_table",
    "delete_partitions",
)
INDEXES: Final = {
    "SIMPLE": {"hoodie.index.type": "SIMPLE"},
    "BLOOM": {"hoodie.index.type": "BLOOM"},
    "GLOBAL_SIMPLE-moves": {
        "hoodie.index.type": "GLOBAL_SIMPLE",
        "hoodie.simple.index.update.partition.path": "true",
    },
    "GLOBAL_SIMPLE-stays": {
        "hoodie.index.type": "GLOBAL_SIMPLE",
        "hoodie.simple.index.update.partition.path": "false",
    },
    "GLOBAL_BLOOM-moves": {
        "hoodie.index.type": "GLOBAL_BLOOM",
        "hoodie.bloom.index.update.partition.path": "true",
    },
    "GLOBAL_BLOOM-stays": {
        "hoodie.index.type": "GLOBAL_BLOOM",
        "hoodie.bloom.index.update.partition.path": "false",
    },
    "BUCKET": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": str(BUCKETS)},
}
VERSIONS: Final = ("8", "9")
ENGINES: Final = ("local", "spark", "source")
"""This process, the Python API on Spark, and Spark's own door: ``df.write.format("hudi")``."""
STORES: Final = ("disk", "s3")
COSTS: Final = {
    "local-disk": 1,
    "local-s3": 4,
    "spark-disk": 6,
    "spark-s3": 9,
    "source-disk": 9,
    "source-s3": 12,
}
"""Time that a cell takes, by place."""


@dataclass(frozen=True, order=True)
class Cell:
    """One combination."""

    operation: str
    index: str
    layout: str
    version: str
    engine: str
    store: str

    @property
    def name(self) -> str:
        words = (self.operation, self.index, self.layout, f"v{self.version}", self.place)
        return "/".join(words)

    @property
    def place(self) -> str:
        return f"{self.engine}-{self.store}"

    @property
    def keys(self) -> Layout:
        return LAYOUTS[self.layout]

    @property
    def is_global(self) -> bool:
        return self.index.startswith("GLOBAL")

    @property
    def moves(self) -> bool:
        return self.index.endswith("moves")

    @property
    def buckets(self) -> bool:
        return self.index == "BUCKET"


def whole() -> list[Cell]:
    """Return all cells; those that start from one table stand together."""
    axes = (ENGINES, STORES, LAYOUTS, VERSIONS, INDEXES, OPERATIONS)
    return [
        Cell(operation, index, layout, version, engine, store)
        for engine, store, layout, version, index, operation in product(*axes)
        if LAYOUTS[layout].partition or operation != "delete_partitions"
    ]


@cache
def sample_of_all() -> list[Cell]:
    """Return cells in which any two values of two axes meet somewhere."""
    return sample(whole())


def sample_by_place() -> list[Cell]:
    """Return cells in which any two values of two axes meet in every place."""
    cells = whole()
    return [
        one for place in COSTS for one in sample([cell for cell in cells if cell.place == place])
    ]


def sample(cells: Sequence[Cell]) -> list[Cell]:
    """Return some of the cells, in their order: any two values that meet in one, meet in these.

    Greedy, and the same every time: the cell with the most pairs that are missing is next; of
    several the one whose place has had the least time.
    """
    # a pair of values is a bit: thousands of cells are compared a hundred times
    bits: dict[object, int] = {}
    pairs = [
        sum(
            1 << bits.setdefault(pair, len(bits))
            for pair in combinations(enumerate(astuple(cell)), 2)
        )
        for cell in cells
    ]
    places = [cell.place for cell in cells]
    missing = (1 << len(bits)) - 1
    chosen: list[int] = []
    spent = Counter[str]()

    def rank(number: int) -> tuple[int, int, int]:
        return -(pairs[number] & missing).bit_count(), spent[places[number]], number

    # ranks only fall while cells are chosen: what is first by its rank of before and of now is best
    ranks = sorted(map(rank, range(len(cells))))
    while missing:
        best = ranks[0][2]
        if (now := rank(best)) != ranks[0]:
            heapreplace(ranks, now)
            continue
        missing &= ~pairs[best]
        chosen.append(best)
        spent[places[best]] += COSTS[places[best]]
    return [cells[number] for number in sorted(chosen)]
