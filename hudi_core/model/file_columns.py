"""Files of partitions as columns, without a Python object for each file.

Readers look at all files of a partition and keep few of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.model.files import FileStatus, PartitionPath
from hudi_core.model.ranges import Mask

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The files of some partitions.

    Attributes
    ----------
    partitions
        Paths of the partitions, each once.
    owners
        The place of each file's partition among them, ascending.
    names, sizes
        The name and the bytes of each file.
    groups
        A number that the files of one file group share.
    statuses
        The files one by one, where they were listed so.
    """

    partitions: pa.StringArray
    owners: Ints
    names: pa.StringArray
    sizes: Ints
    groups: Ints
    statuses: npt.NDArray[np.object_] | None = None

    def __len__(self) -> int:
        return len(self.owners)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return int(self.partitions.nbytes + self.names.nbytes + 3 * self.owners.nbytes)

    @property
    def has_several_groups(self) -> bool:
        """Whether the files are of more than one file group."""
        return len(self) > 1 and bool((self.groups != self.groups[0]).any())

    @property
    def are_logs(self) -> Mask:
        """Mask of the log files."""
        mask: Mask = pc.starts_with(self.names, ".").to_numpy(zero_copy_only=False)
        return mask

    def paths(self) -> pa.StringArray:
        """Paths of the files, relative to the table."""
        folders = pc.if_else(
            pc.equal(self.partitions, ""), "", pc.binary_join_element_wise(self.partitions, "", "/")
        )
        return pc.binary_join_element_wise(folders.take(pa.array(self.owners)), self.names, "")

    @classmethod
    def of_names(
        cls, partitions: pa.StringArray, owners: Ints, names: pa.StringArray, sizes: Ints
    ) -> FileColumns:
        """Files by name, their file groups found."""
        if not len(names):
            return cls(partitions, owners, names, sizes, np.empty(0, np.int64))
        # a log file has the id of its file group behind a dot
        ids = pc.list_element(pc.split_pattern(names, "_", max_splits=1), 0)
        numbers = pc.utf8_ltrim(ids, ".").dictionary_encode().indices.to_numpy()
        pairs = owners * len(names) + numbers
        return cls(partitions, owners, names, sizes, np.unique(pairs, return_inverse=True)[1])

    @classmethod
    def of_statuses(cls, listed: Mapping[PartitionPath, Sequence[FileStatus]]) -> FileColumns:
        """Files that were listed one by one."""
        files = [one for some in listed.values() for one in some]
        counts = [len(some) for some in listed.values()]
        found = cls.of_names(
            pa.array(listed, pa.string()),
            np.repeat(np.arange(len(counts)), counts),
            pa.array([one.name for one in files], pa.string()),
            np.array([one.size for one in files], np.int64),
        )
        statuses = np.empty(len(files), np.object_)
        statuses[:] = files
        return replace(found, statuses=statuses)

    def by_partition(self) -> dict[PartitionPath, Sequence[FileStatus]]:
        """The files one by one, by partition, empty partitions included."""
        if self.statuses is None:
            files = zip(self.paths().to_pylist(), self.sizes.tolist(), strict=True)
            listed = [FileStatus(path, size) for path, size in files]
        else:
            listed = self.statuses.tolist()
        paths = self.partitions.to_pylist()
        ends = np.searchsorted(self.owners, np.arange(len(paths)), side="right").tolist()
        begins = [0, *ends]
        return {
            PartitionPath(path): listed[begin:end]
            for path, begin, end in zip(paths, begins, ends, strict=False)
        }

    def select(self, partitions: Sequence[str] | pa.StringArray) -> FileColumns:
        """The files of some partitions, in their order.

        None of one that is not there.
        """
        wanted = (
            pa.array(partitions, pa.string())
            if not isinstance(partitions, pa.Array)
            else partitions
        )
        if wanted.equals(self.partitions):
            return self
        places = pc.fill_null(
            pc.index_in(wanted, value_set=self.partitions), len(self.partitions)
        ).to_numpy()
        counts = np.bincount(self.owners, minlength=len(self.partitions) + 1)[places]
        begins = np.searchsorted(self.owners, places)
        owners = np.repeat(np.arange(len(places)), counts)
        rows = np.arange(len(owners)) + np.repeat(begins - (np.cumsum(counts) - counts), counts)
        return self._part(wanted, owners, rows)

    def known(self, partitions: Sequence[str]) -> pa.BooleanArray:
        """Mask of the partitions that are there."""
        return pc.is_in(pa.array(partitions, pa.string()), value_set=self.partitions)

    def with_others(self, other: FileColumns) -> FileColumns:
        """These files and, behind them, those of other partitions."""
        if not len(other.partitions):
            return self
        if not len(self.partitions):
            return other
        return FileColumns(
            pa.concat_arrays([self.partitions, other.partitions]),
            np.concatenate([self.owners, other.owners + len(self.partitions)]),
            pa.concat_arrays([self.names, other.names]),
            np.concatenate([self.sizes, other.sizes]),
            np.concatenate([self.groups, other.groups + self.groups.max(initial=-1) + 1]),
        )

    def with_their_groups(self, wanted: Mask) -> Ints:
        """Places of some files and of all others of their file groups."""
        is_wanted = np.zeros(self.groups.max(initial=-1) + 1, np.bool_)
        is_wanted[self.groups[wanted]] = True
        return np.flatnonzero(is_wanted[self.groups])

    def rows(self, rows: Ints) -> FileColumns:
        """Some of the files, by place in ascending order; all partitions stay."""
        if len(rows) == len(self):
            return self
        return self._part(self.partitions, self.owners[rows], rows)

    def _part(self, partitions: pa.StringArray, owners: Ints, rows: Ints) -> FileColumns:
        names = self.names.take(pa.array(rows))
        statuses = None if self.statuses is None else self.statuses[rows]
        return FileColumns(partitions, owners, names, self.sizes[rows], self.groups[rows], statuses)
