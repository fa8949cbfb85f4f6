"""Plan of an adoption: the folder as a Hudi table.

A Hudi table without meta columns (virtual keys) reads its rows from any Parquet file, if the file
is in the folder of its partition under the name of a base file, holds all columns of keys and
partitions itself, in the table's types, and no row lacks a key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_core.config.kinds import TableType
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.placement import PlacementKeys
from hudi_core.config.schema import SchemaConfig
from hudi_core.config.storage import StoreKeys
from hudi_core.config.stored_table import properties_of
from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.table_parsers import NATIVE
from hudi_core.errors import DataFileError, HudiError, InvalidOptionError, NotATableError
from hudi_core.keygen import key_generator
from hudi_core.meta_client import TableMetaClient, run_in_threads, run_serially
from hudi_core.metadata.partitions.registry import enabled_partitions
from hudi_core.model.capability import Capability
from hudi_core.model.files import BasePath, PartitionPath
from hudi_core.model.found_table import FoundFile, FoundTable
from hudi_core.plugin.capability import table_needs
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.schema.arrow_types import children, field_id, plain_type
from hudi_core.schema.table_schema import META_COLUMNS, TableSchema
from hudi_core.services.adoption.source import (
    PLAIN,
    FoundSource,
    OpenFile,
    choose_source,
    plain_files,
    plain_table,
    read_schema,
    without_dead,
)
from hudi_core.services.create import design_table
from hudi_core.services.opening import opened_config
from hudi_core.services.progress import CountedMap, Progress
from hudi_core.storage.data_files import data_filesystem
from hudi_core.storage.location import parse_location
from hudi_core.storage.open import open_storage
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.properties_file import has_properties
from hudi_core.storage.safe_path import require_safe_path
from hudi_core.txn.ownership import require_folder_apart

_SHOWN: Final = 5
"""How many files with obstacles are named."""


@dataclass(frozen=True, slots=True)
class Adoption:
    """An adoption that is planned, or was made.

    ``source`` is the format adopted (or plain files), ``table_format`` the one the table has;
    ``size`` is in bytes. ``partitions`` is ``None`` where the number is not known before the rows
    are written. Where rows are rewritten (``is_rewritten``), it is into another folder and with
    meta columns; otherwise the table has virtual keys, which this release reads and does not write.

    ``obstacles`` is set in a plan only. ``keeps_history`` is true where the format's former states
    stay readable: files keep their names beside the new ones, or the whole folder stays as it is.
    """

    path: str
    source: str
    table_format: str
    files: int
    rows: int
    size: int
    partitions: int | None
    is_rewritten: bool
    obstacles: tuple[str, ...] = ()
    keeps_history: bool = True


@dataclass(frozen=True)
class Folder:
    """A folder that is to be adopted.

    ``source`` says which of several tables is meant: the name of a format, or ``parquet``.
    ``options`` also holds the credentials of the store.
    """

    path: str
    options: Mapping[str, str]
    source: str | None
    progress: Progress

    @cached_property
    def base_path(self) -> BasePath:
        """Its absolute path or URI."""
        return BasePath(parse_location(self.path).uri)

    @property
    def is_local(self) -> bool:
        """Whether its files can have second names."""
        return parse_location(self.base_path).is_local

    def client(self, config: TableConfig) -> TableMetaClient:
        """Return the client of the table that it is to be."""
        options = StorageOptions.from_options(self.options)
        storage = open_storage(self.base_path, options, fsync=StoreKeys.fsync.read(self.options))
        run_map = run_serially if self.is_local else run_in_threads
        counted = CountedMap(run_map, self.progress)
        return TableMetaClient(self.base_path, storage, config, options, counted, self.options)

    @cached_property
    def found(self) -> FoundSource:
        """What it holds."""
        client = self.client(TableConfig(name="unnamed", record_key_fields=()))
        if has_properties(client.storage):
            raise NotATableError(
                self.base_path,
                "is a Hudi table already",
                "To give it another format, use `hudi table convert`.",
            )
        found: dict[str, FoundTable] = {}
        for name in FormatRegistry().names():
            if self.source not in (None, name):
                continue
            host = FormatHost.load(FormatRegistry(), name)
            as_format = replace(client, config=replace(client.config, table_format=name))
            table = host.find_table(as_format)
            if table is not None:
                found[name] = table
        return choose_source(self.base_path, found, self.source, self._plain)

    def _plain(self) -> FoundTable:
        client = self.client(TableConfig(name="unnamed", record_key_fields=()))
        files = plain_files(client.storage)
        opened = self.opened

        def schema(path: str) -> pa.Schema:
            return read_schema(path, opened)

        schemas = list(client.run_map(schema, [one.path for one in files]))
        return plain_table(files, schemas)

    @property
    def opened(self) -> OpenFile:
        """Opener of the folder's files.

        Raises `UnsafePathError` where a path, or a link, leads out of it.
        """
        filesystem, root = data_filesystem(
            self.base_path, StorageOptions.from_options(self.options)
        )
        options = StorageOptions.from_options(self.options)
        storage = open_storage(self.base_path, options)

        def opened(path: str) -> pa.NativeFile:
            if self.is_local:
                storage.head(path)  # follows links
            return filesystem.open_input_file(f"{root}/{require_safe_path(path)}")

        return opened

    @cached_property
    def table_options(self) -> dict[str, str]:
        """The options, and what follows from what is there."""
        found, given = self.found, dict(self.options)
        if not TableKeys.table_format.is_given(given):
            given[TableKeys.table_format.key] = NATIVE if found.kind == PLAIN else found.kind
        if not TableKeys.partition_path.is_given(given) and found.table.partition_by:
            given[TableKeys.partition_path.key] = ",".join(found.table.partition_by)
        if not TableKeys.hive_style.is_given(given) and found.is_hive:
            given[TableKeys.hive_style.key] = "true"
        if found.table.deletes_by_position and not TableKeys.table_type.is_given(given):
            given[TableKeys.table_type.key] = TableType.MERGE_ON_READ.value
        return given


@dataclass(frozen=True, slots=True)
class InPlace:
    """How a folder becomes a table whose files stay.

    ``obstacles`` is empty where the files can stay. ``keeps_names`` means that they keep their
    former names, by which the format's former states are read.
    """

    config: TableConfig
    schema: TableSchema
    host: FormatHost
    files: tuple[Examined, ...]
    obstacles: tuple[str, ...]
    keeps_names: bool


def plan_in_place(folder: Folder) -> InPlace:
    """Return the plan of an adoption without rewriting rows."""
    source, options = folder.found, folder.table_options
    designed, _ = design_table(folder.base_path, source.table.schema, options)
    if not designed.placement.is_default:
        raise InvalidOptionError(
            PlacementKeys.path.key,
            ",".join(designed.placement.paths),
            "the files stay where they are when a folder is adopted in place",
            "Have the rows written again, or adopt the folder without a storage path.",
        )
    schema = TableSchema.adopt(source.table.schema)
    if SchemaConfig.local_timestamps.read(options):
        schema = schema.with_local_timestamps()
    config = replace(
        designed,
        populate_meta_fields=False,
        create_schema=schema.to_avro(designed.name),
        last_column_id=schema.last_column_id,
        field_ids=schema.field_ids(),
    )
    opened_config(folder.base_path, properties_of(config), folder.options)
    metadata = MetadataConfig.from_options(options)
    if metadata.enabled:
        enabled_partitions(metadata, config)
    host = FormatHost.load(FormatRegistry(), config.table_format)
    host.require(Capability.CONVERSION, *table_needs(config))
    host.check_schema(config, schema, None)
    client = folder.client(config)
    require_folder_apart(client)
    if folder.is_local:
        host.check_creation(client)  # elsewhere it cannot be anyway, and the obstacle is named
    examiner = Examiner(config, schema, folder.opened)
    files = tuple(client.run_map(examiner, list(source.table.files)))
    # some readers of Hudi tables fail on names that are not Hudi's, unless the metadata table says
    # what is there
    is_listed = metadata.enabled
    obstacles = tuple(_obstacles(folder, client, files, is_listed=is_listed))
    keeps_names = folder.found.kind != PLAIN and (is_listed or not _among_partitions(files))
    return InPlace(config, schema, host, files, obstacles, keeps_names)


def _among_partitions(files: tuple[Examined, ...]) -> bool:
    """Whether a file lies in the folder of a partition already."""
    folders = {one.partition_path for one in files}
    return any(one.file.path.rpartition("/")[0] in folders for one in files)


def _obstacles(
    folder: Folder, client: TableMetaClient, files: tuple[Examined, ...], *, is_listed: bool
) -> list[str]:
    found = []
    if not folder.is_local:
        found.append("it is in an object store, where a file has one name for ever")
    own, requested = folder.found.kind, client.config.table_format
    if own not in (PLAIN, requested):
        found.append(
            f"its {own} readers would look for its files under their former names; adopt it as "
            f"{own}, then `hudi table convert --to {requested}`"
        )
    if not client.config.record_key_fields:
        found.append(
            f"it has no record key ({TableKeys.record_key_fields.key}), which virtual keys are "
            "made of"
        )
    if any(one.file.dead is not None for one in files) and not client.config.is_split:
        found.append(
            "its format deletes rows by their positions, which only tables of the type "
            f"MERGE_ON_READ and the mode split do ({TableKeys.table_type.key})"
        )
    if folder.found.table.stored is not None:
        found.append("its files call columns otherwise than its format does")
    bad = [one for one in files if one.obstacle is not None]
    found += [f"{one.file.path}: {one.obstacle}" for one in bad[:_SHOWN]]
    if len(bad) > _SHOWN:
        found.append(f"and {len(bad) - _SHOWN} more files")
    unnamed = [] if is_listed else _unnamed(folder, client, files)
    if unnamed:
        found.append(
            f"{len(unnamed)} Parquet files there are none of the table's, such as {unnamed[0]}; "
            "have its engine delete (vacuum) them first, or let the table have a metadata table"
        )
    for partition, count in sorted(repeated_keys(files).items())[:_SHOWN]:
        found.append(f"partition {partition!r}: {count} rows have the key of another row")
    return found


def _unnamed(folder: Folder, client: TableMetaClient, files: tuple[Examined, ...]) -> list[str]:
    """Return files in partition folders that the table no longer names.

    Some readers of Hudi tables fail on a file whose name they do not know.
    """
    if folder.found.kind == PLAIN:
        return []
    named = {one.file.path for one in files}
    folders = {one.partition_path for one in files}
    return [
        one.path
        for one in plain_files(client.storage)
        if one.path not in named and one.path.rpartition("/")[0] in folders
    ]


def in_place_document(folder: Folder, plan: InPlace) -> Adoption:
    """Return a plan in the form that users get."""
    return Adoption(
        path=folder.base_path,
        source=folder.found.kind,
        table_format=plan.config.table_format,
        files=len(plan.files),
        rows=sum(one.live_rows for one in plan.files),
        size=sum(one.file.size for one in plan.files),
        partitions=len({one.partition_path for one in plan.files}),
        is_rewritten=False,
        obstacles=plan.obstacles,
        keeps_history=plan.keeps_names or folder.found.kind == PLAIN,
    )


# --- files looked at ------------------------------------------------------------------------------

_WHOLE_TABLE: Final = PartitionPath("")


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found out of one file.

    ``keys`` is empty where the table has no record key. ``obstacle`` is the reason why the file
    cannot be a base file as it is, worded to follow "because"; ``None`` where it can.
    """

    file: FoundFile
    rows: int
    partition_path: PartitionPath = _WHOLE_TABLE
    keys: pa.ChunkedArray | None = None
    obstacle: str | None = None

    @property
    def live_rows(self) -> int:
        """Its rows without those that the format has deleted."""
        return self.rows - (0 if self.file.dead is None else len(self.file.dead))


