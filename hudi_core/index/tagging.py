"""Tags staged rows: update, insert, or move to another partition.

Rows meet files within a scope: a partition, or with a global index the whole table. A scope with
few files is one task. One with many is three rounds of tasks, so that no task reads more than some
files: the keys are collected, each task looks for them in its share of those files that may hold
one by the ranges of their keys, and what all of them found is merged. What comes out are arrays of
row numbers, kept beside the staged rows; only counts travel to the driver.

A row whose key a global index finds in another partition

* moves, as the options say by default: the stored row goes, and the row is new in its partition;
  unless it is late by its ordering value: then it is dropped, and the stored row stays;
* or stays: it takes the place of the stored row in the partition where that is; the merge keeps
  the stored values of the partition columns, so that folder and columns go on saying the same;
* or deletes: it deletes the stored row where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, groupby
from typing import Final

import numpy as np
import pyarrow as pa

from hudi_core.config.kinds import InsertDuplicates
from hudi_core.engine.base import Engine, TaskContext
from hudi_core.errors import DuplicateRecordKeyError
from hudi_core.index.bucket import bucket_numbers
from hudi_core.index.incoming import (
    Incoming,
    Scope,
    Sources,
    SpilledIncoming,
    incoming_rows,
    record_keys,
    spill_incoming,
)
from hudi_core.index.locating import (
    LocatedKeys,
    deleted_in_logs,
    from_table,
    lists,
    locate,
    locate_hinted,
    numbers,
    to_table,
)
from hudi_core.index.stored_filters import StoredFilters
from hudi_core.keygen import key_generator
from hudi_core.model.buckets import Buckets
from hudi_core.model.files import BaseFile, PartitionPath
from hudi_core.model.ranges import Mask, ValueRanges
from hudi_core.rows.combine import IntArray, Positions
from hudi_core.rows.context import WriteContext
from hudi_core.rows.merging import Located
from hudi_core.rows.sorting import ordered_positions
from hudi_core.rows.staging import SpillRef, StagedPart, load, spill, true_mask
from hudi_core.schema.table_schema import TableSchema

KeyRanges = Callable[[Sequence[tuple[PartitionPath, BaseFile]]], ValueRanges | None]
"""Ranges of the record keys in some files, where they are known; asked on the driver."""
_INSERTS: Final = -1
_FILES_PER_TASK: Final = 32
_BYTES_PER_TASK: Final = 4 << 30
_SHOWN: Final = 3
_NONE: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Tagged:
    """What becomes of one partition.

    Rows are numbered through ``sources``: just the partition itself, but for rows that stay where a
    global index finds their keys. ``located`` has, for every candidate that changes, how many of
    its rows meet an incoming one or go because their successor is in another partition. ``inserts``
    counts new rows, ``buckets`` those of each bucket, in whose order they are.

    ``positions`` has per candidate (-1 for new rows) the numbers of incoming rows, the positions of
    the stored rows they meet, and of those that go.
    """

    partition_path: PartitionPath
    sources: Sources
    located: Mapping[int, int]
    inserts: int
    buckets: Mapping[int, int]
    positions: SpillRef


def located_rows(context: WriteContext, tagged: Tagged, candidate: int) -> Located:
    """Rows that update one candidate file of a partition."""
    for batch in load(context, tagged.positions).to_batches():
        for row in np.flatnonzero(batch.column("candidate").to_numpy() == candidate):
            return Located(
                *(numbers(batch, name, int(row)) for name in ("incoming", "stored", "gone"))
            )
    return Located(_NONE, _NONE)


def new_rows(context: WriteContext, tagged: Tagged) -> Positions:
    """Return the numbers of a partition's new rows."""
    return located_rows(context, tagged, _INSERTS).incoming


def scopes(
    parts: Sequence[StagedPart],
    files: Mapping[PartitionPath, Sequence[BaseFile]],
    partitions: Sequence[PartitionPath],
    context: WriteContext,
    *,
    combine: bool,
    deletes_all: bool,
    sort: bool = False,
) -> list[Scope]:
    """Return which rows and files may meet.

    ``files`` is empty to look nothing up.
    """
    if context.is_global:
        flat = tuple((path, file) for path, some in files.items() for file in some)
        return [
            Scope(tuple(parts), Sources.of(parts, partitions), flat, combine, deletes_all, sort)
        ]
    return [
        Scope(
            tuple(part for part in parts if path in part.batch_numbers),
            Sources.of(parts, [path]),
            tuple((path, file) for file in files.get(path, ())),
            combine,
            deletes_all,
            sort,
        )
        for path in partitions
    ]


