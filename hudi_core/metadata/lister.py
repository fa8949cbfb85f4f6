"""The file lister that asks the metadata table."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import compress
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.avro.columns import KEY, decode_map
from hudi_core.avro.datum import parse_writer_schema
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.errors import CorruptMetadataError, InstantNotFoundError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.index_definitions import IndexDefinitions, read_definitions
from hudi_core.metadata.key_index.value_index import groups_of_keys, groups_of_values
from hudi_core.metadata.keys import ALL_PARTITIONS, NO_PARTITION, partition_name
from hudi_core.metadata.log.layers import BaseLayer, Entry, GroupReader
from hudi_core.metadata.log.records import FileList, MetadataRecord, RecordType
from hudi_core.metadata.merging import present
from hudi_core.metadata.partition_types import (
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    expression_indexes,
    secondary_indexes,
)
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.statistics.column_ranges import file_ranges, partition_ranges, value_ranges
from hudi_core.metadata.statistics.expressions import Expression, expression_of
from hudi_core.metadata.statistics.range_cache import SHARED
from hudi_core.metadata.table import METADATA_FOLDER, StoredPartitions, is_readable
from hudi_core.model.client import MetaClientView
from hudi_core.model.difference import Difference
from hudi_core.model.file_columns import FileColumns, Ints
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import BaseFileName, FileGroupId, FileStatus, LogFileName, PartitionPath
from hudi_core.model.metering import Metric
from hudi_core.model.protocols import TimelineView
from hudi_core.model.ranges import ValueRanges
from hudi_core.schema.table_schema import COMMIT_TIME
from hudi_core.storage.safe_path import are_unsafe
from hudi_core.view.storage_lister import StorageLister

# --- the lists of files that the metadata table keeps, decoded into columns -----------------------


_LIST: Final = "filesystemMetadata"
_NO_NAME: Final = r"[/\x00]"
_SMALL_BYTES: Final = 50_000
"""Lists of fewer bytes are decoded one by one faster."""
_FEW: Final = 16
"""Of more partitions than so many all lists of a base file are decoded, and kept, where most of the
file is read anyway."""


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


def partition_names(group: GroupReader) -> pa.StringArray | None:
    """Return the names in the list of all partitions, if there.

    That of the base file is read by columns, as it may have very many, and those of the log, which
    have the changes, one by one.
    """
    changes = [record for layer in group.logs for _, record in layer.lookup([ALL_PARTITIONS])]
    base = None if None in changes else _names_of_base(group)
    if base is None:
        record = present(group.lookup([ALL_PARTITIONS]).get(ALL_PARTITIONS))
        if record is None:
            return None
        lists = _file_lists({ALL_PARTITIONS: record}, group.path, of_files=False)
        return pa.array(lists[ALL_PARTITIONS].files, pa.string())
    changed: dict[str, bool] = {}
    for record in changes:
        for found in _file_lists({ALL_PARTITIONS: record}, group.path, of_files=False).values():
            changed |= {name: one.is_deleted for name, one in found.files.items()}
    if not changed:
        return base
    rest = base.filter(pc.invert(pc.is_in(base, value_set=pa.array(changed, pa.string()))))
    added = pa.array([name for name, is_gone in changed.items() if not is_gone], pa.string())
    return pa.concat_arrays([rest, added])


def _names_of_base(group: GroupReader) -> pa.StringArray | None:
    """The list of a base file.

    ``None`` where it has none, or where it is to be read as a record.
    """
    if group.base is None:
        return None
    reader = group.base.reader
    values = [value for _, value in reader.get_many([ALL_PARTITIONS.encode()])]
    if sum(map(len, values)) <= _SMALL_BYTES:
        return None
    parsed = parse_writer_schema(reader.schema, group.base.path).parsed
    found = decode_map(values, parsed, _LIST)
    if found is None or not len(found.present):
        return None
    try:
        names = found.entries.texts(KEY, pa.string(), group.base.path)
    except CorruptMetadataError:
        return None
    return names.filter(pc.invert(found.entries.numbers("isDeleted", pa.bool_())))


def _of_base(layer: BaseLayer, keys: Sequence[str]) -> FileColumns:
    """Return a base file's lists, of some partitions or all."""
    entry = (layer.identity, FILES)
    names = [key.encode() for key in keys]
    if not SHARED.holds(entry) and (len(keys) <= _FEW or not layer.reader.is_most(names, b"")):
        return _decoded(layer, layer.reader.get_many(names))
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


