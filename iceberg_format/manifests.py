"""Manifests: which files a snapshot has, and those of the next one.

A manifest never changes, so its entries are kept in memory once read. A commit rewrites only the
manifests that name a file it takes out; added files go to manifests of at most :data:`CHUNK` files,
sorted by partition, so that a later commit to few partitions touches few of them. Small manifests
are put together once there are many. The cost of a commit follows the manifests it touches.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeVar

from pyiceberg.avro.codecs import AvroCompressionCodec
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import (
    DataFile,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Record
from pyiceberg.types import NestedField

from hudi_core.spi import (
    BaseFileName,
    CorruptMetadataError,
    FileGroupId,
    FileId,
    HudiError,
    PartitionPath,
    Raised,
    attempt,
)
from iceberg_format.files import TableFiles

CHUNK: Final = 100
"""Files in a manifest."""
SMALL: Final = CHUNK // 2
FOLD_FROM: Final = 20
"""So many manifests with fewer than SMALL files are put together."""
_CODEC: Final[AvroCompressionCodec] = "deflate"
_REMEMBERED: Final = 512
"""Manifests whose entries are kept in memory."""

Entries = tuple[ManifestEntry, ...]
T = TypeVar("T")


class EntryCache:
    """Live entries of manifests read last, and lists of manifests, by URI.

    A write lists the files of all snapshots that are kept: of 100, in 6 ms instead of 51, as their
    lists need not be read again.
    """

    def __init__(self, size: int = _REMEMBERED) -> None:
        self._size = size
        self._entries: OrderedDict[str, Entries] = OrderedDict()
        self._lists: OrderedDict[str, tuple[ManifestFile, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def manifests(self, files: TableFiles, uri: str, *, is_kept: bool) -> tuple[ManifestFile, ...]:
        """Return the manifests that a list names.

        ``is_kept``: what was read of the list before may be used.
        """
        if not is_kept:
            with self._lock:
                self._lists.pop(uri, None)
        return self._known(
            self._lists,
            uri,
            lambda: tuple(readable(uri, lambda: read_manifest_list(files.new_input(uri)))),
        )

    def entries(self, files: TableFiles, manifest: ManifestFile) -> Entries:
        """Return the live entries of a manifest."""
        key = manifest.manifest_path
        return self._known(
            self._entries,
            key,
            lambda: tuple(readable(key, lambda: manifest.fetch_manifest_entry(files))),
        )

    def _known(self, kept: OrderedDict[str, T], key: str, read: Callable[[], T]) -> T:
        with self._lock:
            found = kept.get(key)
            if found is not None:
                kept.move_to_end(key)
                return found
        found = read()
        with self._lock:
            kept[key] = found
            while len(kept) > self._size:
                kept.popitem(last=False)
        return found


CACHE: Final = EntryCache()


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The manifests of the next snapshot.

    ``removed`` are files that are not live any more; ``missing`` are file groups that should have
    been taken out but have no live file.
    """

    manifests: tuple[ManifestFile, ...]
    removed: tuple[DataFile, ...]
    missing: frozenset[FileGroupId] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class ManifestStore:
    """Reads and writes the manifests of one table."""

    files: TableFiles
    folder: str
    metadata: TableMetadataV2

    def manifests(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        """Return the manifests of a snapshot."""
        # that of the current state is read again: damage shows only so
        is_past = snapshot.snapshot_id != self.metadata.current_snapshot_id
        return CACHE.manifests(self.files, snapshot.manifest_list, is_kept=is_past)

    def live(self, snapshot: Snapshot) -> Iterable[DataFile]:
        """Yield the files of a snapshot."""
        for manifest in self.manifests(snapshot):
            for entry in CACHE.entries(self.files, manifest):
                yield entry.data_file

    def missing(
        self, snapshot: Snapshot | None, groups: frozenset[FileGroupId]
    ) -> frozenset[FileGroupId]:
        """Return those file groups without a live file.

        Looks until all are found.
        """
        left = set(groups)
        for file in self.live(snapshot) if snapshot else ():
            left -= {group_of(self.files, file)}
            if not left:
                break
        return frozenset(left)

    def write_list(
        self, manifests: Sequence[ManifestFile], snapshot_id: int, parent: int | None, number: int
    ) -> str:
        """Write the list of a snapshot's manifests; return its URI."""
        uri = self.files.uri(f"{self.folder}/snap-{snapshot_id}-{uuid.uuid4()}.avro")
        output = self.files.new_output(uri)
        with write_manifest_list(2, output, snapshot_id, parent, number, _CODEC) as writer:
            writer.add_manifests(list(manifests))
        return uri

    def rewrite(
        self,
        snapshot: Snapshot | None,
        snapshot_id: int,
        added: Sequence[DataFile],
        gone: frozenset[FileGroupId],
        taken: frozenset[str] = frozenset(),
    ) -> Rewritten:
        """Return the manifests after a change of files.

        ``snapshot`` is the one that is built on, ``snapshot_id`` that of the next. A file of
        ``added`` may be the next of a group in ``gone``; ``taken`` are paths of files of other
        writers that are taken out.
        """
        before = [
            one
            for one in (self.manifests(snapshot) if snapshot else ())
            if one.has_added_files() or one.has_existing_files()
        ]

        def is_out(entry: ManifestEntry) -> bool:
            file = entry.data_file
            is_taken = bool(taken) and self.files.data_path(file.file_path) in taken
            return is_taken or group_of(self.files, file) in gone

        likely = [one for one in before if self._may_hold(one, added)] if gone else []
        touched = self._holding(likely, is_out)
        if taken or self._missing(touched, gone):
            touched = self._holding(before, is_out)  # also in partitions without an added file
        missing = self._missing(touched, gone)
        rewritten: list[ManifestFile] = []
        removed: list[DataFile] = []
        for manifest, entries in touched:
            out = [one for one in entries if is_out(one)]
            kept = [one for one in entries if not is_out(one)]
            removed += [one.data_file for one in out]
            rewritten.append(self._write(manifest.partition_spec_id, snapshot_id, kept, out))
        paths = {manifest.manifest_path for manifest, _ in touched}
        untouched = [one for one in before if one.manifest_path not in paths]
        new = self._written(added, snapshot_id)
        kept_manifests = self._folded(untouched, snapshot_id)
        return Rewritten((*new, *rewritten, *kept_manifests), tuple(removed), missing)

    def _holding(
        self, manifests: Sequence[ManifestFile], is_out: Callable[[ManifestEntry], bool]
    ) -> list[tuple[ManifestFile, Entries]]:
        found = []
        for manifest in manifests:
            entries = CACHE.entries(self.files, manifest)
            if any(map(is_out, entries)):
                found.append((manifest, entries))
        return found

    def _missing(
        self, touched: Iterable[tuple[ManifestFile, Entries]], gone: frozenset[FileGroupId]
    ) -> frozenset[FileGroupId]:
        return gone - {
            group_of(self.files, one.data_file) for _, entries in touched for one in entries
        }

    def _may_hold(self, manifest: ManifestFile, added: Sequence[DataFile]) -> bool:
        """Whether a manifest may overlap the added files' partitions."""
        spec_id = manifest.partition_spec_id
        fields = self._partition_fields(spec_id)
        if not fields:
            return True
        summaries = manifest.partitions or []
        if len(summaries) != len(fields):
            return True
        wanted = {
            tuple(one.partition[at] for at in range(len(fields)))
            for one in added
            if one.spec_id == spec_id
        }
        ranges = []
        for summary, each in zip(summaries, fields, strict=True):
            kind: Any = each.field_type
            low, high = summary.lower_bound, summary.upper_bound
            bounds = (
                (from_bytes(kind, low), from_bytes(kind, high))
                if low is not None and high is not None
                else None
            )
            ranges.append((summary.contains_null, bounds))
        return any(
            all(
                nullable if value is None else bounds is not None and within(value, bounds)
                for value, (nullable, bounds) in zip(values, ranges, strict=True)
            )
            for values in wanted
        )

    def _partition_fields(self, spec_id: int) -> tuple[NestedField, ...]:
        return self._spec(spec_id).partition_type(self.metadata.schema()).fields

    def _spec(self, spec_id: int) -> PartitionSpec:
        return self.metadata.specs()[spec_id]

    def _written(self, added: Sequence[DataFile], snapshot_id: int) -> list[ManifestFile]:
        entries = [
            ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=snapshot_id, data_file=one
            )
            for one in sorted(added, key=_partition_key)
        ]
        made: list[ManifestFile] = []
        for spec_id in sorted({one.spec_id for one in added}):
            rest = iter([one for one in entries if one.data_file.spec_id == spec_id])
            while chunk := list(islice(rest, CHUNK)):
                made.append(self._write(spec_id, snapshot_id, chunk, []))
        return made

    def _folded(self, manifests: list[ManifestFile], snapshot_id: int) -> list[ManifestFile]:
        small = [one for one in manifests if _live_count(one) < SMALL]
        if len(small) < FOLD_FROM:
            return manifests
        chosen = {one.manifest_path for one in small}
        made = [one for one in manifests if one.manifest_path not in chosen]
        for spec_id in sorted({one.partition_spec_id for one in small}):
            entries = [
                entry
                for one in small
                if one.partition_spec_id == spec_id
                for entry in CACHE.entries(self.files, one)
            ]
            rest = iter(sorted(entries, key=lambda entry: _partition_key(entry.data_file)))
            while chunk := list(islice(rest, CHUNK)):
                made.append(self._write(spec_id, snapshot_id, chunk, []))
        return made

    def _write(
        self,
        spec_id: int,
        snapshot_id: int,
        live: Sequence[ManifestEntry],
        out: Sequence[ManifestEntry],
    ) -> ManifestFile:
        """Write a manifest: entries that are new, stay, or go."""
        uri = self.files.uri(f"{self.folder}/{uuid.uuid4()}-m0.avro")
        spec, schema = self._spec(spec_id), self.metadata.schema()
        output = self.files.new_output(uri)
        with write_manifest(2, spec, schema, output, snapshot_id, _CODEC) as writer:
            for entry in live:
                if entry.snapshot_id == snapshot_id and entry.sequence_number is None:
                    writer.add(entry)
                else:
                    writer.existing(entry)
            for entry in out:
                writer.delete(entry)
        return writer.to_manifest_file()


