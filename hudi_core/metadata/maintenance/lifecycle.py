"""Makes the metadata table ready before a writer's instant begins."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import (
    put_definitions,
    read_definitions,
)
from hudi_core.metadata.log.undo import recover
from hudi_core.metadata.maintenance.beside import (
    announce_rebuild,
    build_time,
    discard_beside,
    new_builder,
    properties_in_use,
    put_in_place,
    rebuild_plan,
)
from hudi_core.metadata.maintenance.compaction import require_no_backlog
from hudi_core.metadata.maintenance.indexing import build_missing_partitions
from hudi_core.metadata.partitions.base import MetadataPartition
from hudi_core.metadata.partitions.listed import ListedTable
from hudi_core.metadata.partitions.registry import enabled_partitions
from hudi_core.metadata.state import MetadataState
from hudi_core.metadata.table import (
    METADATA_FOLDER,
    StoredPartitions,
)
from hudi_core.model.metering import Metric
from hudi_core.storage.properties_file import update_properties

_log: Final = logging.getLogger(__name__)


def ensure_metadata_table(
    client: TableMetaClient, config: MetadataConfig, found: MetadataState | None = None
) -> TableMetaClient:
    """Recover the metadata table, and build its missing partitions.

    One whose rebuild died is rebuilt, with the partitions that it had: the one write that finds it
    pays for that, with a listing of the table and all footers, unless it was
    complete already and just not in its place. Runs under the
    table's lock, after the table itself was recovered. Where nothing is to be done it costs nothing
    but the state.

    The timeline is read since the lock is held. ``config`` decides whether a table without a
    metadata table gets one.
    """
    tables = found or MetadataState.load(client)
    if tables is None and config.enabled:
        if not StoredPartitions.of(client.config).is_rebuilding:
            return create_metadata_table(client, config)
        rebuilt = put_in_place(client)
        if rebuilt is None:
            rebuilt, gone = rebuild_metadata_table(client, config)
            for name in gone:
                _log.warning("the column of index %s is not recorded; the index is gone", name)
        tables = MetadataState.load(rebuilt)
    if tables is None:
        return client
    tables = recover(tables)
    require_no_backlog(config, tables.data_timeline, tables.timeline)
    if config.enabled:
        tables = build_missing_partitions(tables, config)
    return tables.client


def create_metadata_table(
    client: TableMetaClient,
    config: MetadataConfig,
    indexes: Sequence[MetadataPartition] = (),
) -> TableMetaClient:
    """Create a table's metadata table with all enabled partitions.

    Its partitions are built at times before every other. Readers go by the table's property, which
    changes last: what a dead writer left before is deleted, and rebuilt.

    The caller holds the lock and has read properties and timeline since. ``indexes`` are further
    partitions that users have named; each is defined already.
    """
    with client.meter.time(Metric.INITIALIZE):
        built, changes = _built(client, config, indexes)
        return built.with_properties(update_properties(client.storage, changes)).client


def new_metadata_table(client: TableMetaClient, config: MetadataConfig) -> dict[str, str]:
    """Create a new table's metadata table; return the properties that name it."""
    with client.meter.time(Metric.INITIALIZE):
        _, changes = _built(client, config, ())
    return {key: value for key, value in changes.items() if value is not None}


def rebuild_metadata_table(
    client: TableMetaClient, config: MetadataConfig
) -> tuple[TableMetaClient, tuple[str, ...]]:
    """Rebuild a table's metadata table, with the partitions that it had.

    Before anything of it goes, the table's properties name its partitions as under construction:
    readers, those of others too, list the folders until the new one is there. The next writer after
    a crash finds there what is to be made. What refuses comes before that, and changes nothing.

    The caller holds the lock and has read properties and timeline since. ``config`` gives the
    layout only, not which partitions there are. Returned with the table are the indexes that are
    lost, as their column is recorded nowhere.
    """
    plan = rebuild_plan(client, config)
    if not client.files.is_plain:
        ListedTable(client, plan.options, plan.definitions).require_committed()
    if plan.definitions != plan.stored:
        # at once: after a crash nothing else may record them
        put_definitions(client.storage, plan.definitions)
    client = announce_rebuild(client)
    return create_metadata_table(client, plan.options, plan.named), plan.gone


def require_rebuildable(client: TableMetaClient, config: MetadataConfig) -> None:
    """Refuse a table whose metadata table :func:`rebuild_metadata_table` would refuse."""
    rebuild_plan(client, config)


def _built(
    client: TableMetaClient, config: MetadataConfig, indexes: Sequence[MetadataPartition]
) -> tuple[MetadataState, dict[str, str | None]]:
    """Build a metadata table; return it and the changed properties.

    By these readers use it.
    """
    wanted = (*enabled_partitions(config, client.config), *indexes)
    before = read_definitions(client.storage, client.config)
    table = ListedTable(client, config, before)
    if not client.files.is_plain:
        # an engine that dropped the former one may have written where nothing is listed
        table.require_committed()
    discard_beside(client.storage)
    client.storage.delete_tree(METADATA_FOLDER)
    builder = new_builder(table, METADATA_FOLDER)
    for number, one in enumerate(wanted):
        builder.build(one, build_time(number))
    built = builder.built
    if built.definitions != before:
        put_definitions(client.storage, built.definitions)
    return built, properties_in_use([one.name for one in wanted], built.definitions)
