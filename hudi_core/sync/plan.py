"""What is to be changed of one entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hudi_core.config.sync import SyncConfig
from hudi_core.errors import MetastoreEntryError, SchemaError
from hudi_core.metastore.catalog import MetastoreColumn, MetastorePartition, MetastoreTable
from hudi_core.model.format import NumberedFiles
from hudi_core.sync.entries import PREFIX, PROVIDER_KEY, SyncedTable, may_become, same_type

RECREATE: Final = (
    f"Set {SyncConfig.recreates.key}=true for one sync: the entry is dropped and made again, and "
    "no file is deleted."
)
_FORMAT_KEYS: Final = ("table_type", PROVIDER_KEY)
_PREVIOUS: Final = "previous_"
_HUDI: Final = "hudi"


@dataclass(frozen=True, slots=True)
class EntryPlan:
    """The entry as it is to be.

    ``after`` keeps what others have put there; it is ``before`` itself where nothing changes.
    ``columns`` are the changes in words.
    """

    before: MetastoreTable
    after: MetastoreTable
    columns: tuple[str, ...]

    @property
    def changes(self) -> bool:
        """Whether anything does."""
        return self.after != self.before


def plan_entry(table: SyncedTable, before: MetastoreTable, wanted: MetastoreTable) -> EntryPlan:
    """What is to be changed of an entry that is there.

    An entry of something else, or at a state that this table does not come from, is an error.
    """
    name = f"{before.database}.{before.name}"
    _require_same_table(name, table, before, wanted)
    _require_followed(name, table, before, wanted)
    _require_same_partitions(name, before, wanted)
    kept = {
        key: value
        for key, value in before.parameters.items()
        if not key.startswith(PREFIX) and not (key in _FORMAT_KEYS and key not in wanted.parameters)
    }
    # who owns the files stays as it is
    own = {key: value for key, value in wanted.parameters.items() if key != "EXTERNAL"}
    parameters = {**kept, **own, **_previous(table, before, wanted)}
    comments = {one.name: one.comment for one in before.columns}
    columns = tuple(_commented(one, table, comments) for one in wanted.columns)
    words = tuple(_column_words(name, before.columns, columns))
    same = not words and _same_columns(before.columns, columns)
    after = replace(
        wanted,
        database=before.database,
        name=before.name,
        # the same place, as the metastore spells it
        location=before.location,
        table_type=before.table_type,
        columns=before.columns if same else columns,
        partition_columns=before.partition_columns,
        parameters=parameters,
        serde_parameters={**before.serde_parameters, **wanted.serde_parameters},
        version=before.version,
    )
    return EntryPlan(before, after, words)


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """What is to be changed of the entries of partitions."""

    add: Sequence[MetastorePartition] = ()
    change: Sequence[MetastorePartition] = ()
    drop: Sequence[MetastorePartition] = ()
    paths: Mapping[tuple[str, ...], str] = field(default_factory=dict)

    def names(self, partitions: Iterable[MetastorePartition]) -> tuple[str, ...]:
        """Paths of partitions, or their values where they have none."""
        return tuple(self.paths.get(one.values, "/".join(one.values)) for one in partitions)


def plan_partitions(
    wanted: Mapping[tuple[str, ...], MetastorePartition],
    found: Iterable[MetastorePartition],
    gone: Iterable[tuple[str, ...]],
    *,
    is_all: bool,
    touches: bool,
) -> tuple[list[MetastorePartition], list[MetastorePartition], list[MetastorePartition]]:
    """What is to be added, changed and dropped.

    ``wanted`` are by values; ``gone`` are values of those that are to go, and with ``is_all``
    everything else goes too. ``touches``: those that are as they should be are changed as well.
    """
    have = {one.values: one for one in found}
    add = [one for values, one in wanted.items() if values not in have]
    change = [
        one
        for values, one in wanted.items()
        if values in have and (touches or not _same_place(have[values].location, one.location))
    ]
    leaving = have.keys() if is_all else have.keys() & set(gone)
    drop = [have[values] for values in have if values in leaving - wanted.keys()]
    return add, change, drop


def _same_place(one: str, other: str) -> bool:
    return _bare(one) == _bare(other)


def _bare(place: str) -> str:
    """A place whatever way a metastore spells it."""
    scheme, colon, rest = place.partition(":")
    if not colon or not rest.startswith("/"):
        return place.rstrip("/")
    scheme = "s3" if scheme in ("s3a", "s3n") else scheme
    return f"{scheme}:{rest.lstrip('/').rstrip('/')}"


def _require_same_table(
    name: str, table: SyncedTable, before: MetastoreTable, wanted: MetastoreTable
) -> None:
    if not _same_place(before.location, wanted.location):
        raise MetastoreEntryError(
            name,
            f"is the entry of another table, at {before.location or '(no place)'}; this one is at "
            f"{wanted.location}",
            f"Give another name in {SyncConfig.table.key}. {RECREATE}",
        )
    has_hudi_class = before.input_format.rpartition(".")[2].startswith("Hoodie")
    declared = _HUDI if has_hudi_class else _declared(before)
    now = _HUDI if table.registration.is_hudi else _declared(wanted)
    if declared != now:
        raise MetastoreEntryError(
            name,
            f"is registered as {declared or before.table_type or 'something else'}, and the table "
            f"is one of the format {table.table_config.table_format}",
            RECREATE,
        )


def _declared(entry: MetastoreTable) -> str | None:
    for key in _FORMAT_KEYS:
        if found := entry.parameters.get(key, "").strip().lower():
            return found
    return None


def _require_followed(
    name: str, table: SyncedTable, before: MetastoreTable, wanted: MetastoreTable
) -> None:
    """Refuse to take an entry away from another writer of the table."""
    registration = table.registration
    if registration.pointer is None:
        return
    there, now = (
        before.parameters.get(registration.pointer),
        wanted.parameters[registration.pointer],
    )
    known = {now, *registration.follows, *map(table.place, registration.follows)}
    if there is None or there in known or _is_numbered(there, table):
        return
    if not _is_of_a_former_table(there, table, before, wanted):
        raise MetastoreEntryError(
            name,
            f"has {registration.pointer}={there}, which this table does not come from: another "
            "writer committed through the metastore, and its rows would vanish there",
            f"Find out who did. {RECREATE}",
        )


def _is_numbered(there: str, table: SyncedTable) -> bool:
    return any(there in files for files in _numbered(table))


def _numbered(table: SyncedTable) -> Iterable[NumberedFiles]:
    """The numbered files, by our places and by the metastore's."""
    files = table.registration.numbered
    return () if files is None else (files, replace(files, begin=table.place(files.begin)))


