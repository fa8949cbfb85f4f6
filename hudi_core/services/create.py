"""Making a table, in one step for everybody who looks.

The metadata of the table's format and the metadata table are made first. ``hoodie.properties``,
which is what makes a folder a table, is put last and once. Until then a mark shows that the files
are those of a creation: who creates a table where a dead creator left one takes what else that left
away, and starts over. What is known to be in the way is refused before the first file.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Any, Final

import pyarrow as pa

from hudi_core.config.format_option import LOCATION, option_key
from hudi_core.config.kinds import MergeOnReadMode, TableType
from hudi_core.config.merge_rules import merge_rules
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.resolve import resolve_table_config
from hudi_core.config.schema import SchemaConfig
from hudi_core.config.storage import StoreKeys
from hudi_core.config.stored_table import properties_of, require_possible_mode, stored_config
from hudi_core.config.support import require_no_logged_changes, require_writable_table
from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine, TaskContext
from hudi_core.engine.choice import arrow_schema, engine_for, is_spark_schema
from hudi_core.errors import (
    AlreadyExistsError,
    CommitStateUnknownError,
    ConfigError,
    HudiError,
    InvalidOptionError,
    NotATableError,
    RecordKeyError,
    SchemaError,
    StorageError,
    UnsupportedCapabilityError,
)
from hudi_core.keygen import key_generator, require_key_columns
from hudi_core.keygen.foreign_keys import require_consent
from hudi_core.meta_client import TableMetaClient, run_in_threads, run_serially
from hudi_core.metadata.maintenance.lifecycle import new_metadata_table
from hudi_core.metadata.partitions.registry import enabled_partitions
from hudi_core.metrics import meter_of
from hudi_core.model.capability import Capability
from hudi_core.model.files import BasePath, PartitionPath
from hudi_core.model.format import FormatCommit
from hudi_core.model.operation import Operation
from hudi_core.model.protocols import Storage
from hudi_core.plugin.capability import table_needs
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.plugin.several import JointCommit
from hudi_core.rows.context import WriteContext
from hudi_core.rows.deciding import require_delete_markers, require_merge_columns
from hudi_core.rows.sorting import require_sortable_columns
from hudi_core.rows.staging import normalised
from hudi_core.schema.absence import absences
from hudi_core.schema.table_schema import META_COLUMNS, TableSchema, is_column
from hudi_core.services.drop import delete_contents, delete_files, empty_table
from hudi_core.services.opening import open_table, opened_config, takes_empty_partitions
from hudi_core.services.placement import (
    claim_storage,
    data_files_at,
    release_storage,
    require_free_storage,
    storages_of,
    with_placement,
)
from hudi_core.storage.location import Location, parse_location
from hudi_core.storage.open import open_storage
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.partition_path import require_not_nested
from hudi_core.storage.properties_file import (
    PROPERTIES_PATH,
    has_properties,
    read_properties,
    write_instead,
    write_new,
)
from hudi_core.storage.temp_folders import TEMP_FOLDER
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.creation import (
    CREATION_PATH,
    begin_creation,
    creation_folders,
    end_creation,
)
from hudi_core.txn.ownership import require_folder_apart
from hudi_core.txn.table_lock import LOCK_FILES, LOCK_FOLDER, TableLock, creation_lock
from hudi_core.write.input_schema import staged_schema
from hudi_core.write.key_proof import without_idle_forms
from hudi_core.write.nesting import can_nest
from hudi_core.write.partial_rows import AbsentValues
from hudi_core.write.preparing import write_config_for

# --- what a new table is, from its columns and a user's options -----------------------------------
# Nothing is read or written.


SchemaLike = Any
"""A schema of Arrow, Spark or polars, or a frame or table that has one."""

_SHOWN: Final = 80
"""Letters of a wrong argument in its error."""


def as_arrow_schema(schema: SchemaLike) -> pa.Schema:
    """Return the schema as Arrow's; of a frame, without reading its rows."""
    if isinstance(schema, pa.Schema):
        return schema
    if is_spark_schema(schema):
        return arrow_schema(schema)
    if hasattr(schema, "__arrow_c_schema__") and not hasattr(schema, "__arrow_c_stream__"):
        return pa.schema(schema)
    try:
        return engine_for(schema).schema_of(schema)
    except SchemaError as error:
        raise SchemaError(
            f"A schema of type {type(schema).__qualname__} cannot be used: {error.what}",
            "Give a pyarrow.Schema, a Spark StructType, or a frame that has the columns.",
        ) from error