def _file_lists(
    records: Mapping[str, MetadataRecord | None], path: str, *, of_files: bool = True
) -> Mapping[str, FileList]:
    lists: dict[str, FileList] = {}
    for key, record in records.items():
        if record is None:
            continue
        if not isinstance(record.payload, FileList):
            raise _damaged(path, f"the record of {key!r} is no list of files")
        for name in record.payload.files if of_files else ():
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


# --- listers --------------------------------------------------------------------------------------


_log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


def table_lister(client: MetaClientView) -> FileIndex:
    """Return a table's file lister: metadata table, or storage.

    ``hoodie.metadata.enable=false`` and ``hoodie.metadata.validate=true`` among the options of the
    session have the storage listed, the latter beside the metadata table.

    The files of a table below storage paths are known from the metadata table alone.
    Where storage is listed, the tasks of a loaded engine do it.

    Raises
    ------
    CorruptMetadataError
        Such a table has none, or it is being rebuilt.
    """
    run_map = client.map_requests if isinstance(client, TableMetaClient) else client.run_map
    storage = StorageLister(client.data, bool(client.config.partition_fields), run_map)
    if not isinstance(client, TableMetaClient) or not is_readable(client.config):
        return storage
    config = MetadataConfig.from_options(client.options)
    is_there, is_plain = StoredPartitions.of(client.config).is_there, client.files.is_plain
    if not is_plain and not is_there:
        raise CorruptMetadataError(
            f"{client.base_path}/{METADATA_FOLDER}",
            "it is missing or is being rebuilt, and nothing else lists the files of a table whose "
            "data lies below storage paths",
            f"Try again; where no writer is at work, `hudi table repair --metadata "
            f"{client.base_path}` rebuilds it.",
        )
    if not is_there or config.is_refused:
        return storage
    metadata = MetadataLister(client, storage if is_plain else None)
    return ValidatingLister(metadata, storage) if config.validate else metadata


