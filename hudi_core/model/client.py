"""Arguments of every hook, as protocols: an open table, its file slices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from hudi_core.model.commit import CommitMetadata
from hudi_core.model.files import BasePath, FileGroup, FileSlice, PartitionPath
from hudi_core.model.instant import Instant
from hudi_core.model.instant_time import InstantTime, TimelineZone
from hudi_core.model.partition_transform import PartitionTransform
from hudi_core.model.protocols import Storage, TimelineView
from hudi_core.schema.table_schema import TableSchema

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class RunMap(Protocol):
    """Maps a function over items, perhaps in parallel, and keeps the order."""

    def __call__(
        self, function: Callable[[Item], Answer], items: Sequence[Item], /
    ) -> Iterable[Answer]: ...


class FileBatch(tuple[str, ...]):
    """Files that are one item of a map; progress counts each."""


@runtime_checkable
class FileMap(RunMap, Protocol):
    """A map over files or folders, by an engine where useful."""

    @property
    def requests(self) -> RunMap:
        """The same for functions that only wait for a store or disk.

        They list, look at or delete files: a task on executors does many at a time.
        """
        ...

    @property
    def heavy(self) -> RunMap:
        """The map over items that are worth a job each."""
        ...


class TableSettings(Protocol):
    """What ``hoodie.properties`` fix; see :class:`hudi_core.config.table.TableConfig`."""

    @property
    def name(self) -> str: ...
    @property
    def table_type(self) -> str:
        """``COPY_ON_WRITE`` or ``MERGE_ON_READ``."""
        ...

    @property
    def merge_on_read_mode(self) -> str:
        """``logs`` or ``split``, where the type is ``MERGE_ON_READ``."""
        ...

    @property
    def version(self) -> int: ...
    @property
    def record_key_fields(self) -> Sequence[str]: ...
    @property
    def partition_fields(self) -> Sequence[str]: ...
    @property
    def partition_transforms(self) -> Sequence[PartitionTransform]:
        """How the value of each partition field comes from its column."""
        ...

    @property
    def keygen_type(self) -> str:
        """``SIMPLE``, ``COMPLEX``, ``NON_PARTITION``, ``TIMESTAMP`` or ``CUSTOM``."""
        ...

    @property
    def ordering_fields(self) -> Sequence[str]:
        """Columns that order versions of a row, the first one first."""
        ...

    @property
    def hive_style(self) -> bool: ...
    @property
    def url_encode(self) -> bool: ...
    @property
    def drop_partition_columns(self) -> bool: ...
    @property
    def populate_meta_fields(self) -> bool: ...
    @property
    def table_format(self) -> str:
        """Name of the table's format, in lower case."""
        ...

    @property
    def zone(self) -> TimelineZone:
        """Time zone of the table's instants; turns them into timestamps."""
        ...

    @property
    def raw(self) -> Mapping[str, str]:
        """Every property as read."""
        ...


@dataclass(slots=True)
class HeldMetadata:
    """What a format has read of its metadata under the lock.

    No other writer changes that metadata meanwhile. A format keeps here what it has read, and drops
    it before it changes anything; after any error the metadata is read again.

    Attributes
    ----------
    value
        Whatever the format likes; ``None`` where nothing was read.
    earlier
        What this process had read before, to go on from: when the write began, or when its table
        was last written. Others may have changed the metadata since.
    """

    value: object | None = None
    earlier: object | None = None

    def handed_on(self) -> HeldMetadata:
        """A new place that goes on from what is here."""
        earlier = self.earlier if self.value is None else self.value
        self.value = self.earlier = None
        return HeldMetadata(earlier=earlier)


