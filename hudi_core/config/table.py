"""What a table is, as typed values (``hudi-format`` section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hudi_core.config.extension_points import NamedKeyGenerator, NamedMerger
from hudi_core.config.key_generators import KEY_GENERATORS
from hudi_core.config.kinds import (
    SIMPLE_FIELD,
    TIMESTAMP_FIELD,
    ChangeLogging,
    KeyGeneratorType,
    MergeMode,
    MergeOnReadMode,
    PartialUpdateMode,
    PayloadKind,
    TableType,
)
from hudi_core.config.merge_keys import DeleteMarker
from hudi_core.config.placement import Placement
from hudi_core.config.storage_move import StorageMove
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.table_parsers import NATIVE
from hudi_core.config.timebased import TimeBased
from hudi_core.model.buckets import Buckets
from hudi_core.model.instant import Action
from hudi_core.model.instant_time import UTC_TIMELINE, TimelineZone
from hudi_core.model.partition_transform import PartitionTransform
from hudi_core.schema.avro_types import has_ids
from hudi_core.schema.table_schema import META_COLUMNS, RECORD_KEY

_IN_FOLDER: Final = Placement()

__all__ = ["KeyGeneratorType", "MergeMode", "TableConfig", "TableType"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableConfig:
    """The configuration of a table, in the order of ``hoodie.properties``.

    :mod:`hudi_core.config.stored_table` reads and writes it, :mod:`hudi_core.config.support` judges
    it. A field that is one property is described where that is declared, in
    :class:`~hudi_core.config.table_keys.TableKeys` or
    :class:`~hudi_core.config.stored_keys.ManagedKeys`.

    ``populate_meta_fields``: files hold all meta columns, or all but the key where that is virtual.
    ``partition_fields`` are without the types that a CUSTOM key generator adds; these are
    ``partition_types``, else empty. ``named_keygen`` and ``named_merger`` come from another
    distribution; the type of such a key generator is ``USER_PROVIDED``. ``time_based`` is ``None``
    without TIMESTAMP partition fields, or where the properties are not understood.
    ``complex_keygen_new_encoding``: COMPLEX with one key field has the bare value as record key,
    not ``field:value``.

    ``local_zone`` is the zone of the other writers, as an option or the table names it, else that
    of this process if the table is LOCAL; ``None`` where it has no name, or is not needed.
    ``consistent_timestamps`` and ``old_floats`` are how keys spell timestamps and floating-point
    numbers; ``None`` where it is not known. ``takes_empty_partitions``: rows with an empty string
    as partition value share the partition of those without one; not where readers of the table's
    format know values by their partition alone.

    ``ordering_fields`` has the first one first, with dots in the names of fields of structs.
    ``payload`` is the class that the table was created for, where it is built in; ``merger`` any
    class or strategy that is neither that nor ``named_merger``. ``partial_update`` is a string
    where the mode is not built in; ``unavailable_value`` marks a value that a source did not send.
    ``last_column_id`` is the greatest field id ever given out, and ``field_ids`` are by dotted
    path; ``None`` and empty for tables of other writers.

    ``buckets`` is ``None`` without the bucket index, ``storage_move`` a move that is not over.
    ``metadata_partitions`` includes the ones being built. ``raw`` is every property as read; empty
    for a table that has not been stored yet.
    """

    name: str
    database: str | None = None
    table_type: TableType = TableType.COPY_ON_WRITE
    merge_on_read_mode: MergeOnReadMode = MergeOnReadMode.LOGS
    version: int = TableKeys.version.default
    initial_version: int = TableKeys.version.default
    layout_version: int = 2
    table_format: str = NATIVE
    record_key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...] = ()
    partition_types: tuple[str, ...] = ()
    keygen_type: KeyGeneratorType = KeyGeneratorType.SIMPLE
    named_keygen: NamedKeyGenerator | None = None
    time_based: TimeBased | None = None
    complex_keygen_new_encoding: bool = False
    consistent_timestamps: bool | None = None
    local_zone: str | None = None
    old_floats: bool | None = None
    merge_mode: MergeMode = MergeMode.COMMIT_TIME_ORDERING
    ordering_fields: tuple[str, ...] = ()
    payload: PayloadKind | None = None
    named_merger: NamedMerger | None = None
    merger: str | None = None
    delete_marker: DeleteMarker | None = None
    partial_update: PartialUpdateMode | str = PartialUpdateMode.NONE
    unavailable_value: str | None = None
    hive_style: bool = False
    url_encode: bool = False
    drop_partition_columns: bool = False
    populate_meta_fields: bool = True
    virtual_keys: bool = False
    key_concatenator: str | None = None
    keeps_virtual_keys: bool = False
    logs_changes: bool = False
    change_logging: ChangeLogging = ChangeLogging.DATA_BEFORE_AFTER
    base_file_format: str = TableKeys.base_file_format.default
    timeline_path: str = ManagedKeys.timeline_path.default
    history_path: str = ManagedKeys.history_path.default
    archive_folder: str = ManagedKeys.archive_folder.default
    timezone: str = TableKeys.timezone.default
    create_schema: str | None = field(default=None, repr=False)
    last_column_id: int | None = None
    field_ids: Mapping[str, int] = field(default_factory=dict, repr=False, hash=False)
    buckets: Buckets | None = None
    placement: Placement = _IN_FOLDER
    storage_move: StorageMove | None = None
    metadata_partitions: tuple[str, ...] = ()
    bootstrap_base_path: str | None = None
    takes_empty_partitions: bool = True
    # other writers may have stored anything there: never shown
    raw: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def write_action(self) -> Action:
        """What a write that replaces no file group is on the timeline."""
        is_cow = self.table_type is TableType.COPY_ON_WRITE
        return Action.COMMIT if is_cow else Action.DELTACOMMIT

    @property
    def is_split(self) -> bool:
        """Whether updates delete rows by position, and add others."""
        is_mor = self.table_type is TableType.MERGE_ON_READ
        return is_mor and self.merge_on_read_mode is MergeOnReadMode.SPLIT

    @property
    def makes_keys(self) -> bool:
        """Whether the record keys of stored rows are made again, not read."""
        return self.virtual_keys or not self.populate_meta_fields

    @property
    def stored_meta_columns(self) -> tuple[str, ...]:
        """The meta columns that new files hold."""
        if not self.populate_meta_fields:
            return ()
        if self.virtual_keys and not self.keeps_virtual_keys:
            return tuple(name for name in META_COLUMNS if name != RECORD_KEY)
        return META_COLUMNS

    @property
    def tells_meta_columns(self) -> bool:
        """Whether other engines may expect all meta columns in all files.

        A table whose key alone is virtual shows them none: they would miss it.
        """
        return RECORD_KEY in self.stored_meta_columns

    @property
    def indexes_meta_columns(self) -> bool:
        """Whether statistics of meta columns are kept.

        Not once other engines may have written files without such columns.
        """
        return self.tells_meta_columns and not self.keys_differ_by_file

    @property
    def keys_differ_by_file(self) -> bool:
        """Whether some files may hold record keys and others not."""
        return TableKeys.virtual_keys.is_given(self.raw)

    @property
    def is_partitioned(self) -> bool:
        return bool(self.partition_fields)

    @property
    def zone(self) -> TimelineZone:
        """Time zone of the table's instants."""
        return TimelineZone(self.local_zone) if self.timezone == "LOCAL" else UTC_TIMELINE

    @property
    def field_types(self) -> tuple[str, ...]:
        """What each partition field is.

        One of ``FIELD_TYPES`` each; empty where that is not known.
        """
        named = self.named_keygen
        if named is not None:
            return () if named.makes_partitions else (SIMPLE_FIELD,) * len(self.partition_fields)
        form = KEY_GENERATORS.get(self.keygen_type)
        if self.partition_types or form is None or form.field_type is None:
            return self.partition_types
        return (form.field_type,) * len(self.partition_fields)

    @property
    def keygen_name(self) -> str:
        """The key generator, as options name it."""
        named = self.named_keygen
        return self.keygen_type.value if named is None else named.name

    @property
    def may_name_one_key(self) -> bool:
        """Whether keys of one field may be ``f:v``, not the bare value."""
        form = KEY_GENERATORS.get(self.keygen_type)
        is_named = form is not None and form.may_name_one_key
        return is_named and len(self.record_key_fields) == 1

    @property
    def partition_transforms(self) -> tuple[PartitionTransform, ...]:
        """How the value of each partition field comes from its column."""
        kinds = self.field_types
        if len(kinds) != len(self.partition_fields):
            return (PartitionTransform.OTHER,) * len(self.partition_fields)
        of_time = self.time_based.transform if self.time_based else PartitionTransform.OTHER
        of_kind = {SIMPLE_FIELD: PartitionTransform.IDENTITY, TIMESTAMP_FIELD: of_time}
        return tuple(of_kind.get(kind, PartitionTransform.OTHER) for kind in kinds)

    @property
    def knows_its_keys(self) -> bool:
        """Whether keys are known to be made as the stored ones were.

        This project made the table (it alone gives ids to columns), or has compared stored keys
        before.
        """
        return has_ids(self.create_schema or "") or ManagedKeys.keys_proved.read(self.raw)

    @property
    def former_names(self) -> frozenset[str]:
        """Paths at which older files may hold another column."""
        former = frozenset(ManagedKeys.former_names.read(self.raw))
        # what the column reads is not what all files hold of it
        return former | {RECORD_KEY} if self.virtual_keys or self.keys_differ_by_file else former
