"""Histories of rows that versions of Hudi's payload classes decide about, drawn from a seed.

Every value is one of a few, so that each combination of times, deletes, nulls and unavailable
values occurs. Ordering values are never null: Apache Hudi 1.2 fails on those.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudi_core as hudi
from hudi_core.config.kinds import PayloadKind

Row = dict[str, Any]

CAPTURED = Path(__file__).parent / "unit" / "merged_by_hudi.json"

UNAVAILABLE = "__debezium_unavailable_value"
EVENTS = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.int64()),
        ("Op", pa.string()),
        ("_change_operation_type", pa.string()),
        ("_event_lsn", pa.int64()),
        ("_event_bin_file", pa.string()),
        ("_event_pos", pa.int64()),
        ("_event_seq", pa.string()),
        ("v", pa.string()),
        ("b", pa.binary()),
        ("n", pa.int32()),
        ("s", pa.struct([("ts", pa.int32()), ("note", pa.string())])),
        ("w", pa.struct([("x", pa.int32())])),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
MARKER = {"hoodie.payload.delete.field": "Op", "hoodie.payload.delete.marker": "D"}


@dataclass(frozen=True)
class Kind:
    """A kind of table that a history is written to.

    ``version``: of the table. ``payload``: its payload class. ``ordering``: its ordering fields,
    separated by commas. ``history``: which of :func:`histories` is written to it. ``marker``:
    whether it has a delete marker.
    """

    version: int
    payload: PayloadKind | None
    ordering: str | None
    history: str = "all"
    marker: bool = False

    def __str__(self) -> str:
        name = "none" if self.payload is None else self.payload.short_name
        words = (name, self.ordering or "unordered", self.history)
        return "-".join((str(self.version), *words, *(["marker"] if self.marker else [])))

    @property
    def options(self) -> dict[str, str]:
        """Options of the table, but for its name and its keys."""
        options = {"hoodie.write.table.version": str(self.version)}
        if self.payload is not None:
            options["hoodie.datasource.write.payload.class"] = self.payload.value
        if self.ordering is not None:
            options["hoodie.table.ordering.fields"] = self.ordering
        return options | (MARKER if self.marker else {})


def kinds() -> list[Kind]:
    """Return every kind of table that Apache Hudi 1.2 merges rows in without failing.

    In tables of version 8 it fails on deletes of absent keys with the payload classes of change
    data, and on binary columns with that of Postgres.
    """
    found = [Kind(9, None, ordering) for ordering in (None, "ts", "ts,_event_pos", "s.ts")]
    found.append(Kind(9, None, "s.ts,_event_pos"))
    found += [Kind(9, None, "ts", marker=True), Kind(8, None, "ts", marker=True)]
    found += [Kind(9, PayloadKind.AWS_DMS, None), Kind(9, PayloadKind.AWS_DMS, "ts")]
    found += [
        Kind(9, PayloadKind.POSTGRES_DEBEZIUM, None),
        Kind(9, PayloadKind.MYSQL_DEBEZIUM, None),
    ]
    for version in (8, 9):
        for payload in (
            PayloadKind.DEFAULT,
            PayloadKind.EVENT_TIME,
            PayloadKind.LATEST,
            PayloadKind.NON_DEFAULTS,
        ):
            found += [Kind(version, payload, "ts"), Kind(version, payload, None)]
    found += [
        Kind(9, PayloadKind.PARTIAL_UPDATE, ordering) for ordering in ("ts", "ts,_event_pos", None)
    ]
    found += [Kind(8, None, "ts,_event_pos"), Kind(8, None, "s.ts")]
    found += [
        Kind(8, PayloadKind.PARTIAL_UPDATE, None),
        Kind(8, PayloadKind.PARTIAL_UPDATE, "ts", "living"),
    ]
    found += [Kind(8, PayloadKind.PARTIAL_UPDATE, "ts", "once")]
    found += [Kind(8, PayloadKind.AWS_DMS, ordering, "two") for ordering in (None, "ts")]
    found += [Kind(8, PayloadKind.MYSQL_DEBEZIUM, "_event_seq", "two")]
    found += [Kind(8, PayloadKind.POSTGRES_DEBEZIUM, "_event_lsn", "simple")]
    return found


def histories(seed: int, keys: int) -> dict[str, list[pa.Table]]:
    """Return batches of rows by the name of the history.

    ``keys``: how many keys there are; all are in the first batch, once and alive.
    """
    draw = _Draw(random.Random(seed))
    first = draw.batch(range(keys), (1,), living=True)
    every = [first, *(draw.batch(range(keys), (0, 1, 1, 2, 3)) for _ in range(2))]
    return {
        "all": every,
        "two": every[:2],
        "living": [first, *(draw.batch(range(keys), (0, 1, 2, 3), living=True) for _ in range(2))],
        "once": [first, draw.batch(range(keys), (0, 1, 1))],
        "simple": [
            draw.batch(range(keys), (1,), living=True, simple=True),
            draw.batch(range(keys), (0, 1, 2, 3), simple=True),
        ],
    }


class _Draw:
    def __init__(self, source: random.Random) -> None:
        self._choice, self._shuffle = source.choice, source.shuffle
        self._serial = 0

    def batch(
        self, keys: Sequence[int], times: Sequence[int], living: bool = False, simple: bool = False
    ) -> pa.Table:
        """Draw rows, each key as many times as one of ``times`` says.

        ``simple``: without a binary column and without unavailable values.
        """
        rows = [self._row(key, living, simple) for key in keys for _ in range(self._choice(times))]
        self._shuffle(rows)
        schema = EVENTS.remove(EVENTS.get_field_index("b")) if simple else EVENTS
        return pa.Table.from_pylist(rows, schema)

    def _row(self, key: int, living: bool, simple: bool) -> Row:
        self._serial += 1
        serial, choice = self._serial, self._choice
        file, position = choice(["000001", "000002"]), choice([5, 40, 300])
        text = choice([None, None if simple else UNAVAILABLE, f"v{serial}"])
        row: Row = {
            "id": key,
            "ts": choice([1, 2, 3]),
            "Op": choice(["I", "U", None] if living else ["I", "U", "U", "D", "d", None]),
            "_change_operation_type": choice(
                ["c", "u"] if living else ["c", "u", "u", "d", "D", None]
            ),
            "_event_lsn": choice([7, 80, 900]),
            "_event_bin_file": f"mysql-bin.{file}",
            "_event_pos": position,
            "_event_seq": f"{file}.{position}",
            "v": text,
            "b": None if simple else choice([None, UNAVAILABLE.encode(), f"b{serial}".encode()]),
            "n": choice([None, 0, serial]),
            "s": {"ts": choice([1, 2]), "note": choice([None, UNAVAILABLE])},
            "w": choice([None, {"x": None}, {"x": serial}]),
            "_hoodie_is_deleted": choice([None, False] if living else [None, False, False, True]),
        }
        return row


# --- what was captured ----------------------------------------------------------------------------


@cache
def captured() -> dict[str, Any]:
    """Return what :mod:`tests.jvm.capture_merging` wrote down."""
    document: dict[str, Any] = json.loads(CAPTURED.read_text(encoding="utf-8"))
    return document


def batches(history: str) -> list[pa.Table]:
    """Return the batches of a captured history."""
    simple = EVENTS.remove(EVENTS.get_field_index("b")) if history == "simple" else EVENTS
    return [
        pa.Table.from_pylist([dict(zip(simple.names, row, strict=True)) for row in batch], simple)
        for batch in captured()["histories"][history]
    ]


def by_hudi(kind: str) -> list[list[Any]]:
    """Return what Apache Hudi left of a history: for each row, in the order of the keys, the number
    of the commit that wrote it, and its values."""
    (rows,) = (one["rows"] for one in captured()["tables"] if one["kind"] == kind)
    return sorted(rows, key=lambda row: row[1])


def held(table: hudi.Table, rows: pa.Table | None = None) -> list[list[Any]]:
    """Return what a table holds, or what somebody read of it, in the form of :func:`by_hudi`."""
    times = [one.requested_time for one in table.timeline.instants]
    found = []
    for row in (table.to_arrow() if rows is None else rows).to_pylist():
        values = (row[name] for name in EVENTS.names if name in row)
        plain = (value.decode() if isinstance(value, bytes) else value for value in values)
        found.append([times.index(row["_hoodie_commit_time"]), *plain])
    return sorted(found, key=lambda row: int(row[1]))
