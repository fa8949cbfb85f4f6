"""What a writer sees to in the metadata table before its own instant is on the timeline."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.compaction import refuse_backlog
from hudi_core.metadata.index_definitions import (
    PATH_KEY,
    IndexDefinitions,
    put_definitions,
    read_definitions,
    with_index,
)
from hudi_core.metadata.indexing import build_wanted
from hudi_core.metadata.initialize import PartitionBuilder
from hudi_core.metadata.locked import LockedMetadata
from hudi_core.metadata.partition_types import (
    RECORD_INDEX,
    SECONDARY_INDEX,
    group_place,
)
from hudi_core.metadata.table import (
    BOOTSTRAP_PREFIX,
    METADATA_FOLDER,
    StoredPartitions,
    metadata_client,
    metadata_properties,
    metadata_storage,
    stored_partitions,
)
from hudi_core.metadata.undo import recover
from hudi_core.metadata.upkeep import current_client, open_upkeep, refuse_unmaintained
from hudi_core.metadata.wanted import options_for, wanted_partitions
from hudi_core.model.files import BaseFileName, LogFileName
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.metering import Metric
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.properties_file import update_properties, write_new
from hudi_core.timeline.timeline import Timeline

_log: Final = logging.getLogger(__name__)


def prepare(client: TableMetaClient, config: MetadataConfig, timeline: Timeline) -> None:
    """Make good what dead writers left in the metadata table, and build what it lacks.

    One that somebody died while making anew is made anew, with the partitions that it had: the one
    write that finds it pays for that, with a listing of the table and all footers. Runs under the
    table's lock, after the table itself was recovered. Where nothing is to be done it costs a few
    reads of small files and one listing.

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
    InvalidOptionError
        An option asks for what cannot be built.
    TableServiceError
        Too much waits for a compaction, which a pending instant keeps from running.
    """
    upkeep = open_upkeep(client, config, timeline)
    if upkeep is None and config.enabled and stored_partitions(client.storage).is_made_anew:
        for name in rebuild_metadata_table(client, config, timeline):
            _log.warning("nothing tells what %s is an index of; it is gone", name)
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
        update_properties(client.storage, _built(client, config, timeline, indexes))


def new_metadata_table(client: TableMetaClient, config: MetadataConfig) -> dict[str, str]:
    """Make the metadata table of a table that is not there yet; return the properties that name
    it."""
    with client.meter.time(Metric.INITIALIZE):
        built = _built(client, config, Timeline.of(()), ())
    return {key: value for key, value in built.items() if value is not None}


def rebuild_metadata_table(
    client: TableMetaClient, config: MetadataConfig, timeline: Timeline
) -> tuple[str, ...]:
    """Make a table's metadata table anew, with the partitions that it had.

    Before anything of it goes, the table's properties name its partitions as under construction:
    readers, those of others too, list the folders until the new one is there. Whoever comes after a
    death finds there what is to be made. What refuses comes before that, and changes nothing.

    Parameters
    ----------
    client, timeline
        As :func:`create_metadata_table` takes them, the client of any age.
    config
        How partitions are laid out; which there are is not asked of it.

    Returns
    -------
    tuple of str
        The indexes that nothing tells the column of: they are gone.

    Raises
    ------
    UnsupportedTableError
        The metadata table has an index that only other engines keep.
    InvalidOptionError
        It has an index of keys that no file of the table holds.
    CorruptMetadataError
        What tells of the indexes is damaged.
    """
    fresh = current_client(client, timeline)
    names = stored_partitions(fresh.storage).all
    stored = read_definitions(fresh.storage, fresh.config)
    definitions = _with_kind(fresh, stored, names)
    indexes = [one for one in names if one.startswith(SECONDARY_INDEX)]
    known = [one for one in indexes if _is_defined(fresh.schema, definitions, one)]
    gone = tuple(one for one in indexes if one not in known)
    kept = StoredPartitions(tuple(one for one in names if one not in gone))
    refuse_unmaintained(kept, definitions, fresh.base_path)
    options = options_for(config, names, definitions)
    wanted_partitions(options, fresh.config)
    if definitions != stored:
        # at once: after a death nothing else may tell
        put_definitions(fresh.storage, definitions)
    update_properties(
        fresh.storage,
        {
            ManagedKeys.metadata_partitions.key: None,
            ManagedKeys.metadata_partitions_inflight.key: ",".join(sorted(names)),
        },
    )
    create_metadata_table(current_client(client, timeline), options, timeline, known)
    return gone


def _with_kind(
    client: TableMetaClient, definitions: IndexDefinitions, names: Sequence[str]
) -> IndexDefinitions:
    """Return the definitions with that of a record index of which they tell nothing any more: the
    names of its file groups say whether they belong to partitions of the table."""
    if RECORD_INDEX not in names or RECORD_INDEX in definitions.raw:
        return definitions
    owned = any(
        (place := group_place(RECORD_INDEX, named.file_id)) and place.owner is not None
        for status in metadata_storage(client).list(RECORD_INDEX)
        if (named := BaseFileName.parse(status.name) or LogFileName.parse(status.name))
    )
    options = {"isPartitioned": "true" if owned else "false"}
    return with_index(definitions, client.config, RECORD_INDEX, options=options)


def _is_defined(schema: TableSchema, definitions: IndexDefinitions, index: str) -> bool:
    columns = definitions.columns(index)
    return len(columns) == 1 and schema.field(columns[0]) is not None


def _built(
    client: TableMetaClient, config: MetadataConfig, timeline: Timeline, indexes: Sequence[str]
) -> dict[str, str | None]:
    """Make a metadata table; return the changes of the properties by which readers use it."""
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
    return {
        ManagedKeys.metadata_partitions.key: ",".join(sorted(wanted)),
        ManagedKeys.metadata_partitions_inflight.key: None,
        PATH_KEY: builder.definitions.path if builder.definitions.raw else None,
    }
