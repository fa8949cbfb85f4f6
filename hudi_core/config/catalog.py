"""Every declared option: for the reference, and to find unknown ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from hudi_core.config.clustering import ClusteringConfig
from hudi_core.config.commit_keys import CommitConfig
from hudi_core.config.connector import ConnectorConfig
from hudi_core.config.foreign import foreign_options
from hudi_core.config.index_keys import IndexConfig
from hudi_core.config.ingestion import IngestionConfig
from hudi_core.config.lock import SERVER_LOCKS, LockConfig
from hudi_core.config.merge_keys import MergeKeys
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.metrics import MetricsConfig
from hudi_core.config.options import ConfigKey, Options
from hudi_core.config.placement import PlacementKeys
from hudi_core.config.read import ReadConfig
from hudi_core.config.schema import SchemaConfig
from hudi_core.config.services import ServicesConfig
from hudi_core.config.sql import SqlConfig, SqlLimits
from hudi_core.config.storage import StoreKeys
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.streaming import StreamSinkConfig, StreamSourceConfig
from hudi_core.config.sync import GlueConfig, SyncConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.timebased import TimeKeys
from hudi_core.config.trino import TrinoConfig
from hudi_core.config.ttl import TtlConfig
from hudi_core.config.validators import ValidatorsConfig
from hudi_core.config.write import WriteConfig

OPTIONS: Final[tuple[type[Options], ...]] = (
    TableKeys,
    PlacementKeys,
    MergeKeys,
    TimeKeys,
    IndexConfig,
    WriteConfig,
    CommitConfig,
    SqlConfig,
    StreamSinkConfig,
    ValidatorsConfig,
    SqlLimits,
    SchemaConfig,
    ClusteringConfig,
    ReadConfig,
    StreamSourceConfig,
    ServicesConfig,
    TtlConfig,
    LockConfig,
    *SERVER_LOCKS.values(),
    StoreKeys,
    MetadataConfig,
    MetricsConfig,
    ConnectorConfig,
    TrinoConfig,
    IngestionConfig,
    SyncConfig,
    GlueConfig,
)
"""Where the options are declared that a user may give."""

ALL_KEYS: Final[tuple[ConfigKey[Any], ...]] = tuple(key for one in OPTIONS for key in one.keys)
"""Every option a user may give."""

DECLARED_NAMES: Final = frozenset(
    name for key in (*ALL_KEYS, *ManagedKeys.keys) for name in key.names
)
"""Every name, aliases too, under which an option or a stored property is declared."""

FORMAT_PREFIX: Final = "hoodie.table.format."
"""Options below this prefix belong to the table's format, which checks them itself."""


@cache
def known_names() -> frozenset[str]:
    """Every option name of this project or of Hudi, without patterns."""
    return DECLARED_NAMES | foreign_options().names


@cache
def spellings() -> Mapping[str, str]:
    """Known names by their spelling in lower case, which Spark hands over."""
    known = known_names()
    return {name.lower(): name for name in known if name.lower() not in known}
