"""Several writers and a cleaner on one table, in processes that are killed and stopped.

``make writers`` runs the campaign; a sample is a test. Each process keeps a diary: what it began,
and what it was told. In the end the table has every row that was acknowledged, none that failed,
each once, in every reader of its format.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa

import hudi_core as hudi
from hudi_core.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    ConcurrentWriterError,
    HudiError,
    LockError,
)
from tests.formats.service_tables import READERS

SCHEMA: Final = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])
FORMATS: Final = ("native", "iceberg", "delta")
SHARED: Final = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "file_system",
    "hoodie.fs.fsync": "false",
    "hoodie.client.heartbeat.interval_in_ms": "500",
    "hoodie.cleaner.commits.retained": "3",
    "hoodie.keep.min.commits": "5",
    "hoodie.keep.max.commits": "8",
    "hoodie.metadata.compact.max.delta.commits": "4",
}
_RETRIES: Final = 200
_LIMIT_S: Final = 600


@dataclass
class Told:
    """What writers were told of their rows."""

    acked: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    conflicts: int = 0


def create(path: Path, table_format: str) -> None:
    """Make the table that all write to."""
    table = hudi.Table.create(
        str(path),
        SCHEMA,
        name="shared",
        record_key="id",
        partition_by="part",
        ordering_field="ts",
        format=table_format,
        options={"hoodie.fs.fsync": "false"},
    )
    table.insert(_rows([("seed", "x", 0), ("seed2", "y", 0)]))


def work(path: str, name: str, commits: int, seed: int) -> None:
    """Write rows one commit after the other, and keep a diary of each."""
    chance = random.Random(seed)
    with Path(f"{path}.{name}.diary").open("a", buffering=1) as diary:
        for number in range(commits):
            key = f"{name}-{number}"
            part = chance.choice("xyz")
            rows = _rows([(key, part, number), (f"shared{chance.randrange(2)}", "x", number)])
            diary.write(f"began {key}\n")
            diary.write(f"{_written(path, rows)} {key}\n")


def _written(path: str, rows: pa.Table) -> str:
    for attempt in range(_RETRIES):
        try:
            hudi.Table.open(path, SHARED).upsert(rows)
        except CommitStateUnknownError:
            return "unknown"
        except (CommitConflictError, ConcurrentWriterError, LockError):
            time.sleep(0.01 * min(attempt, 10))
        except HudiError as error:
            return f"failed:{type(error).__name__}"
        else:
            return f"acked:{attempt}"
    return "failed:retries"


def tidy(path: str) -> None:
    """Clean and archive beside the writers until killed."""
    while True:
        try:
            table = hudi.Table.open(path, SHARED)
            table.clean()
            table.archive()
        except (CommitConflictError, ConcurrentWriterError, LockError, CommitStateUnknownError):
            pass
        time.sleep(0.05)


def run(path: Path, table_format: str, writers: int, commits: int, seed: int) -> Told:
    """Let writers and a cleaner work on one table; kill and stop some; check what is left."""
    chance = random.Random(seed)
    create(path, table_format)
    cleaner = _started(path, "tidy")
    names = [f"w{number}" for number in range(writers)]
    running = {
        name: _started(path, "work", name, str(commits), str(seed * 100 + number))
        for number, name in enumerate(names)
    }
    deadline = time.monotonic() + _LIMIT_S
    try:
        killed = chance.choice(names)
        while any(one.poll() is None for one in running.values()):
            assert time.monotonic() < deadline, "the writers do not come to an end"
            time.sleep(chance.uniform(0.1, 0.4))
            victim = running[chance.choice(names)]
            if killed in running and running[killed].poll() is None and chance.random() < 0.3:
                running[killed].kill()
                running[killed].wait()
                killed = ""
            elif victim.poll() is None and chance.random() < 0.5:
                victim.send_signal(signal.SIGSTOP)
                time.sleep(chance.uniform(0.05, 0.6))
                victim.send_signal(signal.SIGCONT)
    finally:
        for one in (*running.values(), cleaner):
            if one.poll() is None:
                one.kill()
            one.wait()
    time.sleep(1.1)  # what a dead one left of life
    hudi.Table.open(str(path), SHARED).upsert(_rows([("last", "y", 1)]))
    told = read_diaries(path, names)
    require_right(path, told)
    return told


def read_diaries(path: Path, names: Sequence[str]) -> Told:
    """What the writers of some names were told."""
    told = Told()
    for name in names:
        diary = Path(f"{path}.{name}.diary")
        began: set[str] = set()
        for line in diary.read_text().splitlines() if diary.exists() else ():
            word, _, key = line.partition(" ")
            kind, _, detail = word.partition(":")
            if kind == "began":
                began.add(key)
                continue
            began.discard(key)
            assert kind != "failed", f"{key}: {detail}"
            (told.acked if kind == "acked" else told.unknown).add(key)
            told.conflicts += int(detail or 0) if kind == "acked" else 0
        told.unknown |= began
    return told


def require_right(path: Path, told: Told) -> None:
    """Check rows, readers and metadata of the table."""
    table = hudi.Table.open(str(path), SHARED)
    own = sorted(table.to_arrow(columns=["id", "part", "ts"]).to_pylist(), key=repr)
    keys = [row["id"] for row in own]
    assert len(set(keys)) == len(keys), "a row is there twice"
    lost = told.acked - set(keys)
    assert not lost, f"acknowledged and lost: {sorted(lost)}"
    known = {"seed", "seed2", "last", "shared0", "shared1"}
    unexpected = set(keys) - told.acked - told.unknown - known
    assert not unexpected, f"not acknowledged and there: {sorted(unexpected)}"
    for read in READERS[table.format]:
        theirs = read(path).select(["id", "part", "ts"]).to_pylist()
        assert sorted(theirs, key=repr) == own, read.__name__
    assert table.validate().differences == ()


def _rows(rows: Sequence[tuple[str, str, int]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def _started(path: Path, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.crash.many_writers", "--path", str(path), *words]
    return subprocess.Popen(command, env={**os.environ, "PYTHONWARNINGS": "ignore"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign, or one of its processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--commits", type=int, default=50)
    parser.add_argument("--formats", nargs="+", default=FORMATS)
    parser.add_argument("words", nargs="*")
    options = parser.parse_args(arguments)
    match options.words:
        case ["work", name, commits, seed]:
            work(options.path, name, int(commits), int(seed))
        case ["tidy"]:
            tidy(options.path)
        case _:
            for line in campaign(vars(options)):
                print(line, flush=True)
    return 0


def campaign(options: Mapping[str, object]) -> Iterator[str]:
    """Run every seed in every format; one line for each."""
    formats, seeds = options["formats"], options["seeds"]
    writers, commits = options["writers"], options["commits"]
    assert isinstance(formats, list | tuple)
    assert isinstance(seeds, int)
    assert isinstance(writers, int)
    assert isinstance(commits, int)
    for table_format in formats:
        for seed in range(seeds):
            started = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="writers-") as folder:
                told = run(Path(folder) / "t", table_format, writers, commits, seed)
            yield (
                f"{table_format} seed {seed}: {len(told.acked)} acknowledged, "
                f"{len(told.unknown)} unknown, {told.conflicts} conflicts, "
                f"{time.monotonic() - started:.0f} s"
            )


if __name__ == "__main__":
    sys.exit(main())
