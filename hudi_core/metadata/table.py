"""Location and properties of a table's metadata table.

It is a Hudi table of its own.

Source: ``hudi-format`` section 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from hudi_core.config.kinds import TableType
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.stored_table import stored_config
from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.errors import (
    CorruptMetadataError,
    ForeignMetadataError,
    InvalidOptionError,
    NotATableError,
    UnsupportedTableError,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.partition_types import FILES
from hudi_core.model.files import BasePath
from hudi_core.model.instant_time import SOLO_PREFIX
from hudi_core.model.protocols import Storage
from hudi_core.storage.properties_file import (
    PROPERTIES_PATH,
    read_properties,
    update_properties,
)
from hudi_core.storage.subfolder import SubfolderStorage

METADATA_FOLDER: Final = ".hoodie/metadata"
"""The metadata table, below the table it describes."""
BESIDE_FOLDER: Final = ".hoodie/.rebuilt_metadata"
"""Where a metadata table is built while another one is in use."""
BOOTSTRAP_PREFIX: Final = SOLO_PREFIX
"""What the times begin with at which partitions of the metadata table are first built."""

_FIRST_VERSION: Final = 8
"""Tables of earlier versions have a metadata table of another form."""
_NO_MERGER: Final = "00000000-0000-0000-0000-000000000000"
_PAYLOAD: Final = "org.apache.hudi.metadata.HoodieMetadataPayload"


def metadata_storage(client: TableMetaClient, folder: str = METADATA_FOLDER) -> Storage:
    """Return the storage of a table's metadata table."""
    return SubfolderStorage(client.storage, folder)


@lru_cache(maxsize=8)
def _config_of(properties: tuple[tuple[str, str], ...], path: str) -> TableConfig:
    """Configuration of a metadata table, cached: each write reads it twice."""
    return stored_config(dict(properties), path)


def metadata_client(client: TableMetaClient, folder: str = METADATA_FOLDER) -> TableMetaClient:
    """The client of the metadata table: loaded, or opened."""
    if client.metadata is not None:
        return client.metadata
    storage = metadata_storage(client, folder)
    path = f"{storage.root}/{PROPERTIES_PATH}"
    try:
        properties = read_properties(storage)
    except NotATableError as error:
        raise CorruptMetadataError(path, "it is missing", REBUILD) from error
    except CorruptMetadataError as error:
        raise CorruptMetadataError(error.path, error.reason, REBUILD) from error
    config = _config_of(tuple(properties.items()), path)
    # its instants are the table's, whatever it was made with
    config = replace(config, timezone=client.config.timezone, local_zone=client.config.local_zone)
    if config.table_type is not TableType.MERGE_ON_READ or config.base_file_format != "HFILE":
        raise CorruptMetadataError(path, "it is not of a metadata table", REBUILD)
    if not client.files.is_plain and _is_of_others(properties, client.config):
        raise ForeignMetadataError(
            path,
            "another engine made it, which does not know the table's storage paths, and listed the "
            "table's own folder instead of them",
            REBUILD,
        )
    return replace(
        client,
        base_path=BasePath(f"{client.base_path}/{folder}"),
        storage=storage,
        config=config,
        options={},
        seen=None,
    )


def metadata_properties(config: TableConfig) -> dict[str, str]:
    """Return a new metadata table's properties, without checksum."""
    properties = {
        "hoodie.table.name": f"{config.name}_metadata",
        "hoodie.table.type": TableType.MERGE_ON_READ.value,
        "hoodie.table.version": str(config.version),
        "hoodie.table.initial.version": str(config.version),
        "hoodie.timeline.layout.version": str(config.layout_version),
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": "history",
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.table.recordkey.fields": "key",
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.populate.meta.fields": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": _NO_MERGER,
        "hoodie.compaction.payload.class": _PAYLOAD,
    }
    if config.timezone != "LOCAL":
        properties[TableKeys.timezone.key] = config.timezone
    return properties


def _is_of_others(properties: Mapping[str, str], config: TableConfig) -> bool:
    """Whether another engine made a metadata table."""
    # theirs do not state the time zone
    return config.timezone != "LOCAL" and TableKeys.timezone.key not in properties


def take_over_metadata_table(client: TableMetaClient) -> None:
    """Mark a metadata table as made here.

    The caller holds the table's lock. One that another engine made is right for files in the
    table's folder, and stays in use when these are moved.
    """
    storage = metadata_storage(client)
    if _is_of_others(read_properties(storage), client.config):
        update_properties(storage, {TableKeys.timezone.key: client.config.timezone})


def is_readable(config: TableConfig) -> bool:
    """Whether this release reads the table's metadata table, if any."""
    return config.version >= _FIRST_VERSION


def require_readable(client: TableMetaClient) -> None:
    """Refuse a metadata table of an unreadable form."""
    if not is_readable(client.config):
        raise UnsupportedTableError(
            client.base_path,
            f"has version {client.config.version}, whose metadata tables are not read: "
            "the folders of the table are listed instead",
            "Run `hudi table upgrade PATH --to 8` (or 9) first.",
        )


def has_value_types(config: TableConfig) -> bool:
    """Whether new statistics record bound types (version 2)."""
    return config.version >= 9


@dataclass(frozen=True, slots=True)
class StoredPartitions:
    """The partitions of the metadata table.

    Writers keep partitions that are ``building`` as well, unless the list of files is one of them:
    then all of the metadata table is being rebuilt, and no reader uses any of it.
    """

    complete: tuple[str, ...]
    building: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: TableConfig) -> StoredPartitions:
        """Those that a table's properties name."""
        keys = (ManagedKeys.metadata_partitions, ManagedKeys.metadata_partitions_inflight)
        return _stored_partitions(*[config.raw.get(key.key, "") for key in keys])

    @property
    def is_there(self) -> bool:
        """Whether there is a metadata table that readers use.

        It has the list of files.
        """
        return FILES in self.complete

    @property
    def is_rebuilding(self) -> bool:
        """Whether a rebuild of the whole metadata table is unfinished.

        Being done now, or left by a writer that died.
        """
        return FILES in self.building

    @property
    def all(self) -> tuple[str, ...]:
        """Both."""
        return tuple(dict.fromkeys(self.complete + self.building))


@lru_cache(maxsize=64)
def _stored_partitions(complete: str, building: str) -> StoredPartitions:
    """The partitions in a table's properties, cached for repeated calls."""
    keys = (ManagedKeys.metadata_partitions, ManagedKeys.metadata_partitions_inflight)
    try:
        whole, begun = (
            key.read({key.key: text}) for key, text in zip(keys, (complete, building), strict=True)
        )
    except InvalidOptionError as error:
        raise CorruptMetadataError(PROPERTIES_PATH, error.what) from error
    return StoredPartitions(whole, tuple(one for one in begun if one not in whole))
