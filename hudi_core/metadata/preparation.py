"""What a writer sees to in the metadata table before its own instant is on the timeline."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.stored_keys import METADATA_PARTITIONS
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.compaction import refuse_backlog
from hudi_core.metadata.index_definitions import PATH_KEY, put_definitions, read_definitions
from hudi_core.metadata.indexing import build_wanted
from hudi_core.metadata.initialize import PartitionBuilder, wanted_partitions
from hudi_core.metadata.locked import LockedMetadata
from hudi_core.metadata.table import (
    BOOTSTRAP_PREFIX,
    METADATA_FOLDER,
    metadata_client,
    metadata_properties,
    metadata_storage,
)
from hudi_core.metadata.undo import recover
from hudi_core.metadata.upkeep import current_client, open_upkeep
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.metering import Metric
from hudi_core.storage.properties_file import update_properties, write_new
from hudi_core.timeline.timeline import Timeline


def prepare(client: TableMetaClient, config: MetadataConfig, timeline: Timeline) -> None:
    """Make good what dead writers left in the metadata table, and build what it lacks.

    Runs under the table's lock, after the table itself was recovered. Where nothing is to be done
    it costs a few reads of small files and one listing.

    Parameters
    ----------
    config
        What the options say: whether a table without a metadata table gets one.
    timeline
        The table's, loaded since the lock is held.

    Raises
    ------
    UnsupportedTableError
        A partition of the metadata table would go stale.
    CorruptMetadataError
        The metadata table is missing or damaged.
    TableServiceError
        Too much waits for a compaction, which a pending instant keeps from running.
    """
    upkeep = open_upkeep(client, config, timeline)
    if upkeep is not None:
        recover(upkeep.tables)
        refuse_backlog(config, timeline, upkeep.tables.metadata.timeline())
        if config.enabled:
            build_wanted(upkeep.tables, config)
    elif config.enabled:
        create_metadata_table(current_client(client, timeline), config, timeline)


def create_metadata_table(
    client: TableMetaClient,
    config: MetadataConfig,
    timeline: Timeline,
    indexes: Sequence[str] = (),
) -> None:
    """Make the metadata table of a table, with all that the options ask for.

    Its partitions are built at times before every other. Readers go by the table's property, which
    changes last: what a dead writer left before is deleted, and built anew.

    Parameters
    ----------
    client
        The table, its properties as they are now.
    timeline
        Its timeline, loaded since the lock is held.
    indexes
        Names of secondary indexes, each defined with one column of the table, that it gets as well.

    Raises
    ------
    InvalidOptionError
        An option asks for what cannot be built.
    """
    with client.meter.time(Metric.INITIALIZE):
        _create(client, config, timeline, indexes)


def _create(
    client: TableMetaClient, config: MetadataConfig, timeline: Timeline, indexes: Sequence[str]
) -> None:
    wanted = (*wanted_partitions(config, client.config), *indexes)
    client.storage.delete_tree(METADATA_FOLDER)
    write_new(metadata_storage(client), metadata_properties(client.config))
    definitions = read_definitions(client.storage, client.config)
    tables = LockedMetadata(client, metadata_client(client), timeline)
    builder = PartitionBuilder(tables, config, definitions)
    for number, name in enumerate(wanted):
        builder.build(name, InstantTime(f"{BOOTSTRAP_PREFIX}{number:03d}"))
    if builder.definitions != definitions:
        put_definitions(client.storage, builder.definitions)
    update_properties(
        client.storage,
        {
            METADATA_PARTITIONS.key: ",".join(sorted(wanted)),
            PATH_KEY: builder.definitions.path if builder.definitions.raw else None,
        },
    )