class DataPlaces(Protocol):
    """Places of a table's data files, by logical paths."""

    @property
    def base_path(self) -> str: ...
    @property
    def is_plain(self) -> bool:
        """Whether data files lie in the table's folder, under their own paths."""
        ...

    @property
    def roots(self) -> tuple[str, ...]:
        """Roots of data files: the table's folder, or its storage paths."""
        ...

    @property
    def known_roots(self) -> tuple[str, ...]:
        """:attr:`roots`, and those that a move of the files goes to."""
        ...

    def uri(self, path: str, /) -> str:
        """Path or URI at which a file really is."""
        ...

    def below_root(self, path: str, /) -> str:
        """Where a file is, relative to its root."""
        ...

    def logical(self, below_root: str, root: str | None = None, /) -> str | None:
        """The path of a file, from where it is.

        Parameters
        ----------
        below_root
            Relative to its root.
        root
            One of :attr:`known_roots`; by default the first.

        Returns
        -------
        str or None
            ``None`` for a file that cannot be the table's.
        """
        ...


class StoreAccess(Protocol):
    """How to reach a store: credentials and addresses."""

    def at(self, bucket: str) -> StoreAccess:
        """The access to one bucket."""
        ...

    @property
    def for_readers(self) -> StoreAccess:
        """The same for who only reads what is in the bucket."""
        ...

    def for_object_store(self) -> dict[str, str]:
        """The same, as options of the object_store library."""
        ...


class MetaClientView(Protocol):
    """One Hudi table: its location, fixed properties and Hudi timeline."""

    @property
    def base_path(self) -> BasePath: ...
    @property
    def storage(self) -> Storage:
        """Metadata files below the base path."""
        ...

    @property
    def data(self) -> Storage:
        """Data files by their paths relative to the table, wherever they lie."""
        ...

    @property
    def files(self) -> DataPlaces:
        """Where data files lie."""
        ...

    @property
    def root(self) -> Storage:
        """Storage of the first root of data files.

        For formats whose metadata lies above the data files, and names them relative to that.
        """
        ...

    @property
    def config(self) -> TableSettings: ...
    @property
    def storage_options(self) -> StoreAccess:
        """How to reach the table's store, for clients of the format's own."""
        ...

    @property
    def schema(self) -> TableSchema:
        """Schema of the rows with field ids, without meta columns.

        Read again at every access.
        """
        ...

    @property
    def format_options(self) -> Mapping[str, str]:
        """Options of the format: those under ``hoodie.table.format.<name>.``, without that prefix.

        What the user gave for this session comes before what the table stores.
        """
        ...

    @property
    def run_map(self) -> RunMap:
        """The engine's map over small files; serial without an engine."""
        ...

    @property
    def held(self) -> HeldMetadata | None:
        """What the format has read already.

        ``None`` where everything is to be read again.
        """
        ...

    def timeline(self) -> TimelineView:
        """Return the Hudi timeline as it is now, without any fence.

        One listing; none while a write begins or commits, which has it read under its lock.
        """
        ...

    def read_instant(self, instant: Instant) -> bytes:
        """Return the bytes of the file of ``instant`` in its state.

        Raises
        ------
        InstantNotFoundError
            There is no such file.
        """
        ...

    def read_commit(self, instant: Instant) -> CommitMetadata:
        """Return the metadata of a write.

        Raises
        ------
        InstantNotFoundError
            There is no such file.
        CorruptMetadataError
            The file is damaged.
        """
        ...


class SliceView(Protocol):
    """The file groups of a table at one state of its timeline."""

    def partitions(self) -> Sequence[PartitionPath]:
        """Return every partition path, sorted."""
        ...

    def file_groups(self, partitions: Sequence[PartitionPath] | None = None) -> Sequence[FileGroup]:
        """Return the file groups with a committed file, replaced ones included."""
        ...

    def latest_slices(
        self,
        partitions: Sequence[PartitionPath] | None = None,
        as_of: InstantTime | None = None,
    ) -> Sequence[FileSlice]:
        """Return the slice of every file group that a reader sees."""
        ...


class FileSystemViewManager(Protocol):
    """Gives views of the table's files (Hudi's ``FileSystemViewManager``)."""

    def view(self, timeline: TimelineView | None = None) -> SliceView:
        """Return the view as of ``timeline``, by default the present fenced one.

        In a ``complete_*`` hook the default is therefore the state before the instant: the files
        that the format names now.
        """
        ...
