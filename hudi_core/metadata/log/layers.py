"""Layers of a metadata file group: base file and log blocks.

A lookup goes through all layers, the oldest first, and reads of each the blocks that may hold the
keys. A small file is read whole, of a large one only what is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from hudi_core.errors import CorruptMetadataError, PathNotFoundError
from hudi_core.log_format.block import BlockType, decode_delete_content, find_log_blocks
from hudi_core.log_format.counted import FoundBlock, counted_blocks
from hudi_core.metadata.damage import REBUILD, with_rebuild_hint
from hudi_core.metadata.hfile.reader import HFileReader
from hudi_core.metadata.log.record_codec import RecordDecoder
from hudi_core.metadata.log.records import MetadataRecord
from hudi_core.metadata.log.visible_instants import VisibleInstants
from hudi_core.metadata.merging import merge
from hudi_core.model.files import FileSlice, FileStatus, LogFile
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import Storage
from hudi_core.storage.kept_files import KEPT, WHOLE_BYTES

Entry = tuple[bytes, bytes]
"""Key and value of an HFile."""
_ROLLBACK: Final = "0"


class RecordsFile:
    """Reads parts of one file of the metadata table.

    ``path`` is for errors, ``size`` in bytes.
    """

    def __init__(self, storage: Storage, status: FileStatus) -> None:
        self._storage, self._status = storage, status
        self._whole = KEPT.find(storage.root, status.path, status.size)
        self.path: Final = f"{storage.root}/{status.path}"
        self.size: Final = status.size
        self.modified_ms: Final = status.modified_ms

    def __call__(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset`` on; fewer only where the file ends."""
        try:
            if self.size > WHOLE_BYTES:
                return self._storage.read_range(self._status.path, offset, length)
            if self._whole is None:
                self._whole = self._storage.read_range(self._status.path, 0, self.size)
                KEPT.keep(self._storage.root, self._status.path, self._whole)
        except PathNotFoundError as error:
            raise CorruptMetadataError(self.path, "it is missing", REBUILD) from error
        return self._whole[offset : offset + length]


@dataclass(frozen=True)
class Layer:
    """What one base file or one log block says.

    ``reader`` is ``None`` for a delete block, whose keys are ``deleted``. ``identity`` is what no
    other file or block has, not even another one of its name.
    """

    path: str
    reader: HFileReader | None = None
    deleted: frozenset[str] = field(default=frozenset())
    identity: tuple[Hashable, ...] = ()

    def lookup(self, keys: Sequence[str]) -> Iterator[tuple[str, MetadataRecord | None]]:
        """Yield those of some keys about which it says something; ``None``: deleted."""
        if self.reader is not None:
            yield from self.decoded(self.reader.get_many(key.encode() for key in keys))
        if self.deleted:
            yield from ((key, None) for key in keys if key in self.deleted)

    def scan(self, prefixes: Sequence[str]) -> Iterator[tuple[str, MetadataRecord | None]]:
        """Yield the keys that begin with one of some prefixes; ``None``: deleted."""
        if self.reader is not None:
            yield from self.decoded(self.reader.scan_prefixes(one.encode() for one in prefixes))
        for key in self.deleted:
            if key.startswith(tuple(prefixes)):
                yield key, None

    def decoded(self, entries: Iterable[Entry]) -> Iterator[tuple[str, MetadataRecord | None]]:
        """Yield the records of some of its entries."""
        for key, value in entries:
            try:
                text = key.decode()
            except UnicodeDecodeError as error:
                raise CorruptMetadataError(
                    self.path, f"its key {key!r} is not UTF-8", REBUILD
                ) from error
            yield text, self._decoder.decode(key, value)

    @cached_property
    def _decoder(self) -> RecordDecoder:
        assert self.reader is not None  # noqa: S101 - only asked for where there are records
        return RecordDecoder(self.reader.schema, self.path)


@dataclass(frozen=True)
class BaseLayer(Layer):
    """What a base file says, which never changes."""

    reader: HFileReader


def base_layer(file: RecordsFile) -> BaseLayer:
    """Return the layer of a base file."""
    reader = HFileReader(file, file.size, file.path)
    return BaseLayer(file.path, reader, identity=_identity(file, reader))


def _identity(file: RecordsFile, reader: HFileReader, offset: int = 0) -> tuple[Hashable, ...]:
    # tables that are rebuilt have files of the same names
    stated = tuple(sorted(reader.info.items()))
    return file.path, file.size, file.modified_ms, offset, reader.trailer, stated


