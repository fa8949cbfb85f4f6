"""Random histories whose past states are looked at after every step: ``make past``.

Cleans by every policy, purges, archives with small limits, savepoints that come and go, what
another engine's clean and archive leave, and rows that another writer of the format appends follow
each other on one table. After every step all
readers read the present state and every state that is retained, some older ones are read or refused
by name, and what changed since one of the states leads from it to the present.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Final

from tests.crash.counting_storage import Fault
from tests.crash.kinds import LOGGED_KINDS, STORED, is_possible
from tests.crash.log_acts import COMPACTING, CONDITIONAL, EVOLVING, REBUILDING, TYPES
from tests.crash.random_table import (
    BY_OTHERS,
    FOREIGN,
    LIMITED,
    PARTS,
    REPLACING,
    TIGHT,
    WRITES,
    RandomTable,
)
from tests.crash.tables import ALL_FORMATS

SEEDS: Final = (9601, 9602, 9603)
"""Those under which earlier releases showed past states without rows, and replaced rows alive."""
STEPS: Final = 2000
_KEYS: Final = 14
_DEATHS: Final = 0.02
_STEPS_OF_ONE: Final = 90
_OTHERS: Final = 3
_CHECKED: Final = 40
"""Steps between whole validations."""
_WEIGHTS: Final = {
    **dict.fromkeys(WRITES, 4),
    "upsert": 26,
    **dict.fromkeys(REPLACING, 1),
    "cluster": 5,
    "schedule": 1,
    "run": 1,
    "clean": 3,
    "archive": 2,
    **dict.fromkeys(LIMITED, 2),
    "archive, few": 5,
    **dict.fromkeys(FOREIGN, 2),
    "purge": 1,
    **dict.fromkeys(BY_OTHERS, 2),
    "savepoint": 4,
    "delete_savepoint": 4,
    "restore": 2,
    "rollback": 3,
    "reopen": 1,
}
_LOGGED: Final = {
    **_WEIGHTS,
    **dict.fromkeys(CONDITIONAL, 3),
    **dict.fromkeys(COMPACTING, 3),
    **dict(zip(TYPES, (4, 1), strict=True)),
    EVOLVING: 2,
    REBUILDING: 1,
    "upsert": 20,
}
"""Those of tables that have logs, at first."""


def options_of(seed: int) -> Mapping[str, str]:
    """Options of the table of a seed: of three, one cleans or compacts only when it is asked to."""
    options = {**TIGHT, "hoodie.cleaner.commits.retained": str(2 + seed % 3)}
    options["hoodie.compact.inline.max.delta.commits"] = "3"
    match seed % 3:
        case 0:
            return options | {"hoodie.clean.automatic": "false"}
        case 1:
            return options | {"hoodie.compact.inline": "false"}
        case _:
            return options


def run(path: Path, format_name: str, steps: int, seed: int, kind: str = STORED) -> RandomTable:
    """Let a table live through so many steps, and look at all its states after each."""
    chance = random.Random(seed)
    table = RandomTable(path, format_name, options_of(seed), kind)
    table.write("insert", range(_KEYS // 2))
    try:
        _live(table, steps, chance)
    except BaseException:
        print("\n".join(table.log), file=sys.stderr)
        raise
    return table


def _live(table: RandomTable, steps: int, chance: random.Random) -> None:
    for number in range(steps):
        step(table, chance)
        if len(table.saved) > 2:  # each holds services back
            table.delete_savepoint(0)
        known = sorted(table.past)
        table.look_back(chance.sample(known, min(_OTHERS, len(known))))
        table.follow(chance.choice(known))
        if not number % _CHECKED:
            table.check()
        for gone in known[:-100]:
            del table.past[gone]
    table.check()


def step(table: RandomTable, chance: random.Random) -> None:
    """Do one random thing to a table."""
    weights = _LOGGED if table.kind in LOGGED_KINDS else _WEIGHTS
    name = chance.choices(list(weights), list(weights.values()))[0]
    death = None
    if chance.random() < _DEATHS:
        death = Fault(chance.randrange(1, _STEPS_OF_ONE), chance.choice(("before", "torn")))
    keys = [chance.randrange(_KEYS) for _ in range(chance.randint(1, 4))]
    match name:
        case "delete_partitions":
            table.delete_partition(chance.choice(PARTS), death)
        case "savepoint":
            table.save(chance.randrange(100), death)
        case "delete_savepoint":
            table.delete_savepoint(chance.randrange(100), death)
        case "restore":
            table.restore(chance.randrange(100), death)
        case "rollback":
            table.roll_back(death)
        case "purge":
            table.purge(death)
        case _ if name in BY_OTHERS:
            table.append_by_others(name, keys, chance.randrange(2))
        case "reopen":
            table.reopen()
        case _ if name in CONDITIONAL:
            table.write_if(name, keys, death)
        case _ if name in (*WRITES, *REPLACING):
            table.write(name, keys, death)
        case _:
            table.serve(name, "linear" if name == "cluster" else "", death)


def campaign(
    formats: Sequence[str], steps: int, seeds: Sequence[int], kinds: Sequence[str] = (STORED,)
) -> Iterator[str]:
    """Run every seed in every format for every kind of table; some lines for each."""
    for kind, format_name, seed in product(kinds, formats, seeds):
        if not is_possible(kind, format_name):
            continue
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="past-") as folder:
            table = run(Path(folder) / "t", format_name, steps, seed, kind)
        seconds = time.monotonic() - started
        yield f"{kind} {format_name} seed {seed}: {steps} steps, 0 differences, {seconds:.0f} s"
        yield f"  done {dict(sorted(table.done.items()))}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(prog="make past", description=__doc__)
    parser.add_argument("--formats", nargs="+", choices=ALL_FORMATS, default=ALL_FORMATS)
    kinds = (STORED, *LOGGED_KINDS)
    parser.add_argument("--kinds", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--steps", type=int, default=STEPS // len(SEEDS) + 1, help="of each seed")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    given = parser.parse_args(arguments)
    for line in campaign(given.formats, given.steps, given.seeds, given.kinds):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
