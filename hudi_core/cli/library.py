"""Lazy imports of the library, by the commands that need it.

Help, the version and errors of the command line come without the library.
"""

from typing import TYPE_CHECKING, Final

from hudi_core.lazy import lazy_names

if TYPE_CHECKING:
    from hudi_core.actions.compaction import groups_under_compaction
    from hudi_core.cli.schema_file import read_avro_schema, read_parquet_schema
    from hudi_core.config.format_option import option_key
    from hudi_core.config.kinds import TableType
    from hudi_core.config.optional_libraries import require_library
    from hudi_core.config.support import NOT_BUILT
    from hudi_core.config.table_keys import TableKeys
    from hudi_core.config.trino import TrinoConfig
    from hudi_core.config.write import WriteConfig
    from hudi_core.doors.connector import Connector
    from hudi_core.engine.choice import engine_of
    from hudi_core.ingestion import ingest
    from hudi_core.metadata.maintenance.validator import validate
    from hudi_core.metadata.snapshot import MetadataSnapshot
    from hudi_core.metadata.table import METADATA_FOLDER
    from hudi_core.model.files import PartitionPath
    from hudi_core.model.instant_time import to_epoch_millis
    from hudi_core.plugin.host import FormatHost
    from hudi_core.plugin.registry import FormatRegistry
    from hudi_core.read.connector.handles import TableName
    from hudi_core.services.adoption.source import PLAIN
    from hudi_core.services.convert import without_type
    from hudi_core.services.drop import drop_table, plan_drop
    from hudi_core.services.history import table_history, timeline_states
    from hudi_core.services.metadata import (
        MetadataOperator,
        list_files,
        lister_of,
        look_up_keys,
        metadata_stats,
        require_metadata,
    )
    from hudi_core.services.opening import open_table
    from hudi_core.services.progress import no_progress
    from hudi_core.services.relocate import without_placement
    from hudi_core.services.upgrade import plan_upgrade, upgrade_table
    from hudi_core.table import Table
    from hudi_core.trino.server import ThriftServer
    from hudi_core.trino.service import TrinoService
    from hudi_core.txn.publication import is_two_step
    from hudi_core.txn.table_lock import table_lock

__all__ = [
    "METADATA_FOLDER",
    "NOT_BUILT",
    "PLAIN",
    "Connector",
    "FormatHost",
    "FormatRegistry",
    "MetadataOperator",
    "MetadataSnapshot",
    "PartitionPath",
    "Table",
    "TableKeys",
    "TableName",
    "TableType",
    "ThriftServer",
    "TrinoConfig",
    "TrinoService",
    "WriteConfig",
    "drop_table",
    "engine_of",
    "groups_under_compaction",
    "ingest",
    "is_two_step",
    "list_files",
    "lister_of",
    "look_up_keys",
    "metadata_stats",
    "no_progress",
    "open_table",
    "option_key",
    "plan_drop",
    "plan_upgrade",
    "read_avro_schema",
    "read_parquet_schema",
    "require_library",
    "require_metadata",
    "table_history",
    "table_lock",
    "timeline_states",
    "to_epoch_millis",
    "upgrade_table",
    "validate",
    "without_placement",
    "without_type",
]

_HOMES: Final = {
    "require_library": "hudi_core.config.optional_libraries",
    "Connector": "hudi_core.doors.connector",
    "engine_of": "hudi_core.engine.choice",
    "TableName": "hudi_core.read.connector.handles",
    "ThriftServer": "hudi_core.trino.server",
    "TrinoConfig": "hudi_core.config.trino",
    "TrinoService": "hudi_core.trino.service",
    "ingest": "hudi_core.ingestion",
    "TableKeys": "hudi_core.config.table_keys",
    "TableType": "hudi_core.config.kinds",
    "groups_under_compaction": "hudi_core.actions.compaction",
    "FormatHost": "hudi_core.plugin.host",
    "FormatRegistry": "hudi_core.plugin.registry",
    "METADATA_FOLDER": "hudi_core.metadata.table",
    "MetadataOperator": "hudi_core.services.metadata",
    "MetadataSnapshot": "hudi_core.metadata.snapshot",
    "NOT_BUILT": "hudi_core.config.support",
    "PLAIN": "hudi_core.services.adoption.source",
    "drop_table": "hudi_core.services.drop",
    "plan_drop": "hudi_core.services.drop",
    "plan_upgrade": "hudi_core.services.upgrade",
    "PartitionPath": "hudi_core.model.files",
    "Table": "hudi_core.table",
    "WriteConfig": "hudi_core.config.write",
    "is_two_step": "hudi_core.txn.publication",
    "list_files": "hudi_core.services.metadata",
    "lister_of": "hudi_core.services.metadata",
    "look_up_keys": "hudi_core.services.metadata",
    "metadata_stats": "hudi_core.services.metadata",
    "no_progress": "hudi_core.services.progress",
    "open_table": "hudi_core.services.opening",
    "option_key": "hudi_core.config.format_option",
    "read_avro_schema": "hudi_core.cli.schema_file",
    "read_parquet_schema": "hudi_core.cli.schema_file",
    "require_metadata": "hudi_core.services.metadata",
    "table_history": "hudi_core.services.history",
    "table_lock": "hudi_core.txn.table_lock",
    "timeline_states": "hudi_core.services.history",
    "to_epoch_millis": "hudi_core.model.instant_time",
    "upgrade_table": "hudi_core.services.upgrade",
    "validate": "hudi_core.metadata.maintenance.validator",
    "without_placement": "hudi_core.services.relocate",
    "without_type": "hudi_core.services.convert",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
