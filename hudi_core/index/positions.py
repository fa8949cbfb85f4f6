"""Tags staged rows whose stored rows are known by their positions.

A conditional write has read the rows it changes, so that no key is looked for: each staged row says
which file holds the stored one, and where. What is left to see to is that no stored row is changed
twice, and that no row is added whose key the table has, or gets twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.engine.base import Engine, TaskContext
from hudi_core.errors import DuplicateRecordKeyError, MergeCardinalityError
from hudi_core.file_slice.spilling import UNLIMITED
from hudi_core.file_slice.stored_slice import has_deletes, stored_slice
from hudi_core.index.collisions import (
    ambiguity_of,
    require_same_rows,
    require_same_stored,
    stored_key_columns,
)
from hudi_core.index.incoming import Incoming, Scope, Sources, key_names, record_keys
from hudi_core.index.locating import locate
from hudi_core.index.tagging import Tagged, Tagging, file_chunks, in_buckets, located_rows
from hudi_core.keygen.ambiguity import Ambiguity
from hudi_core.model.files import BaseFile, PartitionPath
from hudi_core.rows.changes import FILE, KIND, ROW, ChangeKind
from hudi_core.rows.combine import Positions
from hudi_core.rows.context import WriteContext
from hudi_core.rows.merging import Located
from hudi_core.rows.staging import SpillRef, StagedPart, load, spill
from hudi_core.schema.table_schema import TableSchema

_NONE: Final = np.empty(0, dtype=np.int64)
_ADDED: Final = "_hoodie_added_key"


@dataclass(frozen=True, slots=True)
class AddedRows:
    """Keys that a write adds to one scope of the index.

    ``files`` may hold one of the spilled ``keys``; ``leaving`` are positions of stored rows that
    are removed by the write, by ordinal of their file.
    """

    keys: SpillRef
    files: tuple[tuple[PartitionPath, BaseFile], ...]
    leaving: Mapping[int, Positions] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PositionTagging:
    """The tasks that tag the rows of one conditional write.

    ``targets`` is, for each file ordinal that staged rows name, its partition and its place among
    the candidates of that. ``in_memory``: tasks hand on in memory what they leave.
    """

    context: WriteContext
    schema: TableSchema
    targets: tuple[tuple[PartitionPath, int], ...]
    in_memory: bool

    def run(
        self,
        engine: Engine,
        parts: Sequence[StagedPart],
        paths: Sequence[PartitionPath],
        files: Mapping[PartitionPath, Sequence[BaseFile]],
        stage: int,
        *,
        are_new: bool,
    ) -> dict[PartitionPath, Tagged]:
        """Tag all rows; return the partitions' work.

        ``files`` are of the rows' partitions, or of all where keys are unique in the whole table.
        ``are_new``: rows without a stored row are known to have keys that the table lacks.
        """
        if not parts:
            return {}
        slices = {
            ordinal: file
            for ordinal, (path, candidate) in enumerate(self.targets)
            if (file := files[path][candidate]).logs
        }
        logged: _Logged = ()
        if self.context.appends and not self.context.uses_record_index:
            logged = tuple(
                (path, candidate, file)
                for path in paths
                for candidate, file in enumerate(files.get(path, ()))
                if file.logs
            )
        item = _Everything(tuple(parts), tuple(paths), are_new, slices, logged)
        [(tagged, added)] = engine.map_tasks([item], self.tag, stage)
        scopes = [
            self._added_rows(keys, files if path is None else {path: files.get(path, ())}, tagged)
            for path, keys in added.items()
        ]
        looks = [
            (scope, chunk)
            for scope in scopes
            for chunk in file_chunks(_scope_of(scope.files), range(len(scope.files)))
        ]
        for known in engine.map_tasks(looks, self.look, stage):
            if known is not None:
                raise _exists(known, "the table has a row with it already")
        return {one.partition_path: one for one in tagged}

    def tag(
        self, task: TaskContext, item: _Everything
    ) -> tuple[list[Tagged], dict[PartitionPath | None, SpillRef]]:
        """Tag all rows; return the keys to look for, too.

        Under no partition where keys are unique in the whole table.
        """
        sources = Sources.of(item.parts, item.paths)
        columns = [FILE, ROW, KIND]
        rows = sources.table(self.context, item.parts, columns)
        kinds = rows.column(KIND).to_numpy()
        has_stored = kinds != ChangeKind.INSERT
        numbers = np.flatnonzero(has_stored)
        held, places = (
            pc.fill_null(rows.column(name), -1).to_numpy().astype(np.int64) for name in columns[:2]
        )
        _require_once(held[numbers], places[numbers])
        staged_for = sources.partition_of(np.arange(len(kinds)))
        ordinal = {path: one for one, path in enumerate(sources.paths)}
        own = np.array([ordinal.get(path, -1) for path, _ in self.targets], np.int64)
        stays = np.zeros(len(kinds), bool)
        stays[numbers] = own[held[numbers]] == staged_for[numbers]
        in_place = stays & (kinds != ChangeKind.DELETE)
        gone = has_stored & ~in_place
        adds = (kinds == ChangeKind.INSERT) | ((kinds == ChangeKind.MOVE) & ~in_place)
        by_path: dict[PartitionPath, dict[int, Located]] = {}
        for file, here in _grouped(numbers, held[numbers]):
            path, candidate = self.targets[file]
            changed, left = here[in_place[here]], here[gone[here]]
            if file in item.slices:
                # rows are numbered as they are read, and located where the base file has them
                slice_ = stored_slice(self.context, item.slices[file], (), memory=UNLIMITED)
                places[here] = slice_.positions(places[here])
            by_path.setdefault(path, {})[candidate] = Located(
                changed, places[changed], np.sort(places[left])
            )
        added = np.flatnonzero(adds)
        rows_added, are_whole = self._added(sources, item.parts, added)
        keys = None if rows_added is None else rows_added.column(_ADDED).combine_chunks()
        news = np.ones(len(added), bool)
        if keys is not None and self.context.table.buckets is None:
            of_paths = np.array(sources.paths)[staged_for[added]]
            for path, candidate, mine, stored in self._returning(item.logged, keys, of_paths):
                files = by_path.setdefault(path, {})
                files[candidate] = _with_pairs(files.get(candidate), added[mine], stored)
                news[mine] = False
        by_source = dict(_grouped(np.arange(len(added)), staged_for[added]))
        tagged: list[Tagged] = []
        for path in sorted({*by_path, *sources.paths}):
            mine = by_source.get(ordinal.get(path, -1), _NONE)
            mine = mine[news[mine]]
            inserts, buckets = added[mine], dict[int, int]()
            layout = self.context.table.buckets
            if layout is not None and keys is not None and len(mine):
                inserts, buckets = in_buckets(inserts, keys.take(pa.array(mine)), layout)
            files = by_path.get(path, {})
            name = f"positions{len(tagged)}"
            tagged.append(
                self._tagging.partition(
                    task, name, path, sources, inserts=inserts, buckets=buckets, files=files
                )
            )
        moved = bool(((kinds == ChangeKind.MOVE) & adds).any())
        asked = self._asked(task, rows_added, staged_for[added], sources.paths)
        # a null matches nothing, but is part of a key all the same
        return tagged, asked if moved or not (item.are_new and are_whole) else {}

    def _returning(
        self,
        logged: _Logged,
        keys: pa.Array,
        of_paths: npt.NDArray[np.str_],
    ) -> Iterator[tuple[PartitionPath, int, Positions, Positions]]:
        """Find added rows whose keys logs delete.

        By file; they go where the deleted rows were, so that no index finds two file groups.
        """
        if not len(keys):
            return
        left = np.ones(len(keys), bool)
        for path, candidate, file in logged:
            own = np.flatnonzero(left & (of_paths == path))
            if not len(own) or not has_deletes(self.context, file):
                continue
            scope = _scope_of(((path, file),))
            for found in locate(
                scope, _incoming(keys.take(pa.array(own))), self.context, [0], finds_deleted=True
            ):
                chosen, first = np.unique(found.keys[found.deleted], return_index=True)
                if len(chosen):
                    left[own[chosen]] = False
                    yield path, candidate, own[chosen], found.stored[found.deleted][first]

    def look(self, _: TaskContext, item: tuple[AddedRows, tuple[int, ...]]) -> str | None:
        """Return a key that some files keep; ``None`` for none."""
        added, files = item
        scope = _scope_of(added.files)
        rows = load(self.context, added.keys)
        keys = rows.column(_ADDED).combine_chunks()
        incoming = _incoming(keys)
        for found in locate(scope, incoming, self.context, files, finds_deleted=True):
            stay = ~np.isin(found.stored, added.leaving.get(found.file, _NONE)) & ~found.deleted
            if stay.any():
                self._require_same(
                    rows, found.keys[stay], scope.files[found.file], found.stored[stay]
                )
                return str(keys[int(found.keys[stay][0])])
        return None

    def _require_same(
        self,
        rows: pa.Table,
        numbers: Positions,
        file: tuple[PartitionPath, BaseFile],
        stored: Positions,
    ) -> None:
        """Refuse added rows whose stored row has other key columns."""
        if rows.num_columns == 1:
            return  # no key of them could be another row's
        path, base_file = file
        require_same_stored(
            self.context,
            rows.column(_ADDED).combine_chunks().take(pa.array(numbers)),
            lambda pairs: rows.take(pa.array(numbers[pairs])),
            lambda pairs: stored_key_columns(self.context, base_file, stored[pairs]),
            path,
        )

    @property
    def _tagging(self) -> Tagging:
        return Tagging(self.context, self.schema, False, self.in_memory)

    def _added(
        self, sources: Sources, parts: Sequence[StagedPart], added: Positions
    ) -> tuple[pa.Table | None, bool]:
        """Record keys of added rows; ``None`` where they are made later.

        With the columns of the key, where several rows could have one of the keys. And whether
        every such row is found by the values of its columns: no column of key or partition is
        null, and no key could be another row's.
        """
        table = self.context.table
        if not table.record_key_fields or not len(added):
            return None, True
        wanted = key_names(self.context) | {one.split(".")[0] for one in table.partition_fields}
        fields = pa.schema([one for one in self.schema.arrow if one.name in wanted])
        rows = sources.take(self.context, parts, added, fields)
        keys = record_keys(rows, self.context, self.schema)
        ambiguity = ambiguity_of(parts)
        is_whole = not any(column.null_count for column in rows.columns)
        is_plain = ambiguity is Ambiguity.NONE
        kept = (
            [] if is_plain else [one.name for one in fields if one.name in key_names(self.context)]
        )
        found = rows.select(kept).append_column(_ADDED, keys)
        return found, is_whole and is_plain

    def _asked(
        self,
        task: TaskContext,
        rows: pa.Table | None,
        of_paths: Positions,
        paths: Sequence[PartitionPath],
    ) -> dict[PartitionPath | None, SpillRef]:
        """Require that keys are added once; spill them by partition."""
        if rows is None:
            return {}
        found: dict[PartitionPath | None, SpillRef] = {}
        everywhere = self.context.is_global
        for number, path in enumerate([None] if everywhere else paths):
            own = rows if everywhere else rows.filter(pa.array(of_paths == number))
            if not own.num_rows:
                continue
            keys = own.column(_ADDED)
            counts = pc.value_counts(keys.combine_chunks())
            twice = counts.filter(pc.greater(counts.field("counts"), 1))
            if len(twice):
                self._require_one_row(own.filter(pc.equal(keys, twice[0]["values"])))
                key = str(twice[0]["values"])
                raise _exists(key, "several rows of the source are inserted with it")
            found[path] = spill(self.context, task, f"added{number}", own, self.in_memory)
        return found

    def _require_one_row(self, rows: pa.Table) -> None:
        """Refuse added rows that have one key and other key columns."""
        ambiguity = self.context.key_ambiguity
        if ambiguity is not None and rows.num_columns > 1:
            keys = rows.column(_ADDED).combine_chunks()
            first = rows.take(pa.array(np.zeros(len(keys), np.int64)))
            require_same_rows(ambiguity, keys, rows, first, "beside it")

    def _added_rows(
        self,
        keys: SpillRef,
        files: Mapping[PartitionPath, Sequence[BaseFile]],
        tagged: Sequence[Tagged],
    ) -> AddedRows:
        """Added keys, and the files that may hold them."""
        counts = accumulate(map(len, files.values()), initial=0)
        starts = dict(zip(files, counts, strict=False))
        leaving = {
            starts[one.partition_path] + candidate: located_rows(self.context, one, candidate).gone
            for one in tagged
            if one.partition_path in starts
            for candidate in one.located
        }
        flat = tuple((path, file) for path, some in files.items() for file in some)
        return AddedRows(keys, flat, leaving)


@dataclass(frozen=True, slots=True)
class _Everything:
    parts: tuple[StagedPart, ...]
    paths: tuple[PartitionPath, ...]
    are_new: bool
    slices: Mapping[int, BaseFile]
    logged: _Logged


_Logged = tuple[tuple[PartitionPath, int, BaseFile], ...]
_Files = tuple[tuple[PartitionPath, BaseFile], ...]


def _scope_of(files: _Files) -> Scope:
    return Scope((), Sources((), ()), files, combine=False, deletes_all=False)


def _incoming(keys: pa.Array) -> Incoming:
    numbers = np.arange(len(keys))
    table = pa.table({"key": keys, "number": numbers})
    return Incoming(numbers, np.zeros(len(numbers), bool), numbers, table)


def _with_pairs(located: Located | None, incoming: Positions, stored: Positions) -> Located:
    """Add pairs in the order of the incoming rows."""
    if located is None:
        return Located(incoming, stored)
    incoming = np.concatenate([located.incoming, incoming])
    order = np.argsort(incoming, kind="stable")
    stored = np.concatenate([located.stored, stored])
    return Located(incoming[order], stored[order], located.gone)


def _grouped(numbers: Positions, groups: Positions) -> Iterator[tuple[int, Positions]]:
    """Yield every group with its numbers, in their order."""
    if not len(groups):
        return
    order = np.argsort(groups, kind="stable")
    numbers, groups = numbers[order], groups[order]
    starts = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
    for start, end in zip(starts, [*starts[1:], len(groups)], strict=True):
        yield int(groups[start]), numbers[start:end]


def _require_once(files: Positions, places: Positions) -> None:
    """Refuse to change a stored row twice."""
    if not len(files):
        return
    order = np.lexsort((places, files))
    files, places = files[order], places[order]
    again = (files[1:] == files[:-1]) & (places[1:] == places[:-1])
    if again.any():
        raise MergeCardinalityError(int(again.sum()))


def _exists(key: str, reason: str) -> DuplicateRecordKeyError:
    return DuplicateRecordKeyError(
        f"A row with the record key {key!r} cannot be added: {reason}",
        "Nothing was written. Let the condition of the merge match rows by their record key, or "
        "leave such rows out of the source.",
        keys=(key,),
    )