def _blocks_of(file: RecordsFile) -> Iterator[FoundBlock[RecordsFile]]:
    if not file.size:
        raise CorruptMetadataError(file.path, "it is empty", REBUILD)
    for place in find_log_blocks(file, file.size, file.path):
        yield FoundBlock(file, file.path, place)


def _log_layer(block: FoundBlock[RecordsFile]) -> Layer:
    file, place = block.file, block.place
    if place.type == BlockType.HFILE:
        reader = HFileReader(file, place.size, file.path, place.offset)
        return Layer(file.path, reader, identity=_identity(file, reader, place.offset))
    if place.type == BlockType.DELETE:
        deleted = decode_delete_content(file(place.offset, place.size), file.path)
        keys = (one.record_key for one in deleted)
        return Layer(file.path, deleted=frozenset(key for key in keys if key is not None))
    raise CorruptMetadataError(file.path, f"a block has the type {place.type}")


# --- one file group of a partition of the metadata table, merged ----------------------------------


@dataclass(frozen=True, slots=True)
class GroupFiles:
    """Facts for reading a file group; a value for executors."""

    slice: FileSlice
    counts: VisibleInstants
    completion: Mapping[InstantTime, str]

    def reader(self, storage: Storage) -> GroupReader:
        """Reader of the file in the metadata table's storage."""
        return GroupReader(storage, self.slice, self.counts, self._completed_at)

    def _completed_at(self, time: InstantTime) -> str:
        return self.completion.get(time, time)


class GroupReader:
    """Reads the latest slice of a file group."""

    def __init__(
        self,
        storage: Storage,
        found: FileSlice,
        counts: Callable[[InstantTime], bool],
        completion: Callable[[InstantTime], str],
    ) -> None:
        self.slice = found
        self._storage = storage
        self._counts = counts
        self._completion = completion

    @property
    def path(self) -> str:
        """Where its partition of the metadata table is, for errors."""
        return f"{self._storage.root}/{self.slice.partition_path}"

    @cached_property
    def layers(self) -> Sequence[Layer]:
        """The base file and the log blocks that count, the oldest first."""
        return [*self.logs] if self.base is None else [self.base, *self.logs]

    @cached_property
    def base(self) -> BaseLayer | None:
        """The base file; ``None`` where there is none yet."""
        found = self.slice.base_file
        return None if found is None else base_layer(RecordsFile(self._storage, found.status))

    @cached_property
    def logs(self) -> Sequence[Layer]:
        """The log blocks that count, the oldest first."""
        logs = sorted(self.slice.log_files, key=self._order)
        with with_rebuild_hint():
            # files of earlier releases are named after the base file, not after who wrote them
            blocks = (
                block
                for log in logs
                if self._counts(log.name.instant)
                for block in _blocks_of(RecordsFile(self._storage, log.status))
            )
            return [_log_layer(block) for block in counted_blocks(blocks, self._counts)]

    def lookup(self, keys: Sequence[str]) -> dict[str, MetadataRecord | None]:
        """Latest records of some keys; absent keys are left out.

        Removals are kept (``None``, and entries that say so); see
        :func:`~hudi_core.metadata.merging.present`.
        """
        return _merged(layer.lookup(keys) for layer in self.layers)

    def changed(self, keys: Sequence[str]) -> dict[str, MetadataRecord | None]:
        """Latest records of the given keys that occur in the log."""
        return self._changed([list(layer.lookup(keys)) for layer in self.logs])

    def changed_below(self, prefix: str) -> dict[str, MetadataRecord | None]:
        """Latest records of keys in the log with a prefix."""
        return self._changed([list(layer.scan([prefix])) for layer in self.logs])

    def _changed(
        self, reported: Sequence[Sequence[tuple[str, MetadataRecord | None]]]
    ) -> dict[str, MetadataRecord | None]:
        some = list(dict.fromkeys(key for layer in reported for key, _ in layer))
        base = self.base.lookup(some) if self.base is not None and some else ()
        return _merged([base, *reported])

    def scan(self, prefixes: Sequence[str] = ("",)) -> dict[str, MetadataRecord | None]:
        """Latest records of all keys with one of some prefixes."""
        return _merged(layer.scan(prefixes) for layer in self.layers)

    def _order(self, log: LogFile) -> tuple[str, str, int, str]:
        name = log.name
        return self._completion(name.instant), name.instant, name.version, name.write_token or ""


def _merged(
    layers: Iterable[Iterable[tuple[str, MetadataRecord | None]]],
) -> dict[str, MetadataRecord | None]:
    found: dict[str, MetadataRecord | None] = {}
    for layer in layers:
        for key, record in layer:
            found[key] = merge(found.get(key), record)
    return found
