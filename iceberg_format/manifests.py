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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeVar

from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.partitioning import PartitionSpec
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
from hudi_core.spi.files import Positions
from iceberg_format.deletes import (
    about,
    read_deletions,
    union,
    write_deletions,
)
from iceberg_format.files import TableFiles
from iceberg_format.manifest_files import (
    ManifestOutput,
    Metadata,
    read_entries,
    read_list,
    write_list,
)

CHUNK: Final = 100
"""Files in a manifest."""
SMALL: Final = CHUNK // 2
FOLD_FROM: Final = 20
"""So many manifests with fewer than SMALL files are put together."""
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
            lambda: tuple(readable(uri, lambda: read_list(files.new_input(uri)))),
        )

    def entries(self, files: TableFiles, manifest: ManifestFile) -> Entries:
        """Return the live entries of a manifest."""
        key = manifest.manifest_path
        return self._known(
            self._entries,
            key,
            lambda: tuple(readable(key, lambda: read_entries(files, manifest))),
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
    been taken out but have no live file. ``deletions`` are files of deleted rows that came, and
    ``former`` those that went.
    """

    manifests: tuple[ManifestFile, ...]
    removed: tuple[DataFile, ...]
    missing: frozenset[FileGroupId] = field(default_factory=frozenset)
    deletions: tuple[DataFile, ...] = ()
    former: tuple[DataFile, ...] = ()


@dataclass(frozen=True, slots=True)
class ManifestStore:
    """Reads and writes the manifests of one table."""

    files: TableFiles
    folder: str
    metadata: Metadata

    @property
    def version(self) -> int:
        """Version of the format."""
        return self.metadata.format_version

    def manifests(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        """Return the manifests of a snapshot."""
        # that of the current state is read again: damage shows only so
        is_past = snapshot.snapshot_id != self.metadata.current_snapshot_id
        return CACHE.manifests(self.files, snapshot.manifest_list, is_kept=is_past)

    def entries(self, snapshot: Snapshot, content: ManifestContent) -> Iterator[ManifestEntry]:
        """Yield live entries of a snapshot, of one content."""
        for manifest in self.manifests(snapshot):
            if manifest.content is content:
                yield from CACHE.entries(self.files, manifest)

    def live(self, snapshot: Snapshot) -> Iterator[DataFile]:
        """Yield the data files of a snapshot."""
        for entry in self.entries(snapshot, ManifestContent.DATA):
            yield entry.data_file

    def deletions(self, snapshot: Snapshot) -> Iterator[DataFile]:
        """Yield the files of deleted rows of a snapshot."""
        for entry in self.entries(snapshot, ManifestContent.DELETES):
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
        self, manifests: Sequence[ManifestFile], snapshot_id: int, parent: int | None
    ) -> dict[str, str | int]:
        """Write a snapshot's list of manifests; return its fields."""
        uri = self.files.uri(f"{self.folder}/snap-{snapshot_id}-{uuid.uuid4()}.avro")
        output = self.files.new_output(uri)
        numbers = write_list(self.metadata, output, manifests, snapshot_id, parent)
        return {"manifest-list": uri, **numbers}

    def rewrite(
        self,
        snapshot: Snapshot | None,
        snapshot_id: int,
        added: Sequence[DataFile],
        gone: frozenset[FileGroupId],
        *,
        taken: frozenset[str] = frozenset(),
        dead: Mapping[str, Positions] | None = None,
    ) -> Rewritten:
        """Return the manifests after a change of files.

        ``snapshot`` is the one that is built on, ``snapshot_id`` that of the next. A file of
        ``added`` may be the next of a group in ``gone``; ``taken`` are paths of files of other
        writers that are taken out. ``dead`` are positions of rows that are deleted of data files,
        by path, beside those that are already.
        """
        all_before = [
            one
            for one in (self.manifests(snapshot) if snapshot else ())
            if one.has_added_files() or one.has_existing_files()
        ]
        before = [one for one in all_before if one.content is ManifestContent.DATA]

        def is_out(entry: ManifestEntry) -> bool:
            file = entry.data_file
            is_taken = bool(taken) and self.files.data_path(file.file_path) in taken
            return is_taken or group_of(self.files, file) in gone

        likely = [one for one in before if self._may_hold(one, added)] if gone else []
        touched = self._holding(likely, is_out)
        if taken or self._missing(touched, gone):
            touched = self._holding(before, is_out)  # also in partitions without an added file
        missing = self._missing(touched, gone)
        manifests, out = self._replaced(before, touched, is_out, snapshot_id)
        removed = tuple(one.data_file for one in out)
        of_deletions = [one for one in all_before if one.content is ManifestContent.DELETES]
        if not dead and not of_deletions:
            return Rewritten((*self._written(added, snapshot_id), *manifests), removed, missing)
        ends = {one.file_path for one in removed}
        changed = {
            file.file_path: (file, positions)
            for file, positions in self._dying(before, added, dead or {})
            if file.file_path not in ends
        }
        ends |= changed.keys()

        def is_over(entry: ManifestEntry) -> bool:
            return about(entry.data_file) in ends

        holding = self._holding(of_deletions, is_over)
        others, over = self._replaced(of_deletions, holding, is_over, snapshot_id)
        former = tuple(one.data_file for one in over)
        known = {
            uri: positions
            for file in former
            if about(file) in changed
            for uri, positions in read_deletions(self.files, file)
        }
        new = [
            (file, union(known.get(uri), positions))
            for uri, (file, positions) in sorted(changed.items())
        ]
        deletions = write_deletions(self.files, self.folder, self.version, new)
        came = (*self._written(added, snapshot_id), *self._written(deletions, snapshot_id))
        return Rewritten((*came, *manifests, *others), removed, missing, tuple(deletions), former)

    def _dying(
        self,
        before: Sequence[ManifestFile],
        added: Sequence[DataFile],
        dead: Mapping[str, Positions],
    ) -> list[tuple[DataFile, Positions]]:
        """The data files of paths, with what is said of these."""
        by_uri = {self.files.data_uri(path): path for path in dead}
        every = [
            *added,
            *(one.data_file for each in before for one in CACHE.entries(self.files, each)),
        ]
        found = {by_uri[one.file_path]: one for one in every if one.file_path in by_uri}
        if len(found) < len(dead):
            # other writers may spell it otherwise
            for one in every:
                path = self.files.data_path(one.file_path)
                if path in dead:
                    found[path] = one
        lost = dead.keys() - found.keys()
        if lost:
            raise CorruptMetadataError(
                min(lost), "a commit deletes rows of it, and the Iceberg table does not name it"
            )
        return [(file, dead[path]) for path, file in found.items()]

    def _replaced(
        self,
        before: Sequence[ManifestFile],
        touched: Sequence[tuple[ManifestFile, Entries]],
        is_out: Callable[[ManifestEntry], bool],
        snapshot_id: int,
    ) -> tuple[list[ManifestFile], list[ManifestEntry]]:
        """Manifests without some entries, small ones put together, and these entries."""
        rewritten: list[ManifestFile] = []
        removed: list[ManifestEntry] = []
        for manifest, entries in touched:
            out = [one for one in entries if is_out(one)]
            kept = [one for one in entries if not is_out(one)]
            removed += out
            rewritten.append(
                self._write(manifest.content, manifest.partition_spec_id, snapshot_id, kept, out)
            )
        paths = {manifest.manifest_path for manifest, _ in touched}
        untouched = [one for one in before if one.manifest_path not in paths]
        return [*rewritten, *self._folded(untouched, snapshot_id)], removed

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
                content = (
                    ManifestContent.DATA
                    if chunk[0].data_file.content is DataFileContent.DATA
                    else ManifestContent.DELETES
                )
                made.append(self._write(content, spec_id, snapshot_id, chunk, []))
        return made

    def _folded(self, manifests: list[ManifestFile], snapshot_id: int) -> list[ManifestFile]:
        """Manifests of one content; small ones are put together."""
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
                made.append(self._write(small[0].content, spec_id, snapshot_id, chunk, []))
        return made

    def _write(
        self,
        content: ManifestContent,
        spec_id: int,
        snapshot_id: int,
        live: Sequence[ManifestEntry],
        out: Sequence[ManifestEntry],
    ) -> ManifestFile:
        """Write a manifest: entries that are new, stay, or go."""
        uri = self.files.uri(f"{self.folder}/{uuid.uuid4()}-m0.avro")
        spec = self._spec(spec_id)
        output = self.files.new_output(uri)
        with ManifestOutput(self.metadata, content, spec, output, snapshot_id) as writer:
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