@dataclass(frozen=True, slots=True)
class Examiner:
    """Examines files; a value, which an engine can send away."""

    config: TableConfig
    schema: TableSchema
    opened: OpenFile

    def __call__(self, file: FoundFile) -> Examined:
        """Statistics and schema of a file."""
        try:
            with self.opened(file.path) as source:
                return self._examine(file, pq.ParquetFile(source))
        except (OSError, pa.ArrowInvalid) as error:
            raise DataFileError(file.path, str(error)) from error

    def _examine(self, file: FoundFile, parquet: pq.ParquetFile) -> Examined:
        rows = parquet.metadata.num_rows
        obstacle = self._of_columns(parquet.schema_arrow)
        if obstacle is not None:
            return Examined(file, rows, obstacle=obstacle)
        config = self.config
        names = dict.fromkeys((*config.record_key_fields, *config.partition_fields))
        tops = list(dict.fromkeys(name.partition(".")[0] for name in names))
        if not tops:
            return Examined(file, rows)
        wanted = pa.schema([self.schema.arrow.field(name) for name in tops])
        batches = [
            pa.RecordBatch.from_arrays(
                [batch.column(field.name).cast(field.type) for field in wanted],
                schema=wanted,
            )
            for batch in without_dead(parquet.iter_batches(columns=tops), file)
        ]
        generator = key_generator(config, self.schema)
        try:
            keys = [generator.record_keys(one) for one in batches]
            paths = [generator.partition_paths(one) for one in batches]
        except HudiError as error:
            return Examined(file, rows, obstacle=error.what)
        found = {path for one in paths for path in pc.unique(one.cast(pa.string())).to_pylist()}
        if len(found) > 1:
            some = ", ".join(sorted(map(repr, found))[:3])
            return Examined(file, rows, obstacle=f"its rows are of several partitions ({some})")
        partition = PartitionPath(next(iter(found), ""))
        has_keys = bool(config.record_key_fields)
        return Examined(
            file, rows, partition, pa.chunked_array(keys, pa.string()) if has_keys else None
        )

    def _of_columns(self, stored: pa.Schema) -> str | None:
        """Faults in the columns of a file."""
        meta = [name for name in META_COLUMNS if name in stored.names]
        if meta:
            return f"it has the column {meta[0]}, which is Hudi's"
        by_id = any(field_id(field) is not None for field in self.schema.arrow) and any(
            field_id(field) is not None for field in stored
        )
        numbers = {field_id(field): field.name for field in stored} if by_id else {}
        names = set(stored.names)
        for field in self.schema.arrow:
            stored_name = numbers.get(field_id(field), field.name) if by_id else field.name
            if stored_name != field.name:
                return f"its column {stored_name} is called {field.name} now"
            if field.name not in names:
                needed = (*self.config.record_key_fields, *self.config.partition_fields)
                if field.name in {name.partition(".")[0] for name in needed} or not field.nullable:
                    return f"it has no column {field.name}"
            elif not _reads_as(stored.field(field.name).type, field.type):
                kind = stored.field(field.name).type
                return f"its column {field.name} has the type {kind}, not {field.type}"
        return None


