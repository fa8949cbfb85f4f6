"""What a table is: the typed view of ``hoodie.properties`` (``hudi-format`` section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from hudi_core.config.index_keys import stored_buckets
from hudi_core.config.key import ConfigKey
from hudi_core.config.key_forms import key_form
from hudi_core.config.kinds import (
    SIMPLE_FIELD,
    TIMESTAMP_FIELD,
    KeyGeneratorType,
    MergeMode,
    PartialUpdateMode,
    Payload,
    TableType,
)
from hudi_core.config.merge_rules import DeleteMarker, MergeRules, merge_rules
from hudi_core.config.merging import stored_merging
from hudi_core.config.properties import CHECKSUM_KEY, FILE_NAME, table_checksum
from hudi_core.config.stored_form import own_properties
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.support import refuse_read, refuse_write
from hudi_core.config.table_keys import NATIVE, TableKeys
from hudi_core.config.timebased import TimeBased, time_based
from hudi_core.errors import CorruptMetadataError, InvalidOptionError, UnsupportedTableError
from hudi_core.model.buckets import Buckets
from hudi_core.model.key_form import KeyForm
from hudi_core.model.partition_transform import PartitionTransform
from hudi_core.model.timeline_zone import UTC_TIMELINE, TimelineZone
from hudi_core.schema.avro_types import has_ids

__all__ = ["KeyGeneratorType", "MergeMode", "TableConfig", "TableType", "infer_key_generator"]

T = TypeVar("T")

READABLE_VERSIONS: Final = (6, 8, 9)
WRITABLE_VERSIONS: Final = (8, 9)
_META_PATH: Final = f"/.hoodie/{FILE_NAME}"


@dataclass(frozen=True, slots=True)
class TableConfig:
    """The properties of one table.

    Attributes
    ----------
    name, database
        Names of the table and of its database.
    table_type
        How updates are stored.
    version, initial_version
        Table version now (6, 8 or 9) and at creation.
    layout_version
        Layout of the timeline: 1 for version 6, else 2.
    record_key_fields, partition_fields
        Column names; the latter without the types a CUSTOM key generator adds to them.
    partition_types
        The types of the partition fields of a CUSTOM key generator, else empty.
    keygen_type
        How keys and partition paths are made.
    time_based
        How TIMESTAMP partition fields are made; ``None`` where there are none, or the table does
        not tell in a way that is understood.
    ordering_fields
        Columns that order versions of a row, the first one first; empty when there are none. A
        field of a struct has dots in its name.
    merge_mode
        Which version of a row wins.
    payload
        Payload class that the table was created for, where it is built in.
    merger
        Class or strategy that rows are merged by, where it is not built in.
    delete_marker
        Value of a column that makes a row a delete.
    partial_update, unavailable_value
        Which values are taken from the other version of a row, a text where that is not built in;
        the text that stands for a value that a source did not send.
    hive_style, url_encode, drop_partition_columns
        How partition values appear in paths and files.
    populate_meta_fields
        Whether data files hold the meta columns.
    base_file_format
        Upper case, ``PARQUET`` for every table that is written here.
    table_format
        Name of the table format, in lower case.
    timeline_path, history_path
        Folders below ``.hoodie`` and below the timeline's folder.
    archive_folder
        Folder of the archived timeline of layout 1, below ``.hoodie``.
    timezone
        ``UTC`` or ``LOCAL``: that of the writers' processes.
    local_zone
        The zone of the other writers, as an option or the table says, else that of this process if
        the table is LOCAL; ``None`` where it has no name, or is not needed.
    create_schema
        Avro schema at creation, as JSON.
    last_column_id, field_ids
        Greatest field id ever given out; id of every field by dotted path. ``None`` and empty for
        tables created by other writers.
    metadata_partitions
        Partitions of the metadata table, the ones being built included.
    bootstrap_base_path
        Data the table was bootstrapped from.
    complex_keygen_new_encoding
        COMPLEX with one key field: the record key is the bare value, not ``field:value``.
    consistent_timestamps
        Whether keys and paths spell timestamps as texts; ``None`` where nobody says it.
    old_floats
        Whether floating-point numbers have the digits of Java before 19 there; ``None`` likewise.
    takes_empty_partitions
        Whether rows with an empty text as partition value share the partition of those without
        one; not where readers of the table's format know values by their partition alone.
    buckets
        The layout of a table with the bucket index; ``None`` for every other table.
    raw
        Every property as read; empty for a table that has not been stored yet.
    """

    name: str
    record_key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...] = ()
    database: str | None = None
    table_type: TableType = TableType.COPY_ON_WRITE
    version: int = TableKeys.version.default
    initial_version: int = TableKeys.version.default
    layout_version: int = 2
    partition_types: tuple[str, ...] = ()
    keygen_type: KeyGeneratorType = KeyGeneratorType.SIMPLE
    time_based: TimeBased | None = None
    ordering_fields: tuple[str, ...] = ()
    merge_mode: MergeMode = MergeMode.COMMIT_TIME_ORDERING
    payload: Payload | None = None
    merger: str | None = None
    delete_marker: DeleteMarker | None = None
    partial_update: PartialUpdateMode | str = PartialUpdateMode.NONE
    unavailable_value: str | None = None
    hive_style: bool = False
    url_encode: bool = False
    drop_partition_columns: bool = False
    populate_meta_fields: bool = True
    base_file_format: str = TableKeys.base_file_format.default
    table_format: str = NATIVE
    timeline_path: str = ManagedKeys.timeline_path.default
    history_path: str = ManagedKeys.history_path.default
    archive_folder: str = ManagedKeys.archive_folder.default
    timezone: str = TableKeys.timezone.default
    local_zone: str | None = None
    create_schema: str | None = field(default=None, repr=False)
    last_column_id: int | None = None
    field_ids: Mapping[str, int] = field(default_factory=dict, repr=False, hash=False)
    metadata_partitions: tuple[str, ...] = ()
    bootstrap_base_path: str | None = None
    complex_keygen_new_encoding: bool = False
    consistent_timestamps: bool | None = None
    old_floats: bool | None = None
    takes_empty_partitions: bool = True
    buckets: Buckets | None = None
    # other writers may have stored anything there: never shown
    raw: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_partitioned(self) -> bool:
        return bool(self.partition_fields)

    @property
    def zone(self) -> TimelineZone:
        """Time zone of the table's instants."""
        return TimelineZone(self.local_zone) if self.timezone == "LOCAL" else UTC_TIMELINE

    @property
    def key_form(self) -> KeyForm:
        """How keys and paths spell timestamps and floating-point numbers."""
        return key_form(self)

    @property
    def partition_transforms(self) -> tuple[PartitionTransform, ...]:
        """How the value of each partition field comes from its column."""
        kinds: tuple[str, ...] = self.partition_types
        if self.keygen_type is KeyGeneratorType.TIMESTAMP:
            kinds = (TIMESTAMP_FIELD,) * len(self.partition_fields)
        elif self.keygen_type in (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX):
            kinds = (SIMPLE_FIELD,) * len(self.partition_fields)
        if len(kinds) != len(self.partition_fields):
            return (PartitionTransform.OTHER,) * len(self.partition_fields)
        of_time = self.time_based.transform if self.time_based else PartitionTransform.OTHER
        of_kind = {SIMPLE_FIELD: PartitionTransform.IDENTITY, TIMESTAMP_FIELD: of_time}
        return tuple(of_kind.get(kind, PartitionTransform.OTHER) for kind in kinds)

    @property
    def merge_rules(self) -> MergeRules:
        """How versions of a row are merged."""
        return merge_rules(self)

    @property
    def knows_its_keys(self) -> bool:
        """Whether keys are known to be made as the stored ones were.

        This project made the table (it alone gives ids to columns), or has compared stored keys
        before.
        """
        return has_ids(self.create_schema or "") or ManagedKeys.keys_proved.read(self.raw)

    @property
    def former_names(self) -> frozenset[str]:
        """Paths at which files may hold another column than the one that is there now."""
        return frozenset(ManagedKeys.former_names.read(self.raw))

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], path: str = FILE_NAME) -> TableConfig:
        """Return the typed view of a table's properties.

        Parameters
        ----------
        properties
            As read from ``hoodie.properties``.
        path
            Path of that file; used in errors.

        Raises
        ------
        CorruptMetadataError
            A property is missing or malformed, or the checksum is wrong.
        UnsupportedTableError
            A version that cannot even be read.
        """
        read = _Reader(properties, path)
        name = read.required(TableKeys.name, "hoodie.table.name")
        version = read.required(TableKeys.version, "hoodie.table.version")
        database = read(TableKeys.database)
        checksum = read(ManagedKeys.checksum)
        if checksum not in (
            None,
            str(table_checksum(properties.get(TableKeys.database.key), name)),
        ):
            raise CorruptMetadataError(path, f"{CHECKSUM_KEY} is {checksum}, another table's")
        base_path = path.removesuffix(_META_PATH)
        if version not in READABLE_VERSIONS:
            raise UnsupportedTableError(
                base_path,
                f"has table version {version}",
                "Versions 6, 8 and 9 are read; upgrade or downgrade the table with Apache Hudi.",
            )
        layout = read(ManagedKeys.layout_version) or (1 if version == 6 else 2)
        if layout != (1 if version == 6 else 2):
            raise UnsupportedTableError(
                base_path,
                f"has timeline layout {layout}, which table version {version} does not have",
                "Restore hoodie.properties from a backup of the table.",
            )
        record_key, partition = read(TableKeys.record_key), read(TableKeys.partition_path)
        keygen = read.key_generator() or infer_key_generator(record_key, partition)
        types: tuple[str, ...] = ()
        if keygen is KeyGeneratorType.CUSTOM:
            partition, types = typed_fields(partition)
        value_only = read(ManagedKeys.complex_encoding)
        return cls(
            name=name,
            database=database,
            table_type=read.required(TableKeys.table_type, "hoodie.table.type"),
            version=version,
            initial_version=read(ManagedKeys.initial_version) or version,
            layout_version=layout,
            record_key_fields=record_key,
            partition_fields=partition,
            partition_types=types,
            keygen_type=keygen,
            time_based=read.time_based(keygen, types),
            **stored_merging(read, version),
            hive_style=read(TableKeys.hive_style),
            url_encode=read(TableKeys.url_encode),
            drop_partition_columns=read(TableKeys.drop_partition_columns),
            populate_meta_fields=read(TableKeys.populate_meta_fields),
            base_file_format=read(TableKeys.base_file_format),
            table_format=read(TableKeys.format),
            timeline_path=read(ManagedKeys.timeline_path),
            history_path=read(ManagedKeys.history_path),
            archive_folder=read(ManagedKeys.archive_folder),
            # a table that names no zone was written in its writer's
            timezone=read(TableKeys.timezone)
            if TableKeys.timezone.is_given(properties)
            else "LOCAL",
            local_zone=read(TableKeys.local_zone),
            create_schema=read(ManagedKeys.create_schema),
            last_column_id=read(ManagedKeys.last_column_id),
            field_ids=read(ManagedKeys.field_ids),
            metadata_partitions=tuple(
                dict.fromkeys(
                    read(ManagedKeys.metadata_partitions)
                    + read(ManagedKeys.metadata_partitions_inflight)
                )
            ),
            bootstrap_base_path=read(ManagedKeys.bootstrap_path),
            complex_keygen_new_encoding=bool(value_only),
            consistent_timestamps=read(TableKeys.consistent_timestamps),
            old_floats=read(TableKeys.java_version),
            buckets=read.buckets(record_key),
            raw=dict(properties),
        )

    def to_properties(self) -> dict[str, str]:
        """Return the properties of the table as its version wants them, the checksum last.

        Properties that were read and mean nothing here are kept as they are. A table of version 6
        is never written, so its properties are returned as read.
        """
        if self.version not in WRITABLE_VERSIONS:
            return dict(self.raw)
        properties = dict(self.raw)
        for key, value in own_properties(self):
            if value is None:
                properties.pop(key, None)
            else:
                properties[key] = value
        properties.pop(CHECKSUM_KEY, None)
        properties[CHECKSUM_KEY] = str(table_checksum(self.database, self.name))
        return properties

    def validate_for_write(self, base_path: str) -> None:
        """Refuse a table that this release cannot write without losing something.

        Raises
        ------
        UnsupportedTableError
            Names the feature.
        """
        refuse_write(self, base_path)

    def validate_for_read(self, base_path: str) -> None:
        """Refuse a table that this release cannot read rightly.

        Raises
        ------
        UnsupportedTableError
            Names the feature.
        """
        refuse_read(self, base_path)