class MetadataLister(FileIndex):
    """A table's files by its metadata table; the storage is not listed.

    Files of writes that are not complete, and files that such writes left behind, are not known to
    it: who looks for these has to list the storage.

    A table that was opened before its metadata table, or a partition of it, was dropped looks for
    what is not there. Only then its properties are read again, and what was dropped is done
    without, also where it was built again since. A metadata table that was loaded and has been
    rebuilt since is opened again.

    The timeline of ``client`` decides which records count. Without ``storage``, a dropped metadata
    table counts as damage.
    """

    def __init__(self, client: TableMetaClient, storage: FileIndex | None = None) -> None:
        self.client = client
        self._storage = storage
        self._dropped: set[str] = set()
        self._definitions: IndexDefinitions | None = None

    @cached_property
    def snapshot(self) -> MetadataSnapshot:
        """The metadata table, opened when the first question is asked."""
        return MetadataSnapshot.open(self.client)

    def list_partitions(self) -> Sequence[PartitionPath]:
        """Every partition path, sorted; ``[""]`` for a table without partitions."""
        if not self.client.config.is_partitioned:
            return [PartitionPath("")]
        return self._with_fallback(FILES, self._partitions, lambda one: one.list_partitions())

    def partition_paths(self) -> pa.StringArray:
        """The partitions of :meth:`list_partitions`, which are not made one by one."""
        if not self.client.config.is_partitioned:
            return super().partition_paths()
        return self._with_fallback(FILES, self._paths, lambda one: one.partition_paths())

    def partitions_among(self, partitions: Sequence[PartitionPath]) -> Sequence[PartitionPath]:
        """Those of some partitions that there are, looked up."""
        if not self.client.config.is_partitioned:
            return super().partitions_among(partitions)
        return self._with_fallback(
            FILES, lambda: self._among(partitions), lambda one: one.partitions_among(partitions)
        )

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        """The files of each partition, old ones included."""
        return self.list_columns(partitions).by_partition()

    def list_columns(self, partitions: Sequence[PartitionPath]) -> FileColumns:
        """The files of :meth:`list_files` as columns."""
        each_once = list(dict.fromkeys(partitions))
        return self._with_fallback(
            FILES, lambda: self._files(each_once), lambda one: one.list_columns(each_once)
        )

    def partition_ranges(
        self, partitions: Sequence[PartitionPath], column: str, kind: pa.DataType
    ) -> ValueRanges | None:
        """Ranges of a column in partitions, where there are any."""
        config = self.client.config
        keys = (COMMIT_TIME,) if config.indexes_meta_columns else config.record_key_fields
        counting = next(iter(keys), None)
        return self._with_fallback(
            PARTITION_STATS,
            lambda: partition_ranges(self.snapshot, partitions, column, kind, counting),
            lambda one: one.partition_ranges(partitions, column, kind),
        )

    def file_ranges(self, files: FileColumns, column: str, kind: pa.DataType) -> ValueRanges | None:
        """Ranges of a column in files, where there are any."""
        return self._with_fallback(
            COLUMN_STATS,
            lambda: file_ranges(self.snapshot, files, column, kind),
            lambda one: one.file_ranges(files, column, kind),
        )

    def expression_ranges(
        self, files: FileColumns, columns: Mapping[str, pa.DataType]
    ) -> Sequence[tuple[Expression, ValueRanges]]:
        """Ranges of functions of columns in files, from expression indexes."""
        stored = StoredPartitions.of(self.client.config).complete
        indexes = expression_indexes(stored)
        if not indexes:
            return ()
        definitions = self._seen_definitions()
        found: dict[str, tuple[Expression, ValueRanges]] = {}
        for index in indexes:
            one = expression_of(definitions, index, columns)
            if one is not None:
                ranges = self._with_fallback(
                    index, partial(self._value_ranges, index, files, one), lambda _: None
                )
                if ranges is not None:
                    found[index] = one, ranges
        unchanged = self._unchanged(definitions, self._stored_definitions())
        return [both for index, both in found.items() if index in unchanged.raw]

    def _seen_definitions(self) -> IndexDefinitions:
        """The definitions of indexes as they were first seen."""
        if self._definitions is None:
            self._definitions = self._stored_definitions()
        return self._definitions

    def _unchanged(self, seen: IndexDefinitions, now: IndexDefinitions) -> IndexDefinitions:
        """Those that are still the same, after the indexes were read.

        What was read, now or before, is of another column or function where an index was made again
        under its name in the meantime: nothing is concluded from that one any more.
        """
        self._definitions = seen.unchanged_in(now)
        return self._definitions

    def _stored_definitions(self) -> IndexDefinitions:
        return read_definitions(self.client.storage, self.client.config)

    def _value_ranges(
        self, index: str, files: FileColumns, expression: Expression
    ) -> ValueRanges | None:
        return value_ranges(self.snapshot, index, files, expression.column, expression.result)

    def groups_of_values(self, column: str, values: pa.Array) -> frozenset[FileGroupId] | None:
        """File groups that hold one of some values, where an index knows."""
        if not MetadataConfig.from_options(self.client.options).secondary_index:
            return None
        if not secondary_indexes(StoredPartitions.of(self.client.config).complete):
            return None
        seen = self._seen_definitions()
        found = self._with_fallback(
            None,
            lambda: groups_of_values(self.client, self.snapshot, seen, column, values),
            lambda one: one.groups_of_values(column, values),
        )
        if found is None:
            return None
        now = self._stored_definitions()
        # whether keys are known to be repeated is noted beside the record index
        is_same = seen.raw.get(RECORD_INDEX) == now.raw.get(RECORD_INDEX)
        return found if self._unchanged(seen, now) == seen and is_same else None

    def groups_of_keys(
        self, timeline: TimelineView, partitions: Sequence[PartitionPath], keys: Sequence[str]
    ) -> frozenset[FileGroupId] | None:
        """File groups that hold record keys at a state, if known."""
        return self._with_fallback(
            RECORD_INDEX,
            lambda: groups_of_keys(self.client, self.snapshot, timeline, partitions, keys),
            lambda _: None,
        )

    def _partitions(self) -> Sequence[PartitionPath]:
        return sorted(set(map(PartitionPath, self._paths().to_pylist())))

    def _among(self, partitions: Sequence[PartitionPath]) -> Sequence[PartitionPath]:
        names = [partition_name(path) for path in partitions]
        with self.client.meter.time(Metric.LOOKUP_PARTITIONS):
            found = read_lists(self.snapshot.groups(FILES), names)
        if not len(found.partitions):
            return super().partitions_among(partitions)
        return list(compress(partitions, found.known(names).to_pylist()))

    def _paths(self) -> pa.StringArray:
        with self.client.meter.time(Metric.LOOKUP_PARTITIONS):
            names = self._known
            is_root = pc.equal(names, NO_PARTITION)
            is_unsafe = pc.and_not(are_unsafe(names), is_root)
            for name in names.filter(is_unsafe).to_pylist():
                raise self._damaged(f"{name!r} is not a path of a partition")
            return pc.if_else(is_root, "", names)

    def _files(self, partitions: Sequence[PartitionPath]) -> FileColumns:
        names = [partition_name(path) for path in partitions]
        with self.client.meter.time(Metric.LOOKUP_FILES):
            found = read_lists(self.snapshot.groups(FILES), names)
            if len(found.partitions) < len(names):
                missing = pa.array(names, pa.string()).filter(pc.invert(found.known(names)))
                lost = missing.filter(pc.is_in(missing, value_set=self._known))
                for name in lost.to_pylist():
                    raise self._damaged(f"it lists the partition {name!r} and not its files")
            return replace(found.select(names), partitions=pa.array(partitions, pa.string()))

    @cached_property
    def _known(self) -> pa.StringArray:
        """Names of the partitions."""
        found = partition_names(self.snapshot.group_of(FILES, ALL_PARTITIONS))
        if found is None:
            raise self._damaged("it has no list of partitions")
        return found

    def _damaged(self, reason: str) -> CorruptMetadataError:
        return CorruptMetadataError(f"{self.snapshot.root}/{FILES}", reason, REBUILD)

    def _with_fallback(
        self,
        partition: str | None,
        ask: Callable[[], Answer],
        without: Callable[[FileIndex], Answer],
    ) -> Answer:
        """Ask the metadata table, or the storage where a partition was dropped.

        ``None`` means any partition.
        """
        if self._storage is None:
            return ask()
        if partition in self._dropped:
            return without(self._storage)
        try:
            return ask()
        except (CorruptMetadataError, InstantNotFoundError):
            now = self.client.as_stored()
            gone = {*StoredPartitions.of(self.client.config).complete}
            gone -= {*StoredPartitions.of(now.config).complete}
            if not (gone if partition is None else partition in gone):
                if self.client.metadata is not None:
                    # the loaded one was rebuilt since
                    self.client = replace(self.client, metadata=None)
                    self.__dict__.pop("snapshot", None)
                    self.__dict__.pop("_known", None)
                    return self._with_fallback(partition, ask, without)
                gone |= self._built_since()
                if not (gone if partition is None else partition in gone):
                    raise
            _log.info("%s were dropped from the metadata table", ", ".join(sorted(gone)))
            self._dropped = gone
            return without(self._storage)

    def _built_since(self) -> frozenset[str]:
        """Partitions that were dropped and built again after the snapshot's state."""
        return self.snapshot.built_since() if "snapshot" in self.__dict__ else frozenset()


