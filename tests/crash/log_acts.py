"""What is done to tables that may have logs, beside what is done to any table: acts and effects.

Conditional writes, rows that come late, columns that change, writes without the metadata table, and
compactions in each of their steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

import hudi_core as hudi
from hudi_core.model.instant import COMPACTIONS
from tests.crash.kinds import MODE
from tests.crash.rows import Effect, Held, as_table, dropping, putting
from tests.crash.tables import FEW_BLOCKS

UNLISTED: Final = "unlisted"
CONDITIONAL: Final = ("update", "delete where", "merge", "late upsert", "late delete", UNLISTED)
"""Writes that look rows up; ``unlisted`` ones drop the metadata table."""
EVOLVING: Final = "alter"
COMPACTING: Final = (
    *("compact", "schedule compaction", "run compactions", "give compactions up"),
    *("compact logs", "schedule compaction of logs"),
)
TYPES: Final = ("to MERGE_ON_READ", "to COPY_ON_WRITE")
REBUILDING: Final = "rebuild metadata"
SERVING: Final = (*COMPACTING, *TYPES, REBUILDING, EVOLVING)
"""What changes no row."""
LATE: Final = ("late upsert", "late delete")
LATENESS: Final = 4
"""By how much late rows come late."""
_BIRTHS: Final = ("note", "text")
"""Names of a column that comes, gets another type and another name, and goes."""


def given(table: hudi.Table, rows: Held) -> pa.Table:
    """Rows as a writer is given them, with the values of the column that comes and goes."""
    found = as_table(rows)
    for field in table.schema:
        if field.name in _BIRTHS:
            found = found.append_column(field, found.column("ts").cast(field.type))
    return found


def born_with(row: Mapping[str, Any]) -> bool:
    """Whether the column that comes and goes has nothing, or the value that came with the row."""
    return all(row.get(name) in (None, row["ts"]) for name in _BIRTHS)


def effect_of(name: str, rows: Held) -> Effect:
    """What one of the conditional writes makes of the rows."""
    match name:
        case "update":
            return lambda held: {**held, **{key: rows[key] for key in rows if key in held}}
        case "delete where" | "late delete":
            return dropping(*rows)
        case "late upsert":
            return lambda held: {**held, **{key: _later(held, key, rows[key]) for key in rows}}
        case _:
            return putting(rows)


def _later(held: Held, key: str, row: tuple[str, int]) -> tuple[str, int]:
    stored = held.get(key)
    return stored if stored is not None and stored[1] > row[1] else row


def _update(table: hudi.Table, rows: Held) -> object:
    (ts,) = {ts for _, ts in rows.values()}
    names = ["ts", *(one for one in table.schema.names if one in _BIRTHS)]
    return table.update(dict.fromkeys(names, ts), [("id", "in", [*rows])])


def _merge(table: hudi.Table, rows: Held) -> object:
    merger = table.merge(given(table, rows), on="id")
    return merger.when_matched_update_all().when_not_matched_insert_all().execute()


def _unlisted(table: hudi.Table, rows: Held) -> object:
    without = {**table._session.options, "hoodie.metadata.enable": "false"}
    return hudi.Table.open(table.path, without).upsert(given(table, rows))


def _alter(table: hudi.Table, _: object) -> object:
    born = next((field for field in table.schema if field.name in _BIRTHS), None)
    if born is None:
        return table.alter(add_columns={_BIRTHS[0]: pa.int32()})
    if "delta" in table.format.split(","):
        return None  # columns are added to such tables, and no more
    if born.type == pa.int32():
        return table.alter(promote={born.name: pa.int64()})
    if born.name == _BIRTHS[0]:
        return table.alter(rename=dict([_BIRTHS]))
    return table.alter(drop=born.name)


def _give_up(table: hudi.Table, _: object) -> None:
    for one in table.timeline.instants:
        if one.action in COMPACTIONS and not one.is_completed:
            table.rollback(one)


def _conversion(name: str) -> Callable[[hudi.Table, object], object]:
    to = name.removeprefix("to ")

    def convert(table: hudi.Table, _: object) -> object:
        # every other time that it gets logs, it is a split one
        gets_logs = table.config.table_type == "COPY_ON_WRITE" != to
        splits = gets_logs and len(table.timeline.instants) % 2
        return table.convert_type(to, options=MODE if splits else None)

    return convert


def _compaction(*, of_logs: bool = False, **given: Any) -> Callable[[hudi.Table, object], object]:
    """A compaction; there is none in a table of the other type, nor of the logs of a split one."""

    def compact(table: hudi.Table, _: object) -> object:
        now = hudi.Table.open(table.path).config
        if now.table_type == "COPY_ON_WRITE" or (of_logs and now.merge_on_read_mode == "split"):
            return None
        options = FEW_BLOCKS if of_logs else None
        return table.compact(log_compaction=of_logs, options=options, **given)

    return compact


ACTS: Final[Mapping[str, Callable[[hudi.Table, Any], object]]] = {
    "update": _update,
    "delete where": lambda table, rows: table.delete(where=[("id", "in", [*rows])]),
    "merge": _merge,
    "late upsert": lambda table, rows: table.upsert(given(table, rows)),
    "late delete": lambda table, rows: table.delete(given(table, rows)),
    UNLISTED: _unlisted,
    EVOLVING: _alter,
    "compact": _compaction(),
    "schedule compaction": _compaction(schedule_only=True),
    "compact logs": _compaction(of_logs=True),
    "schedule compaction of logs": _compaction(of_logs=True, schedule_only=True),
    "run compactions": lambda table, _: table.run_compactions(),
    "give compactions up": _give_up,
    **{name: _conversion(name) for name in TYPES},
    REBUILDING: lambda table, _: table.repair_metadata(),
}
