"""How many rows files have, without reading them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from hudi_core.base_file.footer import read_file_metadata
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView


def row_counts(
    client: TableMetaClient, timeline: TimelineView, files: Iterable[tuple[InstantTime, str]]
) -> dict[str, int]:
    """The number of rows in each of some base files, by path.

    Cost: one request for each commit that a file is from, and one for each file whose commit is
    archived or does not record it.
    """
    wanted = list(files)
    written = {time for time, _ in wanted}
    reported = {
        stat.path: stat.num_writes
        for instant in timeline.completed_writes()
        if instant.requested_time in written
        for stat in client.read_commit(instant).stats
    }
    # nought is also what a writer leaves that does not count
    uncounted = [path for _, path in wanted if not reported.get(path)]
    footers = client.map_files(partial(_rows_in, client.for_tasks), uncounted)
    counted = dict(zip(uncounted, footers, strict=True))
    return {path: reported.get(path) or counted.get(path, 0) for _, path in wanted}


def _rows_in(client: TableMetaClient, path: str) -> int:
    return int(read_file_metadata(client, path).num_rows)