def readable(uri: str, read: Callable[[], Iterable[T]]) -> list[T]:
    """Contents of a metadata file."""
    outcome = attempt(lambda: list(read()))
    if not isinstance(outcome, Raised):
        return outcome.value
    if isinstance(outcome.error, HudiError):
        raise outcome.error
    # the reader of Avro takes bytes as they are, and may fail in any way
    raise CorruptMetadataError(uri, f"it is no Avro file of Iceberg ({outcome.reason})") from (
        outcome.error
    )


def within(value: Any, bounds: tuple[Any, Any]) -> bool:
    """Whether a value lies within bounds of its type."""
    low, high = bounds
    return bool(low <= value <= high)


def _live_count(manifest: ManifestFile) -> int:
    return (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)


def _partition_key(file: DataFile) -> tuple[int, str, str]:
    return file.spec_id, _text(file.partition), file.file_path


def _text(partition: Record) -> str:
    return repr(partition)


# --- file groups ----------------------------------------------------------------------------------


def group_of(files: TableFiles, file: DataFile) -> FileGroupId | None:
    """Return a file's group; ``None`` without a name of Hudi's."""
    partition_path, _, name = files.data_path(file.file_path).rpartition("/")
    parsed = BaseFileName.parse(name)
    return (
        None
        if parsed is None
        else FileGroupId(PartitionPath(partition_path), FileId(parsed.file_id))
    )
