"""Tables and partitions of metastores, and the protocol of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class MetastoreColumn:
    """A column of an entry; its type in Hive's words."""

    name: str
    type: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class MetastoreTable:
    """A table's entry.

    Attributes
    ----------
    database, name
        What it is called.
    location
        Its folder; empty where the entry has none.
    table_type
        Hive's word for what it is, such as ``EXTERNAL_TABLE`` or ``VIRTUAL_VIEW``.
    input_format
        Name of the Java class that reads it.
    columns, partition_columns
        Its columns; those that partitions are made of apart.
    parameters, serde_parameters
        Further properties, of the table and of how its files are read.
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


@dataclass(frozen=True, slots=True)
class MetastorePartition:
    """A partition's entry.

    Attributes
    ----------
    values
        Texts of the partition columns.
    location
        Its folder; empty where the entry has none.
    """

    values: tuple[str, ...]
    location: str


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