def infer_key_generator(
    record_key_fields: tuple[str, ...], partition_fields: tuple[str, ...]
) -> KeyGeneratorType:
    """Return the key generator Hudi takes when none is named."""
    if not partition_fields:
        return KeyGeneratorType.NON_PARTITION
    if any(":" in name for name in partition_fields):
        return KeyGeneratorType.CUSTOM
    if len(partition_fields) == 1 and len(record_key_fields) <= 1:
        return KeyGeneratorType.SIMPLE
    return KeyGeneratorType.COMPLEX


def typed_fields(fields: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names and the types of partition fields such as ``city:SIMPLE``; a field without
    a type has an empty one."""
    parts = [field.partition(":") for field in fields]
    return (
        tuple(name.strip() for name, _, _ in parts),
        tuple(kind.strip().upper() for _, _, kind in parts),
    )


def has_time_based(keygen: KeyGeneratorType, types: tuple[str, ...]) -> bool:
    """Tell whether a table has TIMESTAMP partition fields."""
    return keygen is KeyGeneratorType.TIMESTAMP or TIMESTAMP_FIELD in types


class _Reader:
    """Reads stored properties; what is wrong with them is damage, not a user's mistake."""

    def __init__(self, properties: Mapping[str, str], path: str) -> None:
        self._properties, self._path = properties, path

    def __call__(self, key: ConfigKey[T]) -> T:
        try:
            return key.read(self._properties)
        except InvalidOptionError as error:
            raise CorruptMetadataError(self._path, error.what) from error

    def required(self, key: ConfigKey[T | None], stored_name: str) -> T:
        value = self(key) if key.is_given(self._properties) else None
        if value is None:
            raise CorruptMetadataError(self._path, f"{stored_name} is missing")
        return value

    def key_generator(self) -> KeyGeneratorType | None:
        return self(TableKeys.key_generator_class) or self(TableKeys.key_generator)

    def time_based(self, keygen: KeyGeneratorType, types: tuple[str, ...]) -> TimeBased | None:
        if not has_time_based(keygen, types):
            return None
        try:
            return time_based(self._properties)
        except InvalidOptionError:
            return None  # such a table is read, and refused where it is written

    def buckets(self, record_key: tuple[str, ...]) -> Buckets | None:
        try:
            return stored_buckets(self._properties, record_key)
        except InvalidOptionError as error:
            raise CorruptMetadataError(self._path, error.what) from error