class ValidatingLister(FileIndex):
    """Lists both, compares, and answers from the storage (RFC-15, `hoodie.metadata.validate`)."""

    def __init__(self, metadata: MetadataLister, storage: FileIndex) -> None:
        self._metadata, self._storage = metadata, storage
        self._differences: list[Difference] = []

    @property
    def differences(self) -> Sequence[Difference]:
        """What was found so far; each is logged as a warning, too."""
        return tuple(self._differences)

    def list_partitions(self) -> Sequence[PartitionPath]:
        """Return every partition path as the storage has it."""
        with self._metadata.client.meter.time(Metric.VALIDATE_PARTITIONS):
            stored = self._storage.list_partitions()
        listed = self._metadata.list_partitions()
        # the folder of a partition may outlive its files, and the other way round
        self._note(
            difference
            for path in sorted({*listed} - {*stored})
            for difference in compare_files(
                path,
                self._metadata.list_files([path])[path],
                (),
                self._metadata.client.timeline(),
            )
        )
        return stored

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        """Return the files of each partition as the storage has them."""
        with self._metadata.client.meter.time(Metric.VALIDATE_FILES):
            stored = self._storage.list_files(partitions)
        listed = self._metadata.list_files(partitions)
        timeline = self._metadata.client.timeline()
        for path in partitions:
            self._note(compare_files(path, listed[path], stored[path], timeline))
        return stored

    def _note(self, found: Iterable[Difference]) -> None:
        for difference in found:
            _log.warning("the metadata table of %s is wrong: %s", self._where, difference)
            self._differences.append(difference)
            self._metadata.client.meter.count(Metric.VALIDATE_ERRORS)

    @property
    def _where(self) -> str:
        return self._metadata.client.base_path