def design_table(
    base_path: str, schema: pa.Schema, options: Mapping[str, str]
) -> tuple[TableConfig, TableSchema]:
    """Design of a new table, without reading or writing its path."""
    own = pa.schema([field for field in schema if field.name not in META_COLUMNS])
    given = dict(options)
    if not TableKeys.name.is_given(given):
        given[TableKeys.name.key] = base_path.rsplit("/", 1)[-1]
    table_schema = TableSchema.create(own)
    if SchemaConfig.local_timestamps.read(given):
        table_schema = table_schema.with_local_timestamps()
    config = resolve_table_config(given, None)
    _require_columns(config, table_schema)
    require_merge_columns(merge_rules(config), table_schema)
    require_delete_markers(merge_rules(config), table_schema)
    config = without_idle_forms(config, table_schema)
    require_key_columns(config, table_schema)
    require_consent(config, table_schema, given)
    config = replace(
        config,
        create_schema=table_schema.to_avro(config.name),
        last_column_id=table_schema.last_column_id,
        field_ids=table_schema.field_ids(),
    )
    require_writable_table(config, base_path)
    require_no_logged_changes(config, base_path)
    metadata = MetadataConfig.from_options(given)
    if metadata.enabled:
        enabled_partitions(metadata, config)
    # a missing plugin, or one that cannot hold such a table, is refused before anything is written
    host = FormatHost.load(FormatRegistry(), config.table_format)
    config = with_mode(config, host, given)
    host.require(*table_needs(config))
    host.check_options(given)
    host.check_schema(config, table_schema, None)
    config = with_placement(config, base_path, host)
    return replace(config, takes_empty_partitions=takes_empty_partitions(host)), table_schema


def with_mode(config: TableConfig, host: FormatHost, options: Mapping[str, str]) -> TableConfig:
    """A table in the mode of its format, if none is given."""
    row = TableKeys.merge_on_read_mode
    if config.table_type is not TableType.MERGE_ON_READ or row.is_given(options):
        return config
    has_logs = Capability.MERGE_ON_READ in host.capabilities
    if has_logs or Capability.DELETION_VECTORS not in host.capabilities:
        return config
    found = replace(config, merge_on_read_mode=MergeOnReadMode.SPLIT)
    require_possible_mode(found, options)
    return found


def _require_columns(config: TableConfig, schema: TableSchema) -> None:
    missing = [name for name in config.record_key_fields if not is_column(schema.arrow, name)]
    if missing:
        raise RecordKeyError(
            f"The record key {', '.join(map(repr, missing))} is no column",
            "Name columns of the schema in hoodie.datasource.write.recordkey.field, or fields of "
            f"its structs as in `struct.field`: {', '.join(schema.names)}.",
            columns=missing,
        )
    tops = [name.split(".")[0] for name in config.ordering_fields]
    for key, columns in (
        ("hoodie.datasource.write.partitionpath.field", config.partition_fields),
        ("hoodie.table.ordering.fields", tops),
    ):
        unknown = [name for name in columns if not is_column(schema.arrow, name)]
        if unknown:
            raise SchemaError(
                f"{key} names {', '.join(map(repr, unknown))}, which is no column",
                f"The columns are: {', '.join(schema.names)}.",
                columns=unknown,
            )


def named_options(
    name: str | None,
    record_key: str | Sequence[str] | None,
    partition_by: str | Sequence[str] | None,
    ordering_field: str | Sequence[str] | None,
    table_format: str | Sequence[str] | None,
    *,
    table_type: str | None = None,
) -> dict[str, str]:
    """The arguments of a new table as options."""
    named = {
        "hoodie.table.name": name,
        "hoodie.datasource.write.recordkey.field": _joined("record_key", record_key),
        "hoodie.datasource.write.partitionpath.field": _joined("partition_by", partition_by),
        "hoodie.table.ordering.fields": _joined("ordering_field", ordering_field),
        "hoodie.table.format": _joined("format", table_format),
        TableKeys.table_type.key: table_type,
    }
    return {key: value for key, value in named.items() if value is not None}