def staged_for(
    parts: Sequence[StagedPart],
    partition_path: PartitionPath,
    tagged: Mapping[PartitionPath, Tagged],
) -> tuple[StagedPart, ...]:
    """Return the staged parts that hold rows for one partition."""
    found = tagged.get(partition_path)
    sources = {partition_path} if found is None else set(found.sources.paths)
    return tuple(part for part in parts if not sources.isdisjoint(part.batch_numbers))


@dataclass(frozen=True, slots=True)
class Tagging:
    """The tasks that locate the rows of one write.

    ``moves``: rows move to the partition they come with. ``in_memory``: tasks hand on in memory
    what they found.
    """

    context: WriteContext
    schema: TableSchema
    moves: bool
    in_memory: bool

    def run(
        self,
        engine: Engine,
        scopes: Sequence[Scope],
        stage: int,
        key_ranges: KeyRanges | None = None,
        filters: StoredFilters | None = None,
    ) -> dict[PartitionPath, Tagged]:
        """Locate the rows of all scopes; return the partitions' work.

        With ``key_ranges`` only those of many files are read that may hold an incoming key;
        ``filters`` together with the ranges of all files replace the footers.
        """
        if filters is not None:
            scopes = [replace(scope, filters=filters) for scope in scopes]
            scopes = _with_ranges(scopes, key_ranges)
        narrow = [scope for scope in scopes if len(_chunks(scope)) <= 1]
        wide = [scope for scope in scopes if len(_chunks(scope)) > 1]
        weights = [sum(file.size for _, file in scope.files) for scope in narrow]
        found = engine.map_tasks(narrow, self.tag, stage, weights)
        if filters is None:
            wide = _with_ranges(wide, key_ranges)
        found += self._run_wide(engine, wide, stage)
        return {one.partition_path: one for partitions in found for one in partitions}

    def _run_wide(self, engine: Engine, scopes: Sequence[Scope], stage: int) -> list[list[Tagged]]:
        if not scopes:
            return []
        left = engine.map_tasks(scopes, self.collect, stage)
        # the ranges have done their part, but for the keys that filters are asked for
        scopes = [
            scope if scope.filters is not None else replace(scope, key_ranges=None)
            for scope in scopes
        ]
        chunks = partial(file_chunks, least=-(-engine.parallelism // len(scopes)))
        looks = [
            [FileLook(scope, incoming, chunk) for chunk in chunks(scope, incoming.files)]
            for scope, incoming in zip(scopes, left, strict=True)
        ]
        return self.run_looks(engine, scopes, left, looks, stage)

    def run_looks(
        self,
        engine: Engine,
        scopes: Sequence[Scope],
        left: Sequence[SpilledIncoming],
        looks: Sequence[Sequence[FileLook]],
        stage: int,
    ) -> list[list[Tagged]]:
        """Look into files, and put together what was found for each scope."""
        each = [one for some in looks for one in some]
        weights = [sum(one.scope.files[file][1].size for file in one.files) for one in each]
        found = iter(engine.map_tasks(each, self.look, stage, weights))
        merges = [
            _MatchMerge(scope, incoming, tuple(next(found) for _ in some))
            for scope, incoming, some in zip(scopes, left, looks, strict=True)
        ]
        return engine.map_tasks(merges, self.merge_matches, stage)

    def compare(
        self, engine: Engine, scopes: Sequence[Scope], stage: int, key_ranges: KeyRanges
    ) -> None:
        """Compare inserted rows with the stored rows of their keys.

        Those alone whose keys could be another row's.
        """
        scopes = _with_ranges([scope for scope in scopes if scope.files], key_ranges)
        pieces = [(scope, chunk) for scope in scopes for chunk in _chunks(scope)]
        engine.map_tasks(pieces, self.compare_some, stage)

    def compare_some(self, _: TaskContext, item: tuple[Scope, tuple[int, ...]]) -> None:
        """Compare the rows of a scope with those of some files."""
        scope, files = item
        incoming, ambiguity = self._incoming(scope), self.context.key_ambiguity
        if ambiguity is None:
            return
        among = ambiguity.among(incoming.keys.column("key").combine_chunks())
        some = replace(incoming, keys=incoming.keys.filter(pa.array(among)))
        held = set(scope.may_hold(some.keys))
        locate(scope, some, self.context, [one for one in files if one in held])

    def tag(self, task: TaskContext, scope: Scope) -> list[Tagged]:
        """Locate the rows of a scope with few files."""
        incoming = self._incoming(scope)
        found = []
        if scope.files:
            found = locate(scope, incoming, self.context, scope.may_hold(incoming.keys))
        return self._merged(task, "tag", scope, incoming, found)

    def collect(self, task: TaskContext, scope: Scope) -> SpilledIncoming:
        """Collect the keys of a scope with many files."""
        incoming = self._incoming(scope)
        return spill_incoming(task, scope, incoming, self.context, self.in_memory)

    def look(self, task: TaskContext, item: FileLook) -> SpillRef:
        """Look for the keys in some of the files."""
        incoming = item.incoming.load(self.context)
        if item.hints:
            found = locate_hinted(item.scope, incoming, self.context, item.hinted(self.context))
        else:
            found = locate(item.scope, incoming, self.context, item.files)
        return spill(self.context, task, "found", to_table(found), self.in_memory)

    def merge_matches(self, task: TaskContext, item: _MatchMerge) -> list[Tagged]:
        """Put together what was found in all files."""
        found = [one for left in item.found for one in from_table(load(self.context, left))]
        incoming = item.incoming.load(self.context)
        return self._merged(task, "merged", item.scope, incoming, found)

    def _incoming(self, scope: Scope) -> Incoming:
        return incoming_rows(scope, self.context, self.schema, self.moves)

    def _merged(
        self,
        task: TaskContext,
        kind: str,
        scope: Scope,
        incoming: Incoming,
        found: Sequence[LocatedKeys],
    ) -> list[Tagged]:
        if self.context.appends and not self.context.is_global and found:
            found = deleted_in_logs(scope, self.context, found)
        by_file, is_new = _decide(scope, incoming, found, self.moves)
        new = incoming.numbers[is_new & ~incoming.deletes]
        codes = incoming.codes[is_new & ~incoming.deletes] if len(incoming.codes) else _NONE
        sources = scope.sources.partition_of(new)
        tagged: list[Tagged] = []
        for path, ordinals in _partitions(scope):
            files = {
                candidate: by_file[file]
                for candidate, file in enumerate(ordinals)
                if file in by_file
            }
            here = _NONE
            if path in scope.sources.paths:
                here = np.flatnonzero(sources == scope.sources.paths.index(path))
            elif not files:
                continue
            if scope.sort:
                here = here[self._order(scope, new[here])]
            inserts, buckets = self._by_bucket(
                incoming, new[here], codes[here] if len(codes) else _NONE
            )
            name = f"{kind}{len(tagged)}"
            tagged.append(
                self.partition(
                    task, name, path, scope.sources, inserts=inserts, buckets=buckets, files=files
                )
            )
        return tagged

    def partition(
        self,
        task: TaskContext,
        name: str,
        path: PartitionPath,
        sources: Sources,
        *,
        inserts: Positions,
        buckets: Mapping[int, int],
        files: Mapping[int, Located],
    ) -> Tagged:
        """Keep what becomes of one partition for the tasks that write it.

        ``name`` is for the spill file. ``buckets`` counts the new rows of each bucket; ``files``
        has the rows that change, by candidate.
        """
        kept, table = _positions(sources, {_INSERTS: Located(inserts, _NONE), **files})
        left = spill(self.context, task, name, table, self.in_memory)
        located = {one: len(file.stored) + len(file.gone) for one, file in files.items()}
        return Tagged(path, kept, located, len(inserts), buckets, left)

    def _order(self, scope: Scope, new: Positions) -> Positions:
        """Return the writing order of a partition's new rows."""
        keys = key_generator(self.context.table, self.schema)
        rows = scope.sources.take(self.context, scope.parts, new, self.schema.arrow)
        order = ordered_positions(rows, np.arange(len(new), dtype=np.int32), self.context, keys)
        return order.astype(np.int64)

    def _by_bucket(
        self, incoming: Incoming, new: Positions, codes: Positions
    ) -> tuple[Positions, dict[int, int]]:
        """Return new rows by bucket, and each bucket's count."""
        layout = self.context.table.buckets
        if layout is None or not len(codes):
            return new, {}
        keys = incoming.keys.column("key").combine_chunks().take(pa.array(codes))
        return in_buckets(new, keys, layout)


def in_buckets(
    new: Positions, keys: pa.StringArray, layout: Buckets
) -> tuple[Positions, dict[int, int]]:
    """New rows in the order of their buckets, and each bucket's count."""
    of_rows = bucket_numbers(keys, layout)
    found, counts = np.unique(of_rows, return_counts=True)
    buckets = dict(zip(found.tolist(), counts.tolist(), strict=True))
    return new[np.argsort(of_rows, kind="stable")], buckets


@dataclass(frozen=True, slots=True)
class FileLook:
    """Some files of a scope to look for its keys in.

    ``hints`` are where an index says that keys are: tables of ordinals of keys and of file groups,
    each with the ordinals of the groups' files.
    """

    scope: Scope
    incoming: SpilledIncoming
    files: tuple[int, ...]
    hints: tuple[tuple[SpillRef, tuple[int, ...]], ...] = ()

    def hinted(self, context: WriteContext) -> dict[int, IntArray]:
        """Ascending ordinals of keys, by the file that the index names."""
        tables = [(load(context, left), np.array(files, np.int32)) for left, files in self.hints]
        keys = np.concatenate([table.column("key").to_numpy() for table, _ in tables])
        places = [files[table.column("group").to_numpy()] for table, files in tables]
        files = np.concatenate(places)
        return {ordinal: np.sort(keys[files == ordinal]) for ordinal in self.files}


@dataclass(frozen=True, slots=True)
class _MatchMerge:
    """A scope, its keys, and its matches in files."""

    scope: Scope
    incoming: SpilledIncoming
    found: tuple[SpillRef, ...]


def _decide(
    scope: Scope, incoming: Incoming, found: Sequence[LocatedKeys], moves: bool
) -> tuple[dict[int, Located], Mask]:
    """Rows to update by file, and incoming rows that are new."""
    if not found:
        return {}, np.ones(len(incoming.numbers), bool)
    row_of = incoming.keys.column("number").to_numpy()
    deletes = true_mask(incoming.keys.column("deletes"))
    stays, leaves = np.zeros((2, len(row_of)), bool)
    by_file = {}
    found = _without_deleted(scope, row_of, deletes, found, moves)
    for one in found:
        numbers_ = row_of[one.keys]
        in_place = np.ones(len(one.keys), bool)
        if moves:
            path = scope.files[one.file][0]
            own = np.array([source == path for source in scope.sources.paths])
            in_place = own[scope.sources.partition_of(numbers_)] | deletes[one.keys]
        stays[one.keys[in_place | one.late]] = True
        by_file[one.file] = Located(
            numbers_[in_place], one.stored[in_place], one.stored[~in_place & ~one.late]
        )
        leaves[one.keys[~in_place & ~one.late]] = True
    touched = {file: one for file, one in by_file.items() if len(one.stored) or len(one.gone)}
    # of rows that were not combined, one takes the place of the stored row, here or elsewhere
    stands = incoming.numbers == row_of[incoming.codes]
    return touched, ~stays[incoming.codes] & (stands | ~leaves[incoming.codes])


def _without_deleted(
    scope: Scope, row_of: Positions, deletes: Mask, found: Sequence[LocatedKeys], moves: bool
) -> Sequence[LocatedKeys]:
    """Leave out rows that logs delete.

    But for one of a key that has no other row, or whose other row moves here, where it comes again:
    its row goes where it was, so that no index finds it in two file groups.
    """
    if not any(one.deleted.any() for one in found):
        return found
    taken = deletes.copy()
    here = []
    for one in found:
        own = np.array([source == scope.files[one.file][0] for source in scope.sources.paths])
        here.append(own[scope.sources.partition_of(row_of[one.keys])])
        remains = ~one.deleted & (here[-1] | one.late) if moves else ~one.deleted
        taken[one.keys[remains]] = True
    kept = []
    for one, is_here in zip(found, here, strict=True):
        again = one.deleted & ~taken[one.keys] & is_here
        _, first = np.unique(one.keys[again], return_index=True)
        stays = ~one.deleted
        stays[np.flatnonzero(again)[first]] = True
        taken[one.keys[again]] = True
        kept.append(
            LocatedKeys(
                one.file, one.keys[stays], one.stored[stays], one.late[stays], one.deleted[stays]
            )
        )
    return kept


def _positions(sources: Sources, rows: Mapping[int, Located]) -> tuple[Sources, pa.Table]:
    """Return the partitions of matched incoming rows, and rows numbered among them.

    One row of the table per file.
    """
    used = np.concatenate([sources.partition_of(one.incoming) for one in rows.values()])
    kept = np.unique(used).tolist()
    incoming = [sources.renumbered(one.incoming, kept) for one in rows.values()]
    table = pa.table(
        {
            "candidate": pa.array(list(rows), pa.int32()),
            "incoming": lists(incoming, pa.int64()),
            "stored": lists([one.stored for one in rows.values()], pa.int64()),
            "gone": lists([one.gone for one in rows.values()], pa.int64()),
        }
    )
    return sources.only(kept), table


def _partitions(scope: Scope) -> list[tuple[PartitionPath, list[int]]]:
    """Return every partition of a scope with the ordinals of its files."""
    files: dict[PartitionPath, list[int]] = {path: [] for path in scope.sources.paths}
    for ordinal, (path, _) in enumerate(scope.files):
        files.setdefault(path, []).append(ordinal)
    return sorted(files.items())


def _with_ranges(scopes: Sequence[Scope], key_ranges: KeyRanges | None) -> list[Scope]:
    """The scopes with the ranges of their files, asked for once."""
    files = [file for scope in scopes for file in scope.files]
    ranges = key_ranges(files) if key_ranges is not None and files else None
    if ranges is None:
        return list(scopes)
    ends = accumulate(len(scope.files) for scope in scopes)
    return [
        replace(scope, key_ranges=ranges.take(range(end - len(scope.files), end)))
        for scope, end in zip(scopes, ends, strict=True)
    ]


def _chunks(scope: Scope) -> list[tuple[int, ...]]:
    return file_chunks(scope, range(len(scope.files)))


def file_chunks(scope: Scope, ordinals: Iterable[int], least: int = 1) -> list[tuple[int, ...]]:
    """Return a scope's files in even chunks, one per task.

    There are at least so many where there are as many files.
    """
    files = list(ordinals)
    sizes = [max(scope.files[one][1].size, _BYTES_PER_TASK // _FILES_PER_TASK) for one in files]
    total = sum(sizes)
    count = max(-(-total // _BYTES_PER_TASK), min(least, len(files)))
    begins = zip(files, accumulate(sizes, initial=0), strict=False)
    grouped = groupby(begins, key=lambda one: one[1] * count // total)
    return [tuple(ordinal for ordinal, _ in group) for _, group in grouped]


# --- inserts of existing keys: dropped or refused by an option -----------------------------------


def without_duplicates(
    tagged: Mapping[PartitionPath, Tagged],
    parts: Sequence[StagedPart],
    context: WriteContext,
    staged: TableSchema,
) -> dict[PartitionPath, Tagged]:
    """Return locations of inserted rows, without those of existing keys.

    Source: Hudi's ``hoodie.datasource.insert.dup.policy``.
    """
    if context.write.insert_duplicates is InsertDuplicates.FAIL:
        _refuse_duplicates(tagged, parts, context, staged)
    return {path: replace(found, located={}) for path, found in tagged.items()}


def _refuse_duplicates(
    tagged: Mapping[PartitionPath, Tagged],
    parts: Sequence[StagedPart],
    context: WriteContext,
    staged: TableSchema,
) -> None:
    for path, found in tagged.items():
        for candidate, stored in found.located.items():
            incoming = np.unique(located_rows(context, found, candidate).incoming[:_SHOWN])
            rows = found.sources.take(context, parts, incoming, staged.arrow)
            keys = record_keys(rows, context, staged).to_pylist()
            raise DuplicateRecordKeyError(
                f"The rows to insert have keys that the partition {path!r} holds already: "
                f"{', '.join(map(repr, keys))}{', ...' if stored > len(keys) else ''}",
                "Nothing was written. Use upsert, or set "
                "hoodie.datasource.insert.dup.policy=drop to leave these rows out.",
                columns=context.table.record_key_fields,
                keys=tuple(keys),
            )
