"""What the project stores with a table and no option sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hudi_core.config.extension_points import PARTITIONS_PROPERTY
from hudi_core.config.options import ConfigKey, Group, Options
from hudi_core.config.parsers import integer
from hudi_core.config.storage_move import MOVE_PROPERTY, StorageMove
from hudi_core.config.stored import Stored
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.table_parsers import field_ids, field_ids_text, folder


class ManagedKeys(Options, group=Group.TABLE):
    """What the project keeps with a table itself; no option sets it."""

    initial_version = Stored[int | None](
        "hoodie.table.initial.version",
        parse=integer(0, 99),
        default_text="(the version at creation)",
    )
    """Version the table was created with."""
    layout_version = Stored[int | None](
        "hoodie.timeline.layout.version",
        parse=integer(0, 9),
        default_text="2 (1 for tables of version 6)",
    )
    """Layout of the timeline's files."""
    timeline_path = Stored("hoodie.timeline.path", default="timeline", parse=folder)
    """Folder of the active timeline below `.hoodie`."""
    history_path = Stored("hoodie.timeline.history.path", default="history", parse=folder)
    """Folder of the archived timeline below the timeline's folder."""
    archive_folder = Stored("hoodie.archivelog.folder", default="archived", parse=folder)
    """Folder of the archived timeline of layout 1, below `.hoodie`."""
    complex_encoding = ConfigKey(
        "hoodie.table.complex.keygen.encoding",
        parse=lambda text: text == "VALUE_ONLY" if text else None,
        choices=("FIELD_PREFIXED", "VALUE_ONLY"),
        default_text="(as hoodie.write.complex.keygen.new.encoding says)",
    )
    """Stored form of hoodie.write.complex.keygen.new.encoding."""
    partitions_made = ConfigKey(PARTITIONS_PROPERTY, default=False)
    """Whether a key generator that another distribution provides makes the strings of partition
    fields, which are then no values of columns."""
    keys_proved = ConfigKey("hoodie.table.keygen.proved", default=False)
    """Whether stored keys of a table that another writer made were found to be those that are made
    here, before the first write."""
    create_schema = Stored[str | None]("hoodie.table.create.schema")
    """Avro schema the table was created with, as JSON."""
    last_column_id = Stored[int | None]("hoodie.table.schema.last-column-id", parse=integer(0))
    """Greatest field id the table has ever given out."""
    field_ids = Stored[dict[str, int]](
        "hoodie.table.schema.field-ids",
        default={},
        parse=field_ids,
        default_text="(none)",
        to_text=field_ids_text,
    )
    """Id of every field by its dotted path, as a JSON object."""
    former_names = ConfigKey[tuple[str, ...]]("hoodie.table.schema.former-names", default=())
    """Paths at which files may hold another column than the one that is there now, because it was
    renamed or dropped: statistics that go by names are not used for them."""
    virtual_since = ConfigKey[str | None](
        "hoodie.recordkey.virtual.since", default_text="(its creation)"
    )
    """Time from which on files of a table with virtual keys leave `_hoodie_record_key` out; what
    older files hold of it is ignored."""
    metadata_partitions = ConfigKey[tuple[str, ...]]("hoodie.table.metadata.partitions", default=())
    """Partitions of the table's metadata table that readers use."""
    metadata_partitions_inflight = ConfigKey[tuple[str, ...]](
        "hoodie.table.metadata.partitions.inflight", default=()
    )
    """Partitions of the metadata table that are being built."""
    idempotent_writes = ConfigKey("hoodie.table.idempotent.writes", default=False)
    """Whether commits say which writes applications made, for `idempotency=`."""
    bootstrap_base_path = ConfigKey[str | None]("hoodie.bootstrap.base.path")
    """Data the table was bootstrapped from. Bootstrapped tables are refused."""
    storage_move = ConfigKey[StorageMove | None](MOVE_PROPERTY, parse=StorageMove.parse)
    """A move of the data files to another storage layout that is not over: how far it has come, and
    where else files are."""
    checksum = ConfigKey[str | None]("hoodie.table.checksum", default_text="(computed)")
    """CRC 32 of database and table name."""


CHOSEN_ROWS: Final[Mapping[str, Stored[Any]]] = {
    name: key for name, key in TableKeys.by_attribute.items() if isinstance(key, Stored)
}
"""What a user chooses and a table keeps, by fields of ``TableConfig``."""

ROWS: Final[Mapping[str, Stored[Any]]] = {
    **CHOSEN_ROWS,
    **{name: key for name, key in ManagedKeys.by_attribute.items() if isinstance(key, Stored)},
}
"""Every property that is one field of ``TableConfig``; others have functions of their own."""
