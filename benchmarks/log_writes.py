"""Measure updates that go into log files, beside deltalake's merge and rewrites, and compactions.

``make bench-log-writes`` runs it; ``README.md`` says what is measured and how, and holds the
results.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
from delta_peer import Delta
from metadata_timing import Timing, say
from run_of_cases import Compared, main
from targets import TARGET_ROWS, Target
from workload import KEY, ORDERING, PARTITION, Batch, Change, Source, make_base, make_upsert

import hudi_core as hudi

INDEXED, SIMPLE = "logs, record index", "logs, simple index"
REWRITTEN, DELTALAKE = "files rewritten", "deltalake"
UPDATE, UPDATE_ORDERED, UPSERT = "update_1", "update_1-ordered", "upsert_1"
TEN, COMPACTION = "ten-upserts", "compaction"
UPDATES: Final = (UPDATE, UPDATE_ORDERED, UPSERT)
SPLIT, DEAD = "split_1", "read-dead"
FORMATS: Final[Mapping[str, str]] = {
    "split-native": "native",
    "split-iceberg": "iceberg",
    "split-delta": "delta",
}
"""Formats of tables whose rows are deleted by position."""
BY_LOGS, CLUSTERED = "dead rows", "clustered"
CASES: Final = (*UPDATES, TEN, COMPACTION, SPLIT, DEAD)
SHARE: Final = 100
"""One row of so many gets a new version."""
BATCHES: Final = 10
TARGETS: Final = (
    *(
        Target(case, variant, DELTALAKE, None if case == UPSERT else allowed)
        for case in UPDATES
        for variant, allowed in ((INDEXED, 0.20), (SIMPLE, 0.12))
    ),
    Target(TEN, SIMPLE, REWRITTEN, 0.6),
    Target(COMPACTION, SIMPLE, REWRITTEN, 1.1),
    *(
        Target(SPLIT, one, DELTALAKE, 0.20 if name == "native" else 0.25)
        for one, name in FORMATS.items()
    ),
    Target(DEAD, BY_LOGS, CLUSTERED, 1.2),
)
_INDEX: Final[Mapping[str, str]] = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.record.index.enable": "true",
}
_NO_METADATA: Final[Mapping[str, str]] = {"hoodie.metadata.enable": "false"}
_NO_SERVICES: Final[Mapping[str, str]] = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
_WAITS: Final[Mapping[str, str]] = {"hoodie.compact.inline": "false"}
_SPLIT: Final[Mapping[str, str]] = {"hoodie.table.merge-on-read.mode": "split"}


class Found(Compared):
    """A finished run."""

    measures = ("ratio", "work")

    def circumstances(self) -> str:
        return self.text(("hudi-core", "deltalake", "pyarrow"))

    def targets(self) -> list[tuple[Target, float | None, float | None]]:
        """The targets of the cases that were run, with the ratios by the clock and of work."""
        clock = {(one.case, one.variant): one.median for one in self.timings}
        work = {(one.case, one.variant): one.median_work for one in self.timings}
        run = {case for case, _ in clock}
        return [(one, one.ratio(clock), one.ratio(work)) for one in TARGETS if one.case in run]


@dataclass(frozen=True)
class Peer:
    """A table that is loaded once; what is measured is done to copies of it."""

    table: Path
    act: Callable[[Path], object]


def run(folder: Path, cases: Sequence[str], scale: float, repeats: int) -> Found:
    """Run cases, each on copies of tables of the same rows."""
    found = Found(scale)
    source = Source("base", max(4000, round(TARGET_ROWS * scale)))
    base = make_base(folder / "rows", source)
    for case in cases:
        found.loads.append(os.getloadavg()[0])
        inserts = 0.05 if case in (UPSERT, TEN) else 0.0
        count = BATCHES if case == TEN else 1
        changed = source.rows // (10 if case == DEAD else SHARE)
        batches = [
            make_upsert(
                folder / f"{case}-{number}", source, Change(changed + number, None, inserts)
            )
            for number in range(count)
        ]
        peers = _peers(folder / f"{case}-tables", case, base, batches)
        (folder / f"{case}-loaded").mkdir()
        found.timings += _measured(case, peers, folder / f"{case}-loaded", repeats)
    return found


def _measured(case: str, peers: Mapping[str, Peer], folder: Path, repeats: int) -> list[Timing]:
    timings = {name: Timing(case, name) for name in peers}
    names = list(peers)
    # an Iceberg table is where it was made
    loaded = {name: one.table.rename(folder / name) for name, one in peers.items()}
    for number in range(repeats + 1):
        start = number % len(names)
        for name in names[start:] + names[:start]:
            peer = peers[name]
            # no writer changes a file that is there, so that copies can share them
            shutil.copytree(loaded[name], peer.table, copy_function=os.link)
            timing = timings[name] if number else Timing(case, name)
            timing.call(partial(_done, peer, peer.table), flush=True)
            shutil.rmtree(peer.table)
    for one in timings.values():
        say(f"{case:16} {one.variant:24} {one.median:8.4f} s")
    return list(timings.values())


def _done(peer: Peer, table: Path) -> int:
    peer.act(table)
    return 1


def _peers(folder: Path, case: str, base: Batch, batches: Sequence[Batch]) -> dict[str, Peer]:
    given = [one.read() for one in batches]
    loaded = partial(_loaded, folder, base, is_ordered=case not in (UPDATE, SPLIT))
    if case in (SPLIT, DEAD):
        return _split_peers(folder, case, base, batches[0], loaded)
    simple = loaded(SIMPLE, {**_NO_METADATA, **_NO_SERVICES})
    if case == COMPACTION:
        rewritten = loaded(REWRITTEN, {**_NO_METADATA, **_NO_SERVICES}, "COPY_ON_WRITE")
        hudi.Table.open(simple, {**_NO_METADATA, **_WAITS}).upsert(given[0])
        return {
            SIMPLE: Peer(simple, lambda table: hudi.Table.open(table, _NO_METADATA).compact()),
            REWRITTEN: Peer(rewritten, partial(_upserted, given, _NO_METADATA)),
        }
    if case == TEN:
        rewritten = loaded(REWRITTEN, {**_NO_METADATA, **_NO_SERVICES}, "COPY_ON_WRITE")
        return {
            SIMPLE: Peer(simple, partial(_upserted, given, _NO_METADATA)),
            REWRITTEN: Peer(rewritten, partial(_upserted, given, _NO_METADATA)),
        }
    indexed = loaded(INDEXED, {**_INDEX, **_NO_SERVICES})
    delta = Delta()
    delta.load(base, folder / DELTALAKE)
    return {
        INDEXED: Peer(indexed, partial(_upserted, given, {**_INDEX, **_WAITS})),
        SIMPLE: Peer(simple, partial(_upserted, given, {**_NO_METADATA, **_WAITS})),
        DELTALAKE: Peer(folder / DELTALAKE, lambda table: delta.upsert(batches[0], table)),
    }


def _split_peers(
    folder: Path, case: str, base: Batch, changed: Batch, loaded: Callable[..., Path]
) -> dict[str, Peer]:
    """Tables that delete rows by position, beside what each is measured against."""
    given, options = [changed.read()], {**_INDEX, **_WAITS}
    if case == DEAD:
        paths = [
            loaded(name, {**_INDEX, **_NO_SERVICES, **_SPLIT}) for name in (BY_LOGS, CLUSTERED)
        ]
        for path in paths:
            _upserted(given, options, path)
        hudi.Table.open(paths[1]).compact()
        hudi.Table.open(paths[1]).optimize()
        return {
            name: Peer(path, lambda table: hudi.Table.open(table).to_arrow())
            for name, path in zip((BY_LOGS, CLUSTERED), paths, strict=True)
        }
    delta = Delta()
    delta.load(base, folder / DELTALAKE)
    return {
        **{
            name: Peer(
                loaded(name, {**_INDEX, **_NO_SERVICES, **_SPLIT}, table_format=table_format),
                partial(_upserted, given, options),
            )
            for name, table_format in FORMATS.items()
        },
        DELTALAKE: Peer(folder / DELTALAKE, lambda table: delta.upsert(changed, table)),
    }


def _upserted(given: Sequence[pa.Table], options: Mapping[str, str], table: Path) -> None:
    # a table keeps neither its index nor that it has no metadata table: they are options of a write
    opened = hudi.Table.open(table, options)
    for rows in given:
        opened.upsert(rows)


def _loaded(
    folder: Path,
    base: Batch,
    name: str,
    options: Mapping[str, str],
    table_type: str = "MERGE_ON_READ",
    *,
    is_ordered: bool,
    table_format: str = "native",
) -> Path:
    rows = base.read()
    table = hudi.Table.create(
        folder / name,
        rows.schema,
        name="trips",
        format=table_format,
        record_key=KEY,
        partition_by=PARTITION,
        ordering_field=ORDERING if is_ordered else None,
        table_type=table_type,
        options=options,
    )
    table.bulk_insert(rows)
    return folder / name


if __name__ == "__main__":
    sys.exit(main(__doc__, "log-writes", CASES, 5, run))