def _joined(argument: str, names: object) -> str | None:
    if names is None or isinstance(names, str):
        return names
    # a set has no order, in which a key would be made
    has_order = isinstance(names, Iterable) and not isinstance(names, Set | Mapping)
    given: list[Any] = list(names) if isinstance(names, Iterable) and has_order else []
    if not has_order or not all(isinstance(name, str) for name in given):
        raise InvalidOptionError(
            argument,
            repr(names)[:_SHOWN],
            "it is no name, nor a list of names",
            f'Pass names as strings: {argument}="id", or {argument}=["id", "day"].',
        )
    return ",".join(given)


# --- making it ------------------------------------------------------------------------------------


_log = logging.getLogger(__name__)
_META: Final = ".hoodie/"
_DATA: Final = (".parquet", ".orc", ".csv")
"""How files of rows end."""


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that can be created.

    Nothing of ``table`` is there yet.
    """

    table: OpenTable
    options: Mapping[str, str]

    @property
    def client(self) -> TableMetaClient:
        """Where it is to be, and what its properties will say."""
        return self.table.client

    @property
    def storage(self) -> Storage:
        """The store of its folder."""
        return self.table.client.storage

    @property
    def lock(self) -> TableLock:
        """A lock that keeps others from creating a table in the folder."""
        return creation_lock(self.table, WriteConfig.from_options(self.options))


def plan_table(path: str, schema: pa.Schema, options: Mapping[str, str]) -> NewTable:
    """A new table that place and format allow; nothing is written."""
    base_path = BasePath(parse_location(path).uri)
    design, _ = design_table(base_path, schema, options)
    host = FormatHost.load(FormatRegistry(), design.table_format)
    properties = {**properties_of(design), **host.stored_options(options)}
    opened_config(base_path, properties, options)
    storage_options = StorageOptions.from_options(options)
    client = TableMetaClient(
        base_path,
        open_storage(base_path, storage_options, fsync=StoreKeys.fsync.read(options)),
        stored_config(properties, f"{base_path}/{PROPERTIES_PATH}"),
        storage_options,
        run_serially if parse_location(base_path).is_local else run_in_threads,
        options,
        seen=Timeline.of(()),
        meter=meter_of(options, design.name, base_path),
    )
    host.check_creation(client)
    require_folder_apart(client)
    return NewTable(OpenTable(client, host), options)


def create_table(path: str, schema: pa.Schema, options: Mapping[str, str]) -> OpenTable:
    """Create an empty table and open it.

    Meta columns in ``schema`` are ignored. A request that cannot be fulfilled writes nothing; after
    ``CommitStateUnknownError`` the table may be there, empty.
    """
    new = plan_table(path, schema, options)
    # before the lock, whose file would be left among what is not ours
    _require_empty_folder(new.storage)
    lock = new.lock
    with lock.held():
        left = _require_empty_folder(new.storage)
        if left is not None:
            _take_away(new.storage, left)
        return _make(new, lock)


def replace_table(
    path: str, schema: pa.Schema, options: Mapping[str, str], keep: str | None = None
) -> OpenTable:
    """Drop a table and create an empty one, under one lock.

    No other process can make a table there in between.

    All errors but one come before anything is deleted; after ``CommitStateUnknownError`` the new
    table may be there, empty.
    """
    new = plan_table(path, schema, options)
    # there must be a table; what it is does not matter any more, but for where its files are
    read_properties(new.storage)
    client, lock = new.client, new.lock
    with lock.held():
        stored = read_properties(new.storage)
        replaced = storages_of(new.storage, client.base_path, stored, client.storage_options)
        config = WriteConfig.from_options(options)
        require_free_storage(client, new.table.host)
        empty_table(new.storage, replaced, new.client.base_path, config, keep)
        return _make(new, lock)


# --- the steps -----------------------------------------------------------------------------------


def _make(new: NewTable, lock: TableLock) -> OpenTable:
    """Make a table in an empty folder; runs under its lock."""
    storage = new.storage
    folders = new.table.host.get_metadata_folders(new.client)
    begin_creation(storage, folders)
    try:
        claim_storage(new.client, new.table.host)
        properties = _made_ready(new)
        lock.require_lease()
    except (ConfigError, SchemaError, UnsupportedCapabilityError) as refused:
        # what was made until then is known, and nothing of it is on its way any more
        _undo(new, lock, folders, refused)
        raise
    _put_properties(storage, properties, lock)
    try:
        end_creation(storage)
    except StorageError:
        # it means nothing beside the properties, and goes with the first write
        _log.warning("the mark of the creation of %s stays", storage.root, exc_info=True)
    return open_table(new.client.base_path, new.options)


def _made_ready(new: NewTable) -> dict[str, str]:
    """Make all that there is beside the properties; return these."""
    client, host = new.client, new.table.host
    receipt = host.create(client)
    properties = {**client.config.raw, **location_property(host, receipt, new.options)}
    config = MetadataConfig.from_options(new.options)
    if config.enabled:
        as_stored = replace(client, config=replace(client.config, raw=properties))
        properties |= new_metadata_table(as_stored, config)
    return properties


def location_property(
    host: FormatHost, receipt: FormatCommit, options: Mapping[str, str]
) -> dict[str, str]:
    """The property of a format's metadata location, if it has one."""
    each = receipt.each if isinstance(receipt, JointCommit) else {host.name: receipt}
    found = {}
    for name, one in each.items():
        if one.location is not None:
            key = option_key(name, LOCATION)
            # as the user wrote it, so that the same options open the table again
            found[key] = options.get(key, one.location)
    return found


