"""The partitions of a scan, from the table or a metastore."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple, Protocol

from hudi_core.errors import MetastoreEntryError, PartitionValueError, UnsafePathError
from hudi_core.metastore.catalog import Metastore, MetastorePartition, MetastoreTable
from hudi_core.model.files import PartitionPath
from hudi_core.read.connector.handles import TableHandle
from hudi_core.read.connector.listing import FileListing
from hudi_core.storage.location import parse_location
from hudi_core.storage.partition_path import DEFAULT_PARTITION, PartitionPathCodec


class PartitionKey(NamedTuple):
    """A partition column and its text in one partition; ``None`` for null."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """One partition to list.

    ``path`` is relative to the table, empty for a table without partitions; ``name`` is that of a
    metastore, such as ``day=2026-01-31/city=Rome``; ``keys`` is empty where the path does not give
    the values.
    """

    path: PartitionPath
    name: str
    keys: tuple[PartitionKey, ...] = ()


class PartitionSource(Protocol):
    """Lists the partitions of one scan; one thread asks it."""

    def batches(self) -> Iterator[Sequence[PartitionInfo]]:
        """Yield the partitions that may hold wanted rows."""
        ...

    def interrupt(self) -> None:
        """Let another thread give up that waits for partitions."""
        ...

    def close(self) -> None:
        """Give up connections."""
        ...


@dataclass(frozen=True, slots=True)
class BatchSizes:
    """Sizes of batches, each twice the one before."""

    first: int
    greatest: int

    def cut(self, count: int) -> Iterator[slice]:
        """Yield the batches of so many things.

        10, 20, 40, 80, 100, 100, ...
        """
        begin, size = 0, self.first
        while begin < count:
            yield slice(begin, begin + size)
            begin, size = begin + size, min(2 * size, self.greatest)


class TablePartitions:
    """The partitions that a table has itself."""

    def __init__(self, listing: FileListing, sizes: BatchSizes) -> None:
        self._listing, self._sizes = listing, sizes

    def batches(self) -> Iterator[Sequence[PartitionInfo]]:
        """See :meth:`PartitionSource.batches`."""
        paths = self._listing.partitions()
        for cut in self._sizes.cut(len(paths)):
            yield [self._info(path) for path in paths[cut]]

    def interrupt(self) -> None:
        """See :meth:`PartitionSource.interrupt`."""

    def close(self) -> None:
        """See :meth:`PartitionSource.close`."""

    def _info(self, path: PartitionPath) -> PartitionInfo:
        return partition_info(path, self._listing.pruner.values(path))


class MetastorePartitions:
    """The partitions of a table that a metastore has.

    Names are listed in one call, and those are left out that cannot have wanted rows; of the others
    the metastore is asked in batches (RFC-40, "Batching Hive metastore calls").

    The connection to the metastore is closed with the source.
    """

    def __init__(
        self,
        metastore: Metastore,
        entry: MetastoreTable,
        listing: FileListing,
        table: TableHandle,
        sizes: BatchSizes,
    ) -> None:
        self._metastore, self._entry, self._listing = metastore, entry, listing
        self._base, fields = parse_location(table.base_path), table.partition_columns
        self._sizes = sizes
        named = tuple(column.name for column in entry.partition_columns)
        # metastores know names in lower case; where a table's fields are others, they are not it
        alike = [name.lower() for name in named] == [field.lower() for field in fields]
        self._fields = tuple(fields) if alike else named
        self._tells_fields = alike
        self._codec = PartitionPathCodec(named, hive_style=True, url_encode=True)

    def batches(self) -> Iterator[Sequence[PartitionInfo]]:
        """See :meth:`PartitionSource.batches`."""
        names = self._kept(self._metastore.partition_names(self._entry.database, self._entry.name))
        for cut in self._sizes.cut(len(names)):
            found = self._metastore.partitions(self._entry.database, self._entry.name, names[cut])
            infos = [self._info(one) for one in found]
            kept = set(self._listing.keep([info.path for info in infos]))
            yield [info for info in infos if info.path in kept]

    def interrupt(self) -> None:
        """See :meth:`PartitionSource.interrupt`."""
        self._metastore.interrupt()

    def close(self) -> None:
        """See :meth:`PartitionSource.close`."""
        self._metastore.close()

    def _kept(self, names: Sequence[str]) -> Sequence[str]:
        if self._listing.predicate.is_none:
            return []
        wanted = self._listing.wanted
        if wanted is None or not self._tells_fields:
            return names
        rows = [self._values_of(name) for name in names]
        return list(compress(names, self._listing.pruner.mask(rows, wanted)))

    def _values_of(self, name: str) -> Mapping[str, str | None]:
        try:
            return dict(zip(self._fields, self._codec.decode(name), strict=True))
        except (PartitionValueError, UnsafePathError, ValueError):
            return {}

    def _info(self, found: MetastorePartition) -> PartitionInfo:
        values = [None if one == DEFAULT_PARTITION else one for one in found.values]
        path = self._path_of(found)
        return partition_info(path, dict(zip(self._fields, values, strict=False)))

    def _path_of(self, found: MetastorePartition) -> PartitionPath:
        place = parse_location(found.location)
        base = self._base
        is_below = place.key.startswith(f"{base.key}/" if base.key else "")
        if (place.kind, place.bucket) != (base.kind, base.bucket) or not is_below:
            raise MetastoreEntryError(
                f"{self._entry.database}.{self._entry.name}",
                f"has a partition at {found.location}, which is not below {base.uri}",
                "Bring the metastore up to date with the table, or set "
                "hudi.metadata.partition-listing.enabled=true.",
            )
        return PartitionPath(place.key[len(base.key) :].strip("/"))


def partition_info(path: PartitionPath, values: Mapping[str, str | None]) -> PartitionInfo:
    """A partition by its path and the strings of its columns."""
    keys = tuple(PartitionKey(name, value) for name, value in values.items())
    try:
        codec = PartitionPathCodec(list(values), hive_style=True, url_encode=True)
        name = codec.encode(list(values.values())) if keys else path
    except PartitionValueError:
        name = path
    return PartitionInfo(path, name, keys)