def repeated_keys(files: Sequence[Examined]) -> dict[PartitionPath, int]:
    """Return the number of rows with a repeated key per partition.

    Empty where no key is repeated.
    """
    by_partition: dict[PartitionPath, list[pa.ChunkedArray]] = {}
    for one in files:
        if one.keys is not None:
            by_partition.setdefault(one.partition_path, []).append(one.keys)
    found: Mapping[PartitionPath, int] = {
        partition: sum(len(one) for one in keys)
        - pc.count_distinct(
            pa.chunked_array([chunk for one in keys for chunk in one.chunks], pa.string())
        ).as_py()
        for partition, keys in by_partition.items()
    }
    return {partition: count for partition, count in found.items() if count}


def _reads_as(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether every reader takes a stored column for one of a type."""
    if pt.is_dictionary(stored):
        return _reads_as(stored.value_type, wanted)
    if pt.is_fixed_size_binary(stored):
        return bool(stored.equals(wanted))
    mine, theirs = children(plain_type(stored)), children(wanted)
    if mine or theirs:
        return (
            (pt.is_struct(stored), pt.is_map(stored)) == (pt.is_struct(wanted), pt.is_map(wanted))
            and [name for name, _ in mine] == [name for name, _ in theirs]
            and all(
                _reads_as(old.type, new.type)
                for (_, old), (_, new) in zip(mine, theirs, strict=True)
            )
        )
    return bool(plain_type(stored).equals(wanted))