def _is_of_a_former_table(
    there: str, table: SyncedTable, before: MetastoreTable, wanted: MetastoreTable
) -> bool:
    """Whether the entry is of a table that this one replaced.

    A sync left it, and the count of states begins anew. Who commits through the metastore names
    files otherwise.
    """
    key = table.registration.identity
    former = None if key is None else before.parameters.get(key)
    is_another = former is not None and key is not None and former != wanted.parameters[key]
    return is_another and any(files.is_named_so(there) for files in _numbered(table))


def _previous(table: SyncedTable, before: MetastoreTable, wanted: MetastoreTable) -> dict[str, str]:
    pointer = table.registration.pointer
    there = None if pointer is None else before.parameters.get(pointer)
    if pointer is None or there is None or there == wanted.parameters[pointer]:
        return {}
    return {f"{_PREVIOUS}{pointer}": there}


def _require_same_partitions(name: str, before: MetastoreTable, wanted: MetastoreTable) -> None:
    there = [(one.name.lower(), one.type) for one in before.partition_columns]
    now = [(one.name, one.type) for one in wanted.partition_columns]
    is_same = len(there) == len(now) and all(
        one[0] == other[0] and same_type(one[1], other[1])
        for one, other in zip(there, now, strict=True)
    )
    if not is_same:
        raise MetastoreEntryError(
            name,
            f"has the partition columns {_words(there)}, and the table {_words(now)}; no metastore "
            "changes these",
            RECREATE,
        )


def _words(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns) or "(none)"


def _commented(
    column: MetastoreColumn, table: SyncedTable, comments: Mapping[str, str | None]
) -> MetastoreColumn:
    """A column with the comment of others, where none is synced."""
    if table.config.comments:
        return column
    return replace(column, comment=comments.get(column.name))


def _same_columns(before: Sequence[MetastoreColumn], after: Sequence[MetastoreColumn]) -> bool:
    there = [(one.name.lower(), one.comment or "") for one in before]
    return there == [(one.name, one.comment or "") for one in after]


def _column_words(
    name: str, before: Sequence[MetastoreColumn], after: Sequence[MetastoreColumn]
) -> Iterable[str]:
    there = {one.name.lower(): one for one in before}
    now = {one.name for one in after}
    for column in after:
        former = there.get(column.name)
        if former is None:
            yield f"{column.name} {column.type} added"
        elif not same_type(former.type, column.type):
            if not may_become(former.type, column.type):
                raise SchemaError(
                    f"{name} has the column {column.name} of the type {former.type}, and the table "
                    f"has it as {column.type}, which readers of the former cannot take it for",
                    RECREATE,
                    column=column.name,
                )
            yield f"{column.name} {former.type} becomes {column.type}"
    for gone in there.keys() - now:
        yield f"{gone} dropped"
