"""Several writers and table services on one table, in processes that are killed and stopped.

``make writers`` runs the campaign; a sample is a test. Each process keeps a diary: what it began,
and how each commit was answered. In the end the table has every row that was acknowledged, none
that failed, each once, in every reader of its format. A reader beside them finds each row from its
acknowledgement on, and past states that stay as they were.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa

import hudi_core as hudi
from hudi_core.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    ConcurrentWriterError,
    HistoryExpiredError,
    HudiError,
    IncompleteCommitError,
    LockError,
)
from hudi_core.model.instant import WRITE_ACTIONS, Action
from tests.crash.kinds import LOGGED, SPLIT, creation_options
from tests.crash.place import LocalPlace, Place, S3Place
from tests.crash.readers import Row, as_tuples, by_hudi_rs, foreign_readers
from tests.crash.s3_campaign import S3_FORMATS
from tests.crash.s3_service import BUCKET, REGION, S3Service, s3_service
from tests.tables import FORMATS as LOCAL_FORMATS
from tests.tables import SCHEMA, new_table

_SPLIT_FORMATS: Final = tuple(f"{SPLIT} {name}" for name in (*LOCAL_FORMATS, "iceberg,delta"))
_MERGED: Final = (LOGGED, *_SPLIT_FORMATS)
ALL_FORMATS: Final = (
    *LOCAL_FORMATS,
    *_MERGED,
    *S3_FORMATS,
    *(f"{name}@s3" for name in _MERGED),
)
"""Formats, one of the native tables that have logs, and split tables; all in a store of S3's
protocol, too."""
SHARED: Final = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.fs.fsync": "false",
    "hoodie.client.heartbeat.interval_in_ms": "500",
    "hoodie.cleaner.commits.retained": "3",
    "hoodie.keep.min.commits": "5",
    "hoodie.keep.max.commits": "8",
    "hoodie.metadata.compact.max.delta.commits": "4",
    "hoodie.compact.inline": "false",
}
_LOCKS: Final = {
    LocalPlace: {"hoodie.write.lock.provider": "file_system"},
    S3Place: {
        "hoodie.write.lock.provider": "storage",
        # a lock of a dead one is free after so long
        "hoodie.write.lock.storage.validity.timeout.secs": "10",
        "hoodie.write.lock.storage.renew.interval.secs": "1",
    },
}
_SERVED: Final = (Action.CLEAN, Action.REPLACECOMMIT)
_BESIDE: Final = ("tidy", "look")
_OF_LOGS: Final = "compact"
_CONFLICTS: Final = (
    CommitConflictError,
    ConcurrentWriterError,
    LockError,
    # who was stopped for longer than a heartbeat lasts was taken for dead, and rolled back
    IncompleteCommitError,
)
_RETRIES: Final = 200
_SHORT_S: Final = (0.05, 0.6)
_LONG_S: Final = (1.2, 2.5)
"""How long a process is stopped; the longer ones outlast its heartbeat."""
_REMEMBERED: Final = 6
"""How many past states a reader compares."""
_PATIENCE_S: Final = 240
"""How long no commit may be answered."""


@dataclass
class Answers:
    """What writers were answered about their rows.

    ``acked``, ``unknown``: keys that only one writer writes. ``newest``: by key that all write, the
    newest acknowledged ordering value. ``conflicts``: how often a write was made again. ``looks``:
    how often a reader found a past state as it was before.
    """

    acked: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    newest: dict[str, int] = field(default_factory=dict)
    conflicts: int = 0
    looks: int = 0


@dataclass(frozen=True)
class Shared:
    """A table that many write to.

    ``place``: where it is. ``diaries``: prefix of the paths of the writers' diaries. ``options``:
    what they agree on besides; by default the lock that suits the place.
    """

    place: Place
    diaries: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def at(cls, folder: Path, store: S3Service | None = None) -> Shared:
        """A table in a folder, or in a store."""
        if store is None:
            return cls(LocalPlace(folder / "t"), str(folder / "writer"))
        place = S3Place(f"s3://{BUCKET}/{folder.name}", store.endpoint, "writers", "secret", REGION)
        return cls(place, str(folder / "writer"))

    @classmethod
    def of(cls, words: str) -> Shared:
        """The table that :attr:`words` name."""
        given = json.loads(words)
        place = given.pop("place")
        if "path" in place:
            return cls(LocalPlace(Path(place["path"])), **given)
        return cls(S3Place(**place), **given)

    @property
    def words(self) -> str:
        """What another process is given to find it."""
        place = self.place
        found = {"path": place.root} if isinstance(place, LocalPlace) else vars(place)
        return json.dumps({"place": found, "diaries": self.diaries, "options": dict(self.options)})

    def open(self) -> hudi.Table:
        """Open it, as one of many."""
        return self.place.open({**SHARED, **(self.options or _LOCKS[type(self.place)])})

    def create(self, table_format: str) -> None:
        """Make it."""
        given = self.place.given if isinstance(self.place, S3Place) else {}
        kind, _, of = table_format.partition(" ")
        if kind in (LOGGED, SPLIT):
            given, table_format = {**given, **creation_options(kind, Path())}, of or "native"
        table = new_table(
            self.place.root, SCHEMA, {"hoodie.fs.fsync": "false", **given}, format=table_format
        )
        table.insert(_rows([("seed", "x", 0), ("seed2", "y", 0)]))

    def diary(self, name: str) -> Path:
        """The diary of a writer."""
        return Path(f"{self.diaries}.{name}.diary")


def work(table: Shared, name: str, commits: int, seed: int) -> None:
    """Write rows one commit after the other, and keep a diary of each."""
    chance = random.Random(seed)
    with table.diary(name).open("a", buffering=1) as diary:
        for number in range(commits):
            key, shared = f"{name}-{number}", f"shared{chance.randrange(2)}"
            part = chance.choice("xyz")
            rows = _rows([(key, part, number), (shared, "x", number)])
            diary.write(f"began {key} {shared} {number}\n")
            diary.write(f"{_written(table, rows)} {key} {shared} {number}\n")


def _written(table: Shared, rows: pa.Table) -> str:
    for attempt in range(_RETRIES):
        try:
            table.open().upsert(rows)
        except CommitStateUnknownError:
            return "unknown"
        except _CONFLICTS:
            time.sleep(0.01 * min(attempt, 10))
        except HudiError as error:
            traceback.print_exc()
            return f"failed:{type(error).__name__}"
        else:
            return f"acked:{attempt}"
    return "failed:retries"


def tidy(shared: Shared) -> None:
    """Clean, archive and cluster beside the writers until killed."""
    while True:
        for serve in (hudi.Table.clean, hudi.Table.archive, hudi.Table.optimize):
            with suppress(*_CONFLICTS, CommitStateUnknownError):
                serve(shared.open())
        time.sleep(0.05)


def compact(shared: Shared) -> None:
    """Compact beside the writers until killed, in one step and in two."""
    chance = random.Random(os.getpid())
    while True:
        with suppress(*_CONFLICTS, CommitStateUnknownError):
            shared.open().compact(schedule_only=True)
            time.sleep(chance.uniform(0.2, 3))  # what is written meanwhile stays where it was
            shared.open().run_compactions()
            shared.open().compact()
        time.sleep(0.2)


def look(shared: Shared) -> None:
    """Read beside the writers until killed, now and as of times, and keep a diary of each look."""
    known: dict[str, frozenset[Row]] = {}
    with shared.diary("look").open("a", buffering=1) as diary:
        while True:
            acked = _acknowledged(shared)
            try:
                table = shared.open()
                lost = acked - {key for key, *_ in as_tuples(table.to_arrow())}
                diary.write(f"lost {sorted(lost)}\n" if lost else "found\n")
                known = {**dict.fromkeys(_settled(table)[-2:], frozenset[Row]()), **known}
                known = dict(sorted(known.items())[-_REMEMBERED:])
                for time in list(known):
                    diary.write(_past_state(table, time, known))
            except HudiError:  # a clean was faster than this reader
                traceback.print_exc()


def _acknowledged(shared: Shared) -> set[str]:
    """Keys of rows whose commits are acknowledged by now."""
    prefix = Path(shared.diaries)
    lines = [
        line.split(" ")
        for diary in prefix.parent.glob(f"{prefix.name}.w*.diary")
        for line in diary.read_text().splitlines(keepends=True)
    ]
    return {line[1] for line in lines if line[0].startswith("acked") and line[-1].endswith("\n")}


def _settled(table: hudi.Table) -> list[str]:
    """Requested times of writes before which no other one is under way."""
    pending = [
        str(one.requested_time)
        for one in table.timeline.instants
        if not one.is_completed and one.action in WRITE_ACTIONS
    ]
    writes = [str(one.requested_time) for one in table.timeline.completed_writes()]
    return [one for one in writes if one < min(pending, default="9")]


def _past_state(table: hudi.Table, time: str, known: dict[str, frozenset[Row]]) -> str:
    """Line of a diary: whether a past state is what it was at the first look."""
    try:
        found = frozenset(as_tuples(table.to_arrow(as_of=time)))
    except HistoryExpiredError:
        del known[time]
        return f"expired {time}\n"
    before, known[time] = known[time] or found, found
    return f"same {time}\n" if found == before else f"other {time} {before ^ found}\n"


def run(
    table: Shared,
    table_format: str,
    writers: int,
    commits: int,
    seed: int,
    guest: Callable[[], Answers] = Answers,
) -> Answers:
    """Let writers, services and a reader work on one table; kill and stop some; check all.

    Half of the writers are killed, each after some of its commits, and the services now and then,
    which are started again. All are stopped for a while at times.

    ``guest``: one more writer, who works in a thread, and is neither killed nor stopped.
    """
    chance = random.Random(seed)
    table.create(table_format)
    others = (*_BESIDE, *((_OF_LOGS,) if table_format in _MERGED else ()))
    beside = {name: _started(table, name) for name in others}
    names = [f"w{number}" for number in range(writers)]
    running = {
        name: _started(table, "work", name, str(commits), str(seed * 100 + number))
        for number, name in enumerate(names)
    }
    # amid their work: who has just started dies before its first commit
    doomed = {name: chance.randrange(1, commits) for name in chance.sample(names, writers // 2)}
    progress, deadline = 0, time.monotonic() + _PATIENCE_S
    pool = ThreadPoolExecutor(1)
    guests = pool.submit(guest)
    try:
        while not guests.done() or any(one.poll() is None for one in running.values()):
            before, progress = progress, sum(_answered(table, name) for name in names)
            if progress != before:
                deadline = time.monotonic() + _PATIENCE_S
            assert time.monotonic() < deadline, "no commit is answered any more"
            ended = [name for name, one in beside.items() if one.poll() is not None]
            assert not ended, f"{ended} ended by themselves"
            time.sleep(chance.uniform(0.02, 0.2))
            for name in [one for one, after in doomed.items() if _answered(table, one) >= after]:
                time.sleep(chance.uniform(0, 0.1))
                _kill(running[name])
                del doomed[name]
            victim = running[chance.choice(names)]
            if victim.poll() is None and chance.random() < 0.3:
                victim.send_signal(signal.SIGSTOP)
                time.sleep(chance.uniform(*(_LONG_S if chance.random() < 0.1 else _SHORT_S)))
                victim.send_signal(signal.SIGCONT)
            if chance.random() < 0.02 * len(beside):
                name = chance.choice([one for one in beside if one != "look"])
                _kill(beside[name])
                beside[name] = _started(table, name)
    finally:
        for one in (*running.values(), *beside.values()):
            _kill(one)
        pool.shutdown()
    served = [one for one in table.open().timeline.instants if one.action in _SERVED]
    assert served or commits < 20, "the services did nothing"
    beat_ms = int({**SHARED, **table.options}["hoodie.client.heartbeat.interval_in_ms"])
    time.sleep(2.2 * beat_ms / 1000)  # until the heartbeat of a dead one has expired
    table.open().upsert(_rows([("last", "y", 1)]))
    answers = read_diaries(table, names)
    answers.acked |= guests.result().acked
    require_right(table, answers)
    answers.looks = require_stable(table)
    return answers


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()


def _answered(table: Shared, name: str) -> int:
    """How many commits of a writer were answered."""
    diary = table.diary(name)
    lines = diary.read_text().splitlines() if diary.exists() else ()
    return sum(not line.startswith("began") for line in lines)


def read_diaries(table: Shared, names: Sequence[str]) -> Answers:
    """How the writers of some names were answered."""
    answers = Answers()
    for name in names:
        diary = table.diary(name)
        began: set[str] = set()
        for line in diary.read_text().splitlines() if diary.exists() else ():
            word, key, shared, number = line.split(" ")
            kind, _, detail = word.partition(":")
            if kind == "began":
                began.add(key)
                continue
            began.discard(key)
            assert kind != "failed", f"{key}: {detail}"
            if kind == "acked":
                answers.acked.add(key)
                answers.conflicts += int(detail)
                answers.newest[shared] = max(answers.newest.get(shared, 0), int(number))
            else:
                answers.unknown.add(key)
        answers.unknown |= began
    return answers


def require_stable(shared: Shared) -> int:
    """Check what the reader has found; return how often it found a past state again."""
    diary = shared.diary("look")
    lines = diary.read_text().splitlines() if diary.exists() else ()
    wrong = [one for one in lines if one.startswith(("lost", "other"))]
    assert not wrong, f"a reader found: {wrong}"
    return sum(one.startswith("same") for one in lines)


def require_right(shared: Shared, answers: Answers) -> None:
    """Check rows, readers and metadata of the table."""
    table = shared.open()
    own = sorted(as_tuples(table.to_arrow()))
    keys = [key for key, *_ in own]
    assert len(set(keys)) == len(keys), "a row is there twice"
    lost = answers.acked - set(keys)
    assert not lost, f"acknowledged and lost: {sorted(lost)}"
    known = {"seed", "seed2", "last", "shared0", "shared1"}
    ordering = {key: ts for key, _, ts in own}
    late = {key for key, ts in answers.newest.items() if ordering.get(key, -1) < ts}
    assert not late, f"acknowledged updates are lost: {sorted(late)}"
    unexpected = set(keys) - answers.acked - answers.unknown - known
    assert not unexpected, f"not acknowledged and there: {sorted(unexpected)}"
    assert sorted(by_hudi_rs(shared.place)) == own, "hudi-rs"
    for name, foreign in foreign_readers(shared.place, table.format).items():
        assert sorted(foreign.by_path()) == own, name
    assert table.validate().differences == ()


def _rows(rows: Sequence[tuple[str, str, int]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def _started(table: Shared, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.crash.many_writers", "--table", table.words, *words]
    return subprocess.Popen(command, env={**os.environ, "PYTHONWARNINGS": "ignore"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign, or one of its processes."""
    parser = argparse.ArgumentParser(prog="make writers", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--commits", type=int, default=50)
    parser.add_argument("--formats", nargs="+", choices=ALL_FORMATS, default=ALL_FORMATS)
    parser.add_argument("--table", help=argparse.SUPPRESS)
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    match given.words:
        case ["work", name, commits, seed]:
            work(Shared.of(given.table), name, int(commits), int(seed))
        case ["tidy" | "compact" | "look" as name]:
            {"tidy": tidy, "compact": compact, "look": look}[name](Shared.of(given.table))
        case _:
            for line in campaign(given.formats, given.seeds, given.writers, given.commits):
                print(line, flush=True)
    return 0


def campaign(formats: Sequence[str], seeds: int, writers: int, commits: int) -> Iterator[str]:
    """Run every seed in every format; one line for each.

    Formats that end in ``@s3`` are of tables in a store of S3's protocol.
    """
    with ExitStack() as running:
        store = None
        for table_format in formats:
            name, _, where = table_format.partition("@")
            if where and store is None:
                store = running.enter_context(s3_service())
            for seed in range(seeds):
                started = time.monotonic()
                with tempfile.TemporaryDirectory(prefix="writers-") as folder:
                    table = Shared.at(Path(folder), store if where else None)
                    answers = run(table, name, writers, commits, seed)
                yield (
                    f"{table_format} seed {seed}: {len(answers.acked)} acknowledged, "
                    f"{len(answers.unknown)} unknown, {answers.conflicts} conflicts, "
                    f"{answers.looks} past states read again, "
                    f"{time.monotonic() - started:.0f} s"
                )


if __name__ == "__main__":
    sys.exit(main())