def _put_properties(storage: Storage, properties: Mapping[str, str], lock: TableLock) -> None:
    try:
        write_new(storage, properties)
    except AlreadyExistsError as error:
        # there were none when the lock was taken: others were not kept out, or a creator that has
        # died since had sent its own, which came late; no caller was handed a table
        if not lock.is_exclusive:
            raise _occupied(storage.root) from error
        write_instead(storage, properties)
    except StorageError as error:
        raise CommitStateUnknownError(
            f"The store failed while the table at {storage.root} was created ({error.what})",
            "Open it: where there is no table, create it again.",
        ) from error


def _undo(new: NewTable, lock: TableLock, folders: Sequence[str], refused: HudiError) -> None:
    """Leave nothing of a table that was refused."""
    storage = new.storage
    try:
        lock.require_lease()
        release_storage(new.client.data)
        _take_away(storage, folders)
        end_creation(storage)
        delete_files(storage, LOCK_FOLDER)
    except HudiError as error:
        refused.add_note(f"What was made of the table stays until it is created again: {error}")


def _take_away(storage: Storage, folders: Sequence[str]) -> None:
    """Delete what a creator has left; its mark stays.

    ``folders`` are those beside ``.hoodie``.
    """
    delete_contents(storage, (TEMP_FOLDER, LOCK_FOLDER, *LOCK_FILES, CREATION_PATH), folders)


def _occupied(base_path: str) -> NotATableError:
    return NotATableError(
        base_path, "holds a table already", "Open it with Table.open, or use another path."
    )


