"""Tables and partitions of metastores, and the protocols of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class MetastoreColumn:
    """A column of an entry; its type in Hive's words."""

    name: str
    type: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class MetastoreTable:
    """A table's entry.

    ``location`` is empty where the entry has none. ``table_type`` is Hive's word, such as
    ``EXTERNAL_TABLE``; ``columns`` are without ``partition_columns``. ``version`` is the
    metastore's own name of the state that was read, which it compares before a change; ``None``
    where it does not compare.
    """

    database: str
    name: str
    location: str
    table_type: str
    input_format: str
    columns: tuple[MetastoreColumn, ...] = ()
    partition_columns: tuple[MetastoreColumn, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    serde_parameters: Mapping[str, str] = field(default_factory=dict)
    output_format: str = ""
    serde: str = ""
    version: str | None = None


@dataclass(frozen=True, slots=True)
class MetastorePartition:
    """A partition's entry.

    ``values`` are strings, in the order of the partition columns; ``location`` is empty where the
    entry has none.
    """

    values: tuple[str, ...]
    location: str


def batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Yield the items in batches."""
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


class Metastore(Protocol):
    """A metastore as connectors know it.

    One thread uses it at a time.
    """

    def databases(self) -> Sequence[str]:
        """Names of all databases, sorted."""
        ...

    def tables(self, database: str) -> Sequence[str]:
        """Names of all tables of a database, sorted.

        None of one that does not exist.
        """
        ...

    def table(self, database: str, name: str) -> MetastoreTable | None:
        """The entry of a table; ``None`` where there is none."""
        ...

    def partition_names(self, database: str, table: str) -> Sequence[str]:
        """Names of all partitions of a table, such as ``day=2026-01-31/city=Rome``."""
        ...

    def partitions(
        self, database: str, table: str, names: Sequence[str]
    ) -> Sequence[MetastorePartition]:
        """The entries of some partitions, in no particular order, by one call.

        Those that do not exist are not among them.
        """
        ...

    def interrupt(self) -> None:
        """Let the call fail that another thread waits for."""
        ...

    def close(self) -> None:
        """Give up the connection."""
        ...


class MetastoreWriter(Protocol):
    """A metastore as syncs know it.

    One thread uses it at a time. No call deletes a file. Every one of them may raise
    ``MetastoreError``, and ``MetastoreRefusalError`` where the metastore refuses a change.
    """

    @property
    def address(self) -> str:
        """Where it is, for messages and comparisons."""
        ...

    def place(self, uri: str) -> str:
        """The place of files, as its entries spell it."""
        ...

    def has_database(self, name: str) -> bool:
        """Whether there is a database of the name."""
        ...

    def create_database(self, name: str) -> None:
        """Make a database; no effect where another has just done so."""
        ...

    def table(self, database: str, name: str) -> MetastoreTable | None:
        """The entry of a table; ``None`` where there is none."""
        ...

    def create_table(self, table: MetastoreTable) -> None:
        """Make the entry of a table."""
        ...

    def change_table(
        self,
        before: MetastoreTable,
        after: MetastoreTable,
        *,
        with_partitions: bool = False,
        compared: str | None = None,
    ) -> None:
        """Replace the entry of a table.

        What these values do not cover stays.

        ``with_partitions``: the entries of partitions get its columns too. ``compared`` is a
        parameter that must still have its old value, so that no other writer's change is lost. Glue
        compares the whole entry, Hive metastores before 2.3.10 nothing.
        """
        ...

    def drop_table(self, database: str, name: str) -> None:
        """Delete the entry of a table, and of its partitions."""
        ...

    def all_partitions(self, table: MetastoreTable) -> Sequence[MetastorePartition]:
        """The entries of all partitions."""
        ...

    def find_partitions(
        self, table: MetastoreTable, values: Sequence[Sequence[str]]
    ) -> Sequence[MetastorePartition]:
        """The entries of those of some partitions that exist."""
        ...

    def add_partitions(
        self, table: MetastoreTable, partitions: Sequence[MetastorePartition]
    ) -> None:
        """Make entries of partitions, but of those that exist."""
        ...

    def change_partitions(
        self, table: MetastoreTable, partitions: Sequence[MetastorePartition]
    ) -> None:
        """Replace entries of partitions."""
        ...

    def drop_partitions(
        self, table: MetastoreTable, partitions: Sequence[MetastorePartition]
    ) -> None:
        """Delete entries of partitions, where they exist."""
        ...

    def close(self) -> None:
        """Give up the connection."""
        ...
