"""What the project stores with a table and no option sets."""

from __future__ import annotations

from typing import Any, Final

from hudi_core.config.key import ConfigKey, Group
from hudi_core.config.parsers import boolean, integer, names, text_or_none
from hudi_core.config.table_parsers import field_ids, folder

COMPLEX_ENCODING: Final = ConfigKey(
    key="hoodie.table.complex.keygen.encoding",
    default=None,
    default_text="(as hoodie.write.complex.keygen.new.encoding says)",
    parse=lambda text: text == "VALUE_ONLY" if text else None,
    choices=("FIELD_PREFIXED", "VALUE_ONLY"),
    doc="Stored form of hoodie.write.complex.keygen.new.encoding.",
    group=Group.TABLE,
)
KEYS_PROVED: Final = ConfigKey(
    key="hoodie.table.keygen.proved",
    default=False,
    parse=boolean,
    doc="Whether stored keys of a table that another writer made were found to be those that are "
    "made here, before the first write.",
    group=Group.TABLE,
)
INITIAL_VERSION: Final = ConfigKey(
    key="hoodie.table.initial.version",
    default=None,
    default_text="(the version at creation)",
    parse=integer(0, 99),
    doc="Version the table was created with.",
    group=Group.TABLE,
)
LAYOUT_VERSION: Final = ConfigKey(
    key="hoodie.timeline.layout.version",
    default=None,
    default_text="2 (1 for tables of version 6)",
    parse=integer(0, 9),
    doc="Layout of the timeline's files.",
    group=Group.TABLE,
)
TIMELINE_PATH: Final = ConfigKey(
    key="hoodie.timeline.path",
    default="timeline",
    parse=folder,
    doc="Folder of the active timeline below `.hoodie`.",
    group=Group.TABLE,
)
HISTORY_PATH: Final = ConfigKey(
    key="hoodie.timeline.history.path",
    default="history",
    parse=folder,
    doc="Folder of the archived timeline below the timeline's folder.",
    group=Group.TABLE,
)
ARCHIVE_FOLDER: Final = ConfigKey(
    key="hoodie.archivelog.folder",
    default="archived",
    parse=folder,
    doc="Folder of the archived timeline of layout 1, below `.hoodie`.",
    group=Group.TABLE,
)
CREATE_SCHEMA: Final = ConfigKey(
    key="hoodie.table.create.schema",
    default=None,
    default_text="(none)",
    parse=text_or_none,
    doc="Avro schema the table was created with, as JSON.",
    group=Group.TABLE,
)
LAST_COLUMN_ID: Final = ConfigKey(
    key="hoodie.table.schema.last-column-id",
    default=None,
    default_text="(none)",
    parse=integer(0),
    doc="Greatest field id the table has ever given out.",
    group=Group.TABLE,
)
FIELD_IDS: Final[ConfigKey[dict[str, int]]] = ConfigKey(
    key="hoodie.table.schema.field-ids",
    default={},
    default_text="(none)",
    parse=field_ids,
    doc="Id of every field by its dotted path, as a JSON object.",
    group=Group.TABLE,
)
FORMER_NAMES: Final[ConfigKey[tuple[str, ...]]] = ConfigKey(
    key="hoodie.table.schema.former-names",
    default=(),
    default_text="(none)",
    parse=names,
    doc="Paths at which files may hold another column than the one that is there now, because it "
    "was renamed or dropped: statistics that go by names are not used for them.",
    group=Group.TABLE,
)
METADATA_PARTITIONS: Final[ConfigKey[tuple[str, ...]]] = ConfigKey(
    key="hoodie.table.metadata.partitions",
    default=(),
    default_text="(none)",
    parse=names,
    doc="Partitions of the table's metadata table that readers use.",
    group=Group.TABLE,
)
METADATA_PARTITIONS_INFLIGHT: Final[ConfigKey[tuple[str, ...]]] = ConfigKey(
    key="hoodie.table.metadata.partitions.inflight",
    default=(),
    default_text="(none)",
    parse=names,
    doc="Partitions of the metadata table that are being built.",
    group=Group.TABLE,
)
IDEMPOTENT_WRITES: Final = ConfigKey(
    key="hoodie.table.idempotent.writes",
    default=False,
    parse=boolean,
    doc="Whether commits say which writes applications made, for `idempotency=`.",
    group=Group.TABLE,
)
BOOTSTRAP_PATH: Final = ConfigKey(
    key="hoodie.bootstrap.base.path",
    default=None,
    default_text="(none)",
    parse=text_or_none,
    doc="Data the table was bootstrapped from. Bootstrapped tables are refused.",
    group=Group.TABLE,
)
CHECKSUM: Final = ConfigKey(
    key="hoodie.table.checksum",
    default=None,
    default_text="(computed)",
    parse=text_or_none,
    doc="CRC 32 of database and table name.",
    group=Group.TABLE,
)

MANAGED_KEYS: Final[tuple[ConfigKey[Any], ...]] = (
    INITIAL_VERSION,
    LAYOUT_VERSION,
    TIMELINE_PATH,
    HISTORY_PATH,
    ARCHIVE_FOLDER,
    COMPLEX_ENCODING,
    KEYS_PROVED,
    CREATE_SCHEMA,
    LAST_COLUMN_ID,
    FIELD_IDS,
    FORMER_NAMES,
    METADATA_PARTITIONS,
    METADATA_PARTITIONS_INFLIGHT,
    IDEMPOTENT_WRITES,
    BOOTSTRAP_PATH,
    CHECKSUM,
)
