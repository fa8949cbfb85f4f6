"""Lists of files as columns, without a Python object for each file.

Readers look at all files of a partition and keep few of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.avro import parse_writer_schema
from hudi_core.avro.map_columns import KEY, decode_map
from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.group_reader import GroupReader
from hudi_core.metadata.keys import ALL_PARTITIONS
from hudi_core.metadata.layers import BaseLayer, Entry
from hudi_core.metadata.partition_types import FILES
from hudi_core.metadata.range_cache import SHARED
from hudi_core.metadata.records import FileList, MetadataRecord, RecordType
from hudi_core.model.ranges import Mask

Ints = npt.NDArray[np.int64]
_LIST: Final = "filesystemMetadata"
_NO_NAME: Final = r"[/\x00]"
_SMALL_BYTES: Final = 50_000
"""Lists of fewer bytes are decoded one by one faster."""
_FEW: Final = 16
"""Of more partitions than so many all lists of a base file are decoded, and kept."""


@dataclass(frozen=True, slots=True)
class FileLists:
    """The present files of some partitions.

    Attributes
    ----------
    keys
        Names of the partitions, each once.
    owners
        Of each file the place of its partition among them, ascending.
    names, sizes
        Of each file its name and its bytes.
    groups
        Of each file a number that the files of its file group share.
    """

    keys: pa.StringArray
    owners: Ints
    names: pa.StringArray
    sizes: Ints
    groups: Ints

    def __len__(self) -> int:
        return len(self.owners)

    @property
    def nbytes(self) -> int:
        """Bytes of memory it takes."""
        return int(self.keys.nbytes + self.names.nbytes + 3 * self.owners.nbytes)

    @classmethod
    def of_files(
        cls, keys: pa.StringArray, owners: Ints, names: pa.StringArray, sizes: Ints
    ) -> FileLists:
        """Return lists of these files."""
        if not len(names):
            return cls(keys, owners, names, sizes, np.empty(0, np.int64))
        # a log file has the id of its file group behind a dot
        ids = pc.list_element(pc.split_pattern(names, "_", max_splits=1), 0)
        numbers = pc.utf8_ltrim(ids, ".").dictionary_encode().indices.to_numpy()
        pairs = owners * len(names) + numbers
        return cls(keys, owners, names, sizes, np.unique(pairs, return_inverse=True)[1])

    @classmethod
    def of(cls, lists: Mapping[str, FileList]) -> FileLists:
        """Return lists that were decoded one by one, without what is gone."""
        owners: list[int] = []
        names: list[str] = []
        sizes: list[int] = []
        for place, found in enumerate(lists.values()):
            present = [(name, one.size) for name, one in found.files.items() if not one.is_deleted]
            owners += [place] * len(present)
            names += [name for name, _ in present]
            sizes += [size for _, size in present]
        return cls.of_files(
            pa.array(lists, pa.string()),
            np.array(owners, np.int64),
            pa.array(names, pa.string()),
            np.array(sizes, np.int64),
        )

    def select(self, keys: Sequence[str] | pa.StringArray) -> FileLists:
        """Return the lists of some partitions in their order; of one that is not there, none."""
        wanted = keys if isinstance(keys, pa.Array) else pa.array(keys, pa.string())
        if wanted.equals(self.keys):
            return self
        places = pc.fill_null(pc.index_in(wanted, value_set=self.keys), len(self.keys)).to_numpy()
        counts = np.bincount(self.owners, minlength=len(self.keys) + 1)[places]
        begins = np.searchsorted(self.owners, places)
        owners = np.repeat(np.arange(len(places)), counts)
        rows = np.arange(len(owners)) + np.repeat(begins - (np.cumsum(counts) - counts), counts)
        return self._part(wanted, owners, rows)

    def known(self, keys: Sequence[str]) -> pa.BooleanArray:
        """Mask of the partitions that are there."""
        return pc.is_in(pa.array(keys, pa.string()), value_set=self.keys)

    def with_others(self, other: FileLists) -> FileLists:
        """Return these lists and, behind them, those of other partitions."""
        if not len(other.keys):
            return self
        if not len(self.keys):
            return other
        return FileLists(
            pa.concat_arrays([self.keys, other.keys]),
            np.concatenate([self.owners, other.owners + len(self.keys)]),
            pa.concat_arrays([self.names, other.names]),
            np.concatenate([self.sizes, other.sizes]),
            np.concatenate([self.groups, other.groups + self.groups.max(initial=-1) + 1]),
        )

    def with_their_groups(self, wanted: Mask) -> Ints:
        """Return the places of some files and of all others of their file groups."""
        is_wanted = np.zeros(self.groups.max(initial=-1) + 1, np.bool_)
        is_wanted[self.groups[wanted]] = True
        return np.flatnonzero(is_wanted[self.groups])

    def rows(self, rows: Ints) -> FileLists:
        """Return the lists with some of their files, given in order."""
        if len(rows) == len(self):
            return self
        return self._part(self.keys, self.owners[rows], rows)

    def _part(self, keys: pa.StringArray, owners: Ints, rows: Ints) -> FileLists:
        names = self.names.take(pa.array(rows))
        return FileLists(keys, owners, names, self.sizes[rows], self.groups[rows])


def decode_lists(
    entries: Iterable[tuple[bytes, bytes]], schema: str, path: str
) -> FileLists | None:
    """Return the lists of files that entries of one HFile hold, in their order.

    Parameters
    ----------
    entries
        Keys and values; the list of partitions among them is left out.
    schema
        Avro schema of the file, JSON, of the form that records have.
    path
        The file, for errors.

    Returns
    -------
    FileLists or None
        ``None`` where they cannot be read all at once, or something is wrong with one: decoded
        record by record, they say what.
    """
    pairs = [pair for pair in entries if pair[0] != ALL_PARTITIONS.encode()]
    parsed = parse_writer_schema(schema, path).parsed
    found = decode_map([value for _, value in pairs], parsed, _LIST)
    if found is None or len(found.present) < len(pairs):
        return None
    try:
        keys = pa.array([key for key, _ in pairs], pa.binary()).cast(pa.string())
        names = found.entries.texts(KEY, pa.string(), path)
    except (pa.ArrowInvalid, CorruptMetadataError):
        return None
    kinds = found.records.numbers("type", pa.int32())
    sizes = found.entries.numbers("size", pa.int64())
    is_right = (
        _all(pc.equal(kinds, int(RecordType.FILES)))
        and _all(pc.greater_equal(sizes, 0))
        and not pc.any(pc.match_substring_regex(names, _NO_NAME)).as_py()
        and pc.count_distinct(keys).as_py() == len(keys)
        and _are_distinct(found.owners, names)
    )
    if not is_right:
        return None
    present = pc.invert(found.entries.numbers("isDeleted", pa.bool_()))
    rows = np.flatnonzero(present.to_numpy(zero_copy_only=False))
    return FileLists.of_files(keys, found.owners, names, sizes.to_numpy()).rows(rows)


def _all(holds: pa.Array) -> bool:
    return not len(holds) or bool(pc.all(holds, skip_nulls=False).as_py())


def _are_distinct(owners: Ints, names: pa.StringArray) -> bool:
    """Whether no partition has a name twice."""
    if pc.count_distinct(names).as_py() == len(names):
        return True
    numbers = names.dictionary_encode().indices.to_numpy().astype(np.int64)
    return len(np.unique(owners * len(names) + numbers)) == len(names)


def read_lists(groups: Iterable[GroupReader], keys: Sequence[str]) -> FileLists:
    """Return the files of some partitions.

    Parameters
    ----------
    groups
        The file groups of the partition ``files`` of the metadata table.
    keys
        Names of partitions, each once; those that no file group knows are left out.

    Raises
    ------
    CorruptMetadataError
        A file of the metadata table is missing or damaged; it is named.
    """
    found = FileLists.of({})
    for group in groups:
        changed = group.changed(keys)
        rest = [key for key in keys if key not in changed] if changed else keys
        if group.base is not None:
            lists = _of_base(group.base, rest)
            known = pa.array(rest, pa.string()).filter(lists.known(rest))
            found = found.with_others(lists.select(known))
        found = found.with_others(FileLists.of(_file_lists(changed, group.path)))
    return found


def _of_base(layer: BaseLayer, keys: Sequence[str]) -> FileLists:
    """Return the lists of a base file: some of a few partitions, or all."""
    entry = (layer.identity, FILES)
    if len(keys) <= _FEW and not SHARED.holds(entry):
        return _decoded(layer, layer.reader.get_many(key.encode() for key in keys))
    return SHARED.get(entry, lambda: _decoded(layer, layer.reader.entries()))


def _decoded(layer: BaseLayer, entries: Iterable[Entry]) -> FileLists:
    some = list(entries)
    found = None
    if sum(len(value) for _, value in some) > _SMALL_BYTES:
        found = decode_lists(some, layer.reader.schema, layer.path)
    if found is None:
        records = {key: record for key, record in layer.decoded(some) if key != ALL_PARTITIONS}
        found = FileLists.of(_file_lists(records, layer.path))
    return found


def _file_lists(records: Mapping[str, MetadataRecord | None], path: str) -> Mapping[str, FileList]:
    lists: dict[str, FileList] = {}
    for key, record in records.items():
        if record is None:
            continue
        if not isinstance(record.payload, FileList):
            raise _damaged(path, f"the record of {key!r} is no list of files")
        for name in record.payload.files:
            if "/" in name or "\0" in name or name in ("", ".", ".."):
                raise _damaged(path, f"{name!r} is not the name of a file")
        lists[key] = record.payload
    return lists


def _damaged(path: str, reason: str) -> CorruptMetadataError:
    return CorruptMetadataError(path, reason, REBUILD)
