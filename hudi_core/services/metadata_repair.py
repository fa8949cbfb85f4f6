"""Rebuilding the metadata table from all files, compared before use."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.errors import TableServiceError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.beside import Rebuilt, put_in_place, rebuild_beside
from hudi_core.metadata.partitions.registry import enabled_partitions
from hudi_core.metadata.table import METADATA_FOLDER, StoredPartitions, require_readable
from hudi_core.services.convert import require_recoverable
from hudi_core.services.lost_completions import lost_completions
from hudi_core.services.opening import open_table
from hudi_core.services.progress import FILES_AT_A_TIME, CountedMap, Progress, no_progress
from hudi_core.services.repair import refuse_other_writers
from hudi_core.storage.properties_file import recover as recover_properties
from hudi_core.storage.properties_file import update_properties
from hudi_core.table_handle import OpenTable
from hudi_core.txn.table_lock import table_lock


@dataclass(frozen=True, slots=True)
class MetadataRepair:
    """A rebuild of a metadata table that was made, or is planned.

    ``rebuilt`` is ``None`` where an earlier repair had built the partitions, and died before they
    were in place.
    """

    path: str
    partitions: tuple[str, ...]
    rebuilt: Rebuilt | None

    @property
    def is_resumed(self) -> bool:
        """Whether an earlier repair had built the partitions."""
        return self.rebuilt is None


def repair_metadata_table(
    path: str,
    options: Mapping[str, str],
    engine: Engine,
    *,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> MetadataRepair:
    """Rebuild a table's metadata table, with its partitions, from all files.

    The one in use stays until the new one is complete and lists every file that the writes of the
    timeline name. The timeline and the format's metadata stay as they are. What dead writers left
    pending is left to the next write; their files are not listed. A repair that died once the new
    one was complete is finished by the next write, or by the next repair.

    With ``dry_run`` all is read and compared the same, without a lock and without writing.
    ``progress`` starts anew in each step, for files or folders. Where folders do not show a file
    that a write names, or a data file cannot be read, the one in use stays. A commit whose
    completed file is lost is refused, as its files would not be listed.
    """

    def opened() -> OpenTable:
        return _counted(open_table(path, options).on(engine), engine, progress)

    if dry_run:
        return _rebuilt(opened(), dry_run=True)
    config = WriteConfig.from_options(options)
    lock = table_lock(open_table(path, options), config)
    with lock.held_by_service():
        recover_properties(open_table(path, options).client.storage)
        table = opened()
        require_recoverable(table.client)
        _require_metadata(table)
        refuse_other_writers(table, config)
        table = opened()
        client = table.client.seeing(table.client.timeline())
        if StoredPartitions.of(client.config).is_rebuilding:
            done = put_in_place(client, lock.require_lease)
            if done is not None:
                return MetadataRepair(path, StoredPartitions.of(done.config).complete, None)
        repair = _rebuilt(table, dry_run=False)
        put_in_place(client.as_stored(), lock.require_lease)
        return repair


def _rebuilt(table: OpenTable, *, dry_run: bool) -> MetadataRepair:
    _require_metadata(table)
    client = table.client
    timeline = client.timeline()
    for lost in lost_completions(table, timeline):
        raise table.lost(lost.instant, lost.evidence)
    config = MetadataConfig.from_options(client.options)
    client = _with_partitions(client.seeing(timeline), config, dry_run=dry_run)
    rebuilt = rebuild_beside(client, config, dry_run=dry_run)
    return MetadataRepair(client.base_path, tuple(sorted(rebuilt.records)), rebuilt)


def _with_partitions(
    client: TableMetaClient, config: MetadataConfig, *, dry_run: bool
) -> TableMetaClient:
    """The table with partitions to rebuild, where another engine dropped all.

    They are those of a new table under the options.
    """
    if StoredPartitions.of(client.config).all:
        return client
    names = ",".join(sorted(one.name for one in enabled_partitions(config, client.config)))
    announced = {ManagedKeys.metadata_partitions_inflight.key: names}
    if dry_run:
        return client.with_properties({**client.config.raw, **announced})
    return client.with_properties(update_properties(client.storage, announced))


def _require_metadata(table: OpenTable) -> None:
    client = table.client
    require_readable(client)
    if client.files.is_plain and not StoredPartitions.of(client.config).all:
        raise TableServiceError(
            f"The table at {client.base_path} has no metadata table in {METADATA_FOLDER}",
            "Run `hudi metadata create PATH` to make one.",
        )


def _counted(table: OpenTable, engine: Engine, progress: Progress) -> OpenTable:
    # one job for all of a step is what executors are for
    at_a_time = FILES_AT_A_TIME if engine.tasks_here else sys.maxsize
    counted = CountedMap(table.client.map_files, progress, at_a_time)
    return replace(table, client=table.client.mapping_files(counted))
