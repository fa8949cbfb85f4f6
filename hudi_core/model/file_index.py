"""Indexes of a table's files and of their contents."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_core.model.file_columns import FileColumns
from hudi_core.model.files import FileGroupId, FileStatus, PartitionPath
from hudi_core.model.ranges import ValueRanges
from hudi_core.model.stats import Scalar

Positions = npt.NDArray[np.int64]


@runtime_checkable
class FileIndex(Protocol):
    """A table's files.

    A storage listing, a metadata table, or a format's manifests.

    Implementations inherit it. They have to list partitions and files; every other answer is
    optional, and by default says that nothing is known. Any of them may be given by any format: the
    project's own has no other way.

    **What it owes.** Every file that a view as of any instant of the active timeline may need,
    until a clean deletes it: the present files, older slices of their groups, and groups that were
    replaced, also those of before the table was given its format. A format that names the present
    files alone adds those of ``table_lister``. It may leave out a file without rows where it names
    no older slice of the group, whose rows would come back, and files of writes that are not
    complete, and may name these: the view leaves out what no completed instant of the timeline has
    written.
    """

    @abstractmethod
    def list_partitions(self) -> Sequence[PartitionPath]:
        """Every partition path, sorted; ``[""]`` for a table without partitions."""
        ...

    def partition_paths(self) -> pa.StringArray:
        """The partitions of :meth:`list_partitions` as an array, in any order, perhaps twice.

        Worth overriding where very many are known without an object for each: queries with a
        filter on partitions ask it.
        """
        return pa.array(self.list_partitions(), pa.string())

    def partitions_among(self, partitions: Sequence[PartitionPath]) -> Sequence[PartitionPath]:
        """Those of some partitions that there are, in their order.

        Worth overriding where that is known without a list of all.
        """
        known = frozenset(self.list_partitions())
        return [path for path in partitions if path in known]

    @abstractmethod
    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        """The files of each partition, old ones included; see the class.

        Every partition that was asked for is a key, also one without files or one that does not
        exist.
        """
        ...

    def list_columns(self, partitions: Sequence[PartitionPath]) -> FileColumns:
        """The files of :meth:`list_files` as columns.

        Worth overriding where many files are known without an object for each: queries with a
        filter ask it. It has every partition that was asked for, also those without files.
        """
        return FileColumns.of_statuses(self.list_files(list(dict.fromkeys(partitions))))

    def partition_ranges(
        self, partitions: Sequence[PartitionPath], column: str, kind: pa.DataType
    ) -> ValueRanges | None:
        """Ranges over the present rows of each partition; ``None`` where unknown.

        Parameters
        ----------
        partitions
            Paths of partitions.
        column
            Path of the column, with dots.
        kind
            Its type in the table's schema.
        """
        del partitions, column, kind
        return None

    def file_ranges(self, files: FileColumns, column: str, kind: pa.DataType) -> ValueRanges | None:
        """Ranges over the rows of each base file; ``None`` where unknown.

        Where it is ``None``, the metadata table's column statistics are asked, if there are any.

        Parameters
        ----------
        files
            Files of the table; what is said of log files does not count.
        column, kind
            As above.
        """
        del files, column, kind
        return None

    def groups_of_values(self, column: str, values: pa.Array) -> frozenset[FileGroupId] | None:
        """File groups that hold a row with one of some values now.

        ``None`` where unknown.

        Parameters
        ----------
        column
            Path of the column, with dots.
        values
            Of its type in the table's schema.
        """
        del column, values
        return None

    def named_files(self) -> Iterable[NamedFile] | None:
        """Files that the format's newest state names, with their statistics.

        It is what a reader of the format sees, from nothing but the format's own metadata;
        ``None`` where the format keeps no list of its own.

        Raises
        ------
        CorruptMetadataError
            The format's metadata is gone or damaged.
        """
        return None

    def deleted_positions(self, paths: Sequence[str]) -> Mapping[str, Positions] | None:
        """Rows that the format has deleted in some files; ``None`` where unknown.

        Of the state in which :meth:`named_files` named them last. ``validate`` compares them with
        those of the table's log files, which this project reads.

        Parameters
        ----------
        paths
            Relative to the base path.

        Returns
        -------
        Mapping
            Distinct positions in ascending order, counted from 0, by path. Files without dead rows
            may be left out.

        Raises
        ------
        CorruptMetadataError, PathNotFoundError
            What says which rows these are is damaged or gone.
        """
        del paths
        return None

    def reads_old_lists(self) -> bool:
        """Whether all readers read lists of two levels in Parquet.

        Files of other engines may hold such; files that are written here do not.
        """
        return True

    def unreadable(self, columns: pa.Schema) -> str | None:
        """Why readers misread a file; ``None`` if they do not.

        Another engine may have written the file, and a later commit has published it. Asked of
        every present file by ``validate``.

        Parameters
        ----------
        columns
            Those of the file, with the field ids that it carries.
        """
        del columns
        return None

    def leftovers(self) -> Iterable[str]:
        """Paths of the format's own metadata files that nothing reaches.

        Relative to the table.
        """
        return ()


# --- files in a format's newest state, and their recorded column bounds ---------------------------


@dataclass(frozen=True, slots=True)
class StatedColumn:
    """A format's statistics of one column of one file.

    Attributes
    ----------
    low, high
        In the internal form of :class:`~hudi_core.model.stats.ColumnStats`: no value of the column
        but NaN lies outside of them. ``None`` where no bound is kept.
    null_count
        Number of nulls; ``None`` where none is kept.
    """

    low: Scalar | None = None
    high: Scalar | None = None
    null_count: int | None = None


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that a format names.

    Attributes
    ----------
    path
        Relative to the base path.
    size
        Bytes.
    rows
        Number of rows; ``None`` where the format keeps none.
    columns
        By leaf path; columns of which nothing is kept are left out.
    spelling
        The path as the format spells it, where some of its readers do not take that for this file;
        ``None`` where all do.
    deleted_rows
        Rows that the format has deleted without writing a file of the others: of ``path`` itself by
        a vector, or of other files where ``path`` only says which; then its ``rows`` are 0.
        ``None`` where how many these are cannot be known without reading rows.
    """

    path: str
    size: int
    rows: int | None = None
    columns: Mapping[str, StatedColumn] = field(default_factory=dict)
    spelling: str | None = None
    deleted_rows: int | None = 0
