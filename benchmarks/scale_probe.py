"""One step on a large table in a process of its own; see :mod:`scale`.

Usage: ``scale_probe.py STEP REPEATS SMALL_TABLE TABLE``; prints one line of JSON. The step is taken
on the small table before: what a first call loads is not counted. What earlier calls of this
process decoded or kept of files is forgotten before each repeat.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from memory_probe import resident
from scale_table import (
    CLOCK,
    CLOCKS_A_FILE,
    DAY,
    FIRST_CLOCK,
    IN_PARTITION,
    NOISE,
    QUICK,
    REAL,
    day,
    rows,
)

import hudi_core as hudi
from hudi_core.metadata.statistics.range_cache import SHARED
from hudi_core.model.instant import Action, Instant, State
from hudi_core.services.opening import open_table
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.serde import decode_commit, encode
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.conflicts import require_no_conflicts

_REQUESTS = {
    "reads": ("read", "read_range", "version"),
    "lists": ("list", "list_names", "list_folders", "head"),
    "writes": ("put", "put_if_absent", "compare_and_set", "link"),
    "deletes": ("delete", "delete_tree", "discard"),
}
_NO_COMPACTION = {"hoodie.metadata.compact.max.delta.commits": "1000"}
_MIDDLE = 500
"""A partition whose files are not there."""


class Probe:
    """One table, on which steps are taken."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._round = 0
        self._files = 0

    def open(self) -> int:
        """Open the table and look at its timeline."""
        return len(hudi.Table.open(self._path).timeline.instants) > 0

    def plan_partition(self) -> int:
        """Open, and plan to read one partition."""
        return self._planned([(DAY, "=", day(_MIDDLE % self._partitions))])

    def plan_both(self) -> int:
        """Open, and plan to read the rows of one partition with one value."""
        partition = _MIDDLE % self._partitions
        return self._planned([(DAY, "=", day(partition)), (CLOCK, "=", self._clock(partition))])

    def plan_column(self) -> int:
        """Open, and plan to read the rows with a value that one partition may have."""
        return self._planned([(CLOCK, "=", self._clock(_MIDDLE % self._partitions))])

    def plan_scattered(self) -> int:
        """Open, and plan to read a value that every partition may have, and one file does."""
        return self._planned([(NOISE, "=", FIRST_CLOCK)])

    def commit_file(self) -> int:
        """Write and read the metadata of a commit of as many files as the table has."""
        client = open_table(self._path, QUICK).client
        writes = client.timeline().completed_writes()
        metadata = client.read_commit(writes[0])
        (like, *_), *_ = metadata.partition_to_write_stats.values()
        files = int(Path(self._path, "files").read_text())
        stats = {
            day(path): tuple(
                replace(like, path=f"{day(path)}/{number:040}.parquet", partition_path=day(path))
                for number in range(IN_PARTITION)
            )
            for path in range(files // IN_PARTITION)
        }
        commit = replace(metadata, partition_to_write_stats=stats)
        _forget()
        with _measured(self._own):
            found = decode_commit(encode(commit), "commit")
        return sum(1 for _ in found.stats)

    def first_splits(self) -> int:
        """Open, and plan the first hundred splits of a scan of everything."""
        with hudi.Connector().scan(self._path) as source:
            return sum(1 for _ in islice(source, 100))

    def all_splits(self) -> int:
        """Open, and plan all splits of a scan of everything."""
        with hudi.Connector().scan(self._path) as source:
            return sum(1 for _ in source)

    def upsert(self) -> int:
        """Open, and update a row in each of twenty files in twenty partitions."""
        return self._upsert(_NO_COMPACTION)

    def compaction(self) -> int:
        """The same, and compact the metadata table, as every tenth commit does."""
        return self._upsert({"hoodie.metadata.compact.max.delta.commits": "1"})

    def _upsert(self, options: dict[str, str]) -> int:
        self._round += 1
        given = rows(REAL, 1, self._round % CLOCKS_A_FILE)
        return int(hudi.Table.open(self._path).upsert(given, options=QUICK | options).updated)

    def insert(self) -> int:
        """Open, and insert a row into each of twenty partitions."""
        self._round += 1
        given = rows(REAL, 1)
        ids = pa.array([f"{self._round:06}{number:06}" for number in range(REAL)])
        given = given.set_column(0, "id", pa.array([f"n{one.as_py()}" for one in ids]))
        table = hudi.Table.open(self._path)
        return int(table.insert(given, options=QUICK | _NO_COMPACTION).inserted)

    def clean(self) -> int:
        """Update twenty files three times, and clean what is no longer needed (measured alone)."""
        return self._service("clean", {"hoodie.clean.commits.retained": "1"})

    def archive(self) -> int:
        """Archive all but a few of the instants."""
        kept = {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "5"}
        return self._service("archive", kept | {"hoodie.clean.commits.retained": "1"})

    def conflicts(self) -> int:
        """Look for conflicts with the commits of others, up to twenty of them."""
        opened = open_table(self._path, QUICK)
        now = opened.timeline()
        writes = now.completed_writes()
        began = Timeline.of(writes[:-20])
        mine = opened.client.read_commit(writes[0])
        last = writes[-1]
        require_no_conflicts(
            opened,
            type(mine)(operation_type=mine.operation_type),
            Instant(last.requested_time, Action.COMMIT, State.INFLIGHT),
            began,
            now,
        )
        return len(writes) - len(began.completed_writes())

    def recovery(self) -> int:
        """Upsert after a writer that died: its instant is rolled back before."""
        opened = open_table(self._path, QUICK)
        timeline = opened.client.timeline()
        dead = Instant(opened.client.clock.next_time(timeline), Action.COMMIT, State.REQUESTED)
        opened.client.active.begin(dead)
        return self.upsert()

    def _service(self, name: str, options: dict[str, str]) -> int:
        for _ in range(3):
            self.upsert()
        _forget()
        table = hudi.Table.open(self._path, options=QUICK | options)
        with _measured(self._own):
            getattr(table, name)()
        return 1

    @property
    def _own(self) -> dict[str, Any]:
        found: dict[str, Any] = self.__dict__.setdefault("_measured", {})
        return found

    @property
    def _partitions(self) -> int:
        if not self._files:
            self._files = int(Path(self._path, "files").read_text())
        return self._files // IN_PARTITION

    def _clock(self, partition: int) -> int:
        return FIRST_CLOCK + partition * IN_PARTITION * CLOCKS_A_FILE

    def _planned(self, wanted: list[tuple[str, str, Any]]) -> int:
        return len(hudi.Table.open(self._path).file_slices(filter=wanted))


STEPS = {
    name: getattr(Probe, name).__doc__ or "" for name in vars(Probe) if not name.startswith("_")
}
_counts = dict.fromkeys(_REQUESTS, 0)


def _count_requests() -> None:
    """Have the storage count what is asked of it."""
    for kind, names in _REQUESTS.items():
        for name in names:
            setattr(PosixStorage, name, _counted(getattr(PosixStorage, name), kind))


def _counted(method: Callable[..., Any], kind: str) -> Callable[..., Any]:
    @wraps(method)
    def counted(*args: Any, **kwargs: Any) -> Any:
        _counts[kind] += 1
        return method(*args, **kwargs)

    return counted


def _forget() -> None:
    SHARED.clear()
    gc.collect()
    pa.default_memory_pool().release_unused()


@contextmanager
def _measured(found: dict[str, Any]) -> Iterator[None]:
    """Note what the block takes: time, requests, and how far the process grows."""
    Path("/proc/self/clear_refs").write_text("5")  # from here on the kernel restarts the peak
    _counts.update(dict.fromkeys(_counts, 0))
    before, began, worked = resident("VmRSS"), time.perf_counter(), time.process_time()
    yield
    found["seconds"] = time.perf_counter() - began
    found["work"] = time.process_time() - worked
    found["bytes"] = resident("VmHWM") - before
    found["peak"] = resident("VmHWM")
    found["requests"] = dict(_counts)


def main() -> None:
    step, repeats, small, path = sys.argv[1], int(sys.argv[2]), *sys.argv[3:5]
    _count_requests()
    getattr(Probe(small), step)()
    probe, found = Probe(path), []
    for _ in range(repeats):
        _forget()
        one: dict[str, Any] = {}
        with _measured(one):
            answer = getattr(probe, step)()
        found.append(one | probe._own | {"answer": answer})
    print(json.dumps(found))


if __name__ == "__main__":
    main()
