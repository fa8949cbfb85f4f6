"""The lists of files that the metadata table keeps, decoded into columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.avro import parse_writer_schema
from hudi_core.avro.map_columns import KEY, decode_map
from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.keys import ALL_PARTITIONS
from hudi_core.metadata.log.group_reader import GroupReader
from hudi_core.metadata.log.layers import BaseLayer, Entry
from hudi_core.metadata.log.records import FileList, MetadataRecord, RecordType
from hudi_core.metadata.partition_types import FILES
from hudi_core.metadata.statistics.range_cache import SHARED
from hudi_core.model.difference import Difference
from hudi_core.model.file_columns import FileColumns, Ints
from hudi_core.model.files import BaseFileName, FileStatus, LogFileName, PartitionPath
from hudi_core.model.protocols import TimelineView

_LIST: Final = "filesystemMetadata"
_NO_NAME: Final = r"[/\x00]"
_SMALL_BYTES: Final = 50_000
"""Lists of fewer bytes are decoded one by one faster."""
_FEW: Final = 16
"""Of more partitions than so many all lists of a base file are decoded, and kept."""


def columns_of_lists(lists: Mapping[str, FileList]) -> FileColumns:
    """Lists that were decoded one by one, without removed files, as columns."""
    owners: list[int] = []
    names: list[str] = []
    sizes: list[int] = []
    for place, found in enumerate(lists.values()):
        present = [(name, one.size) for name, one in found.files.items() if not one.is_deleted]
        owners += [place] * len(present)
        names += [name for name, _ in present]
        sizes += [size for _, size in present]
    return FileColumns.of_names(
        pa.array(lists, pa.string()),
        np.array(owners, np.int64),
        pa.array(names, pa.string()),
        np.array(sizes, np.int64),
    )


def decode_lists(
    entries: Iterable[tuple[bytes, bytes]], schema: str, path: str
) -> FileColumns | None:
    """Return the file lists in one HFile's entries, in order.

    The list of partitions is left out. ``None`` where the entries cannot be read all at once, or
    one is wrong: decoding them record by record then names the fault.
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
    return FileColumns.of_names(keys, found.owners, names, sizes.to_numpy()).rows(rows)


def _all(holds: pa.Array) -> bool:
    return not len(holds) or bool(pc.all(holds, skip_nulls=False).as_py())


def _are_distinct(owners: Ints, names: pa.StringArray) -> bool:
    """Whether no partition has a name twice."""
    if pc.count_distinct(names).as_py() == len(names):
        return True
    numbers = names.dictionary_encode().indices.to_numpy().astype(np.int64)
    return len(np.unique(owners * len(names) + numbers)) == len(names)


def read_lists(groups: Iterable[GroupReader], keys: Sequence[str]) -> FileColumns:
    """Return the files of some partitions."""
    found = columns_of_lists({})
    for group in groups:
        changed = group.changed(keys)
        rest = [key for key in keys if key not in changed] if changed else keys
        if group.base is not None:
            lists = _of_base(group.base, rest)
            known = pa.array(rest, pa.string()).filter(lists.known(rest))
            found = found.with_others(lists.select(known))
        found = found.with_others(columns_of_lists(_file_lists(changed, group.path)))
    return found


def _of_base(layer: BaseLayer, keys: Sequence[str]) -> FileColumns:
    """Return a base file's lists, of a few partitions or all."""
    entry = (layer.identity, FILES)
    if len(keys) <= _FEW and not SHARED.holds(entry):
        return _decoded(layer, layer.reader.get_many(key.encode() for key in keys))
    return SHARED.get(entry, lambda: _decoded(layer, layer.reader.entries()))


def _decoded(layer: BaseLayer, entries: Iterable[Entry]) -> FileColumns:
    some = list(entries)
    found = None
    if sum(len(value) for _, value in some) > _SMALL_BYTES:
        found = decode_lists(some, layer.reader.schema, layer.path)
    if found is None:
        records = {key: record for key, record in layer.decoded(some) if key != ALL_PARTITIONS}
        found = columns_of_lists(_file_lists(records, layer.path))
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


# --- comparison of a partition's files -----------------------------------------------------------


def compare_files(
    partition: PartitionPath,
    listed: Sequence[FileStatus],
    stored: Sequence[FileStatus],
    timeline: TimelineView,
) -> Iterator[Difference]:
    """Yield the differences of one partition, by name.

    ``listed`` is what the metadata table has, ``stored`` what the storage has. Only committed files
    have to be listed; a listed file of an instant later than ``timeline`` is no difference.
    """
    sizes = {file.name: file.size for file in listed if _counts(file.name, timeline)}
    found = {file.name: file.size for file in stored if _counts(file.name, timeline)}
    for name in sorted(sizes.keys() | found.keys()):
        if sizes.get(name) != found.get(name):
            subject = f"{name} of partition {partition!r}"
            yield Difference(FILES, subject, _bytes(found.get(name)), _bytes(sizes.get(name)))


def _counts(name: str, timeline: TimelineView) -> bool:
    parsed = BaseFileName.parse(name) or LogFileName.parse(name)
    return parsed is not None and timeline.is_committed(parsed.instant)


def _bytes(size: int | None) -> str | None:
    return None if size is None else f"{size} bytes"