def _require_empty_folder(storage: Storage) -> tuple[str, ...] | None:
    """Refuse a folder that holds something else.

    Rows that wait for their table, and the lock of a dropped one, are nothing that would; beside
    the mark of a creation nor is what is in the folders that it names, but for files of rows, of
    which a creation makes none.

    Returns the folders in which a dead creator may have left something; ``None`` where there was
    none.
    """
    if has_properties(storage):
        raise _occupied(storage.root)
    place = parse_location(storage.root)
    above = (place.key, *map(str, PurePath(place.key).parents)) if place.is_local else ()
    if (file := next(filter(os.path.isfile, above), None)) is not None:
        raise NotATableError(
            storage.root, f"cannot be a folder: {file} is a file", "Use an empty folder."
        )
    paths = [file.path for file in storage.list("", recursive=True)]
    harmless = (f"{TEMP_FOLDER}/", f"{LOCK_FOLDER}/")
    others = [path for path in paths if not path.startswith(harmless) and path not in LOCK_FILES]
    left = creation_folders(storage) if CREATION_PATH in others else None
    if left is not None:
        made = tuple(f"{folder}/" for folder in left)
        others = [
            path
            for path in others
            if not path.startswith(_META) and (not path.startswith(made) or path.endswith(_DATA))
        ]
    if others:
        # another creator may have been done between the first question and the listing
        if has_properties(storage):
            raise _occupied(storage.root)
        raise NotATableError(
            storage.root,
            f"is not a Hudi table and holds other files ({others[0]})",
            "Use an empty folder.",
        )
    return left


# --- rows looked at before the table they are to replace is dropped -------------------------------


def fitting_rows(data: Any, engine: Engine, context: WriteContext, operation: Operation) -> Any:
    """Return the rows after checking that all match a new table.

    Every row is read: its values are brought to the table's types, its key and its partition path
    are made. Nothing is kept, but for rows that come as a stream, which are held in memory. A
    DataFrame is evaluated here and once more by the write.

    Rows that are read from the very files about to be dropped are refused.
    """
    _require_foreign_files(engine.source_files(data), context)
    names = engine.schema_of(data).names
    config = write_config_for(context.table, context.write, operation, names)
    if operation.writes_straight:
        require_sortable_columns(context)
    schema = staged_schema(
        engine.schema_of(data),
        context.schema,
        context.table,
        operation,
        how=config.schema,
    )
    values = AbsentValues(
        context.schema, context.table, operation, False, config.schema.fill_missing, True
    )
    values.kept(absences(data), schema.names)
    held = data.read_all() if isinstance(data, pa.RecordBatchReader) else data
    check = partial(
        _partitions_of_fitting_rows,
        config=context.table,
        schema=schema,
        how=config.schema,
    )
    found = engine.map_input(held, check, 0)
    if can_nest(context.table):
        require_not_nested({path for paths in found for path in paths})
    return held


def _partitions_of_fitting_rows(
    _: TaskContext,
    batches: Iterator[pa.RecordBatch],
    config: TableConfig,
    schema: TableSchema,
    how: SchemaConfig,
) -> Iterator[frozenset[PartitionPath]]:
    keys = key_generator(config, schema)
    found: set[PartitionPath] = set()
    for batch in normalised(batches, schema, how):
        keys.record_keys(batch)
        found.update(map(PartitionPath, keys.partition_paths(batch).dictionary.to_pylist()))
    yield frozenset(found)


def _require_foreign_files(files: list[str], context: WriteContext) -> None:
    base = parse_location(context.base_path)
    stored = read_properties(open_storage(context.base_path, context.storage_options))
    places = data_files_at(context.base_path, stored, context.storage_options)
    own = next(
        (
            file
            for file in files
            if _below(file, base) is not None
            or any(
                below is not None and places.logical(below, root) is not None
                for root in places.roots
                for below in (_below(file, parse_location(root)),)
            )
        ),
        None,
    )
    if own is not None:
        raise InvalidOptionError(
            "mode",
            "overwrite",
            f"the rows are read from files of the table that would be dropped first ({own})",
            "Write with the operation insert_overwrite_table, which keeps them until it is "
            "complete, or to another path.",
        )


def _below(file: str, root: Location) -> str | None:
    """Where a file is below a folder; ``None`` where it is elsewhere."""
    try:
        place = parse_location(file)
    except HudiError:
        return None  # of a store that holds no tables
    own, above = place.key, root.key
    if place.is_local and root.is_local:
        own, above = os.path.realpath(own), os.path.realpath(above)
    elif (place.kind, place.bucket) != (root.kind, root.bucket):
        return None
    folder = f"{above}/" if above else ""
    return own[len(folder) :] if own.startswith(folder) and own != folder else None
