"""What a writer sees to in the metadata table before its own instant is on the timeline."""

from __future__ import annotations

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.compaction import refuse_backlog
from hudi_core.metadata.indexing import build_wanted
from hudi_core.metadata.initialize import ensure
from hudi_core.metadata.undo import recover
from hudi_core.metadata.upkeep import current_client, open_upkeep
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
        ensure(current_client(client, timeline), config, timeline)
