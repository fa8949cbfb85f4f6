"""Hundreds of random commits on one table, with all services and deaths: ``make commits``.

After every step this project's reader sees the rows of a dictionary; at every savepoint and at the
end all readers of the format do, and every retained state is read. Meanwhile the table stays small.
Prints what was done to the table of each kind, format and seed, and its sizes.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Final

from tests.crash.counting_storage import Fault
from tests.crash.kinds import KINDS, LOGGED_KINDS, STORED, is_possible
from tests.crash.log_acts import COMPACTING, CONDITIONAL, EVOLVING, REBUILDING, SERVING, TYPES
from tests.crash.random_table import (
    FOREIGN,
    LIMITED,
    PARTS,
    REPLACING,
    SERVICES,
    SMALL_FILES,
    TIGHT,
    WRITES,
    WRITES_WIN,
    RandomTable,
)
from tests.crash.tables import ALL_FORMATS

KEYS: Final = 60
DEATHS: Final = 0.06
"""How many of the steps end with the death of who does them."""
_STEPS_OF_ONE: Final = 90
_OF_METADATA: Final = 40
"""Instants that the metadata table may have beyond those of the table: its own
``hoodie.metadata.keep.max.commits``, and some of its cleans and compactions."""
_WEIGHTS: Final = {
    **dict.fromkeys(WRITES, 8),
    "upsert": 40,
    **dict.fromkeys(REPLACING, 1),
    **dict.fromkeys(SERVICES, 1),
    **dict.fromkeys((*LIMITED, *FOREIGN), 0.3),
    "purge": 0.3,
    "run": 6,
    "savepoint": 2,
    "delete_savepoint": 2,
    "restore": 1,
    "convert": 0.3,
    "rollback": 2,
    "reopen": 2,
}
_LOGGED: Final = {
    **_WEIGHTS,
    **dict.fromkeys(CONDITIONAL, 4),
    **dict.fromkeys((*COMPACTING, EVOLVING), 2),
    **dict(zip((*TYPES, REBUILDING), (2, 0.5, 0.5), strict=True)),
}
"""Those of tables that have logs, at first."""


@dataclass
class Bounds:
    """How large a table may be at most, and was.

    ``looks``: live files and instants that could not be passed, of the table and of its metadata
    table, at each look at the table. ``largest``: the most that there was of each kind.
    """

    table: RandomTable
    looks: list[tuple[int, int, int]] = field(default_factory=list)
    largest: Counter[str] = field(default_factory=Counter)

    def look(self) -> None:
        """Require that the table is small, and remember how small."""
        sizes = self.table.sizes()
        self.looks.append((sizes.live, *self.table.held_back()))
        recent = self.looks[-4 * self.table.retained :]  # not every state is looked at
        live, held, recorded = (max(each) for each in zip(*recent, strict=True))
        most = self.table.kept + 10
        assert sizes.active <= most + held, f"{sizes.active} active instants, {most + held} at most"
        # a deltacommit stays on the timeline of the metadata table as long as its instant may not
        # leave the table's; so do the compaction that every few of them bring, and its clean
        most += _OF_METADATA + recorded + 2 * (recorded // self.table.deltas)
        assert sizes.of_metadata <= most, f"{sizes.of_metadata} of metadata, {most} at most"
        most = live * (self.table.retained + 1 + held)
        assert sizes.data_files <= most, f"{sizes.data_files} data files, {most} at most"
        found = {**asdict(sizes), "held back": held}
        self.largest |= Counter(found)


def run(
    path: Path,
    format_name: str,
    commits: int,
    seed: int,
    options: Mapping[str, str],
    kind: str = STORED,
) -> Bounds:
    """Let a table live through random steps until so many of its commits are acknowledged."""
    chance = random.Random(seed)
    table = RandomTable(path, format_name, options, kind)
    bounds = Bounds(table)
    table.write("insert", range(KEYS // 2))
    bounds.look()
    while sum(table.done[name] for name in (*WRITES, *REPLACING)) < commits:
        step(table, chance)
        if len(table.saved) > 1:  # each holds services back
            table.delete_savepoint(0)
        if len(table.possible) == 1:
            bounds.look()
    table.check()
    return bounds


def step(table: RandomTable, chance: random.Random) -> None:
    """Do one random thing to a table."""
    weights = _LOGGED if table.kind in LOGGED_KINDS else _WEIGHTS
    name = chance.choices(list(weights), list(weights.values()))[0]
    death = None
    if chance.random() < DEATHS:
        death = Fault(chance.randrange(1, _STEPS_OF_ONE), chance.choice(("before", "torn")))
    keys = [chance.randrange(KEYS) for _ in range(chance.randint(1, 8))]
    match name:
        case "delete_partitions":
            table.delete_partition(chance.choice(PARTS), death)
        case "cluster":
            table.serve(name, chance.choice(("linear", "z-order", "hilbert")), death)
        case "savepoint":
            table.save(chance.randrange(100), death)
            table.check()
        case "delete_savepoint":
            table.delete_savepoint(chance.randrange(100), death)
        case "restore":
            table.restore(chance.randrange(100), death)
        case "rollback":
            table.roll_back(death)
        case "convert":
            table.convert(chance.choice(ALL_FORMATS), death)
        case "purge":
            table.purge(death)
        case "reopen":
            table.reopen()
        case _ if name in CONDITIONAL:
            table.write_if(name, keys, death)
        case _ if name in (*SERVICES, *LIMITED, *FOREIGN, *SERVING):
            table.serve(name, "", death)
        case _:
            table.write(name, keys, death)


def campaign(
    formats: Sequence[str],
    commits: int,
    seeds: Iterable[int],
    *,
    is_tight: bool = False,
    kinds: Sequence[str] = (STORED,),
) -> Iterator[str]:
    """Run every seed in every format for every kind of table; some lines for each."""
    for kind, format_name, seed in product(kinds, formats, seeds):
        if not is_possible(kind, format_name):
            continue
        started = time.monotonic()
        options = dict(TIGHT if is_tight else SMALL_FILES)
        if seed % 2:
            options |= WRITES_WIN
        with tempfile.TemporaryDirectory(prefix="commits-") as folder:
            bounds = run(Path(folder) / "t", format_name, commits, seed, options, kind)
        yield f"{kind} {format_name} seed {seed}: {time.monotonic() - started:.0f} s"
        yield f"  at most {dict(bounds.largest)}"
        yield f"  done {dict(sorted(bounds.table.done.items()))}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(prog="make commits", description=__doc__)
    parser.add_argument("--formats", nargs="+", choices=ALL_FORMATS, default=ALL_FORMATS)
    parser.add_argument("--kinds", nargs="+", choices=(*KINDS, *LOGGED_KINDS), default=(STORED,))
    parser.add_argument("--commits", type=int, default=500)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--tight", action="store_true", help="have services come often")
    given = parser.parse_args(arguments)
    lines = campaign(
        given.formats, given.commits, given.seeds, is_tight=given.tight, kinds=given.kinds
    )
    for line in lines:
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
