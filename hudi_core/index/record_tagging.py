"""Tags rows by the record index: shards, then files, then rows.

Four rounds of tasks: the keys are collected; each task asks some shards; of the files that they
name, and of no others, each task looks for the keys that are said to be there; and what was found
is decided as it is with every other index. With an index that is kept by partitions each partition
is for itself, and the tasks of all share the rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hudi_core.engine.base import Engine, TaskContext
from hudi_core.errors import CorruptMetadataError
from hudi_core.index.incoming import Scope, SpilledIncoming
from hudi_core.index.locating import locate_hinted, to_table
from hudi_core.index.record_index import Locations, RecordIndex, ShardLookup
from hudi_core.index.tagging import MatchMerge, Tagged, Tagging, file_chunks
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.partition_types import RECORD_INDEX
from hudi_core.metadata.table import METADATA_FOLDER
from hudi_core.model.files import BaseFile, FileGroupId, PartitionPath
from hudi_core.rows.combine import IntArray
from hudi_core.rows.context import WriteContext
from hudi_core.rows.stage_files import SpillRef, load, spill

BaseFiles = dict[PartitionPath, tuple[BaseFile, ...]]


@dataclass(frozen=True, slots=True)
class RecordTagging:
    """The tasks that locate rows by the record index."""

    tagging: Tagging

    def run(
        self,
        engine: Engine,
        index: RecordIndex,
        scopes: Sequence[Scope],
        files_of: Callable[[Collection[PartitionPath]], BaseFiles],
        stage: int,
    ) -> tuple[BaseFiles, dict[PartitionPath, Tagged]]:
        """Locate the rows of a write.

        ``scopes`` have no files: one of all rows, or with an index that is kept by partitions one
        for each. Returned are the base files of the partitions concerned, and what becomes of these
        partitions.
        """
        left = engine.map_tasks(scopes, self.tagging.collect, stage)
        looks = [
            _Look(number, incoming, lookup)
            for number, (scope, incoming) in enumerate(zip(scopes, left, strict=True))
            for lookup in index.lookups(sum(scope.sources.rows), self._owner(scope))
        ]
        answers: list[list[_Answer]] = [[] for _ in scopes]
        for look, answer in zip(looks, engine.map_tasks(looks, self.ask, stage), strict=True):
            answers[look.scope].append(answer)
        paths = set[PartitionPath]()
        if self._context.knows_partitions:
            paths = {path for scope in scopes for path in scope.sources.paths}
        if self._context.is_global:
            paths |= {
                group.partition_path
                for some in answers
                for answer in some
                for group in answer.file_groups
            }
        files = files_of(paths)
        pieces: list[tuple[int, _Piece]] = []
        found: list[list[SpillRef]] = [[] for _ in scopes]
        with_files = [self._with_files(scope, files) for scope in scopes]
        for number, (scope, incoming) in enumerate(zip(with_files, left, strict=True)):
            ordinals = self._ordinals(scope, answers[number])
            some = _pieces(scope, incoming, answers[number], ordinals)
            pieces += [(number, piece) for piece in some]
        weights = [sum(one.scope.files[file][1].size for file in one.files) for _, one in pieces]
        looked = engine.map_tasks([one for _, one in pieces], self.look, stage, weights)
        for (number, _), one in zip(pieces, looked, strict=True):
            found[number].append(one)
        merges = [
            MatchMerge(scope, incoming, tuple(some))
            for scope, incoming, some in zip(with_files, left, found, strict=True)
        ]
        tagged = engine.map_tasks(merges, self.tagging.merge_matches, stage)
        return files, {one.partition_path: one for some in tagged for one in some}

    def _owner(self, scope: Scope) -> PartitionPath | None:
        """Return the data partition whose shards hold a scope's keys."""
        if self._context.is_global:
            return None
        (path,) = scope.sources.paths
        return path

    def _with_files(self, scope: Scope, files: BaseFiles) -> Scope:
        paths = files if self._context.is_global else scope.sources.paths
        return replace(
            scope, files=tuple((path, file) for path in paths for file in files.get(path, ()))
        )

    def _ordinals(self, scope: Scope, answers: Sequence[_Answer]) -> dict[FileGroupId, int]:
        """The file's ordinal of each file group that the index names.

        A file group that is not there raises ``CorruptMetadataError``: its keys would be taken for
        new ones.
        """
        named = {group for answer in answers for group in answer.file_groups}
        found = {
            group: ordinal
            for ordinal, (path, file) in enumerate(scope.files)
            if (group := FileGroupId(path, file.name.file_id)) in named
        }
        gone = sorted(named - found.keys())
        if gone:
            raise CorruptMetadataError(
                f"{self._context.base_path}/{METADATA_FOLDER}/{RECORD_INDEX}",
                f"it says that keys are in the file group {gone[0].file_id} of partition "
                f"{gone[0].partition_path!r}, which is not there"
                + (f"; and in {len(gone) - 1} more of that kind" if len(gone) > 1 else ""),
                REBUILD,
            )
        return found

    def ask(self, task: TaskContext, item: _Look) -> _Answer:
        """Ask some shards for the keys that they hold."""
        context = self._context
        keys = load(context, item.incoming.keys).column("key").combine_chunks()
        found = item.lookup.find(keys)
        left = spill(context, task, "where", _locations(found), self.tagging.in_memory)
        return _Answer(left, found.file_groups)

    def look(self, task: TaskContext, item: _Piece) -> SpillRef:
        """Probe some files for the keys that the index names."""
        context = self._context
        incoming = item.incoming.load(context)
        stated = [hint.load(context) for hint in item.hints]
        keys = np.concatenate([one for one, _ in stated])
        files = np.concatenate([one for _, one in stated])
        hinted = {ordinal: np.sort(keys[files == ordinal]) for ordinal in item.files}
        found = to_table(locate_hinted(item.scope, incoming, context, hinted))
        return spill(context, task, "found", found, self.tagging.in_memory)

    @property
    def _context(self) -> WriteContext:
        return self.tagging.context


@dataclass(frozen=True, slots=True)
class _Look:
    """Keys to probe in some shards, and the number of their scope."""

    scope: int
    incoming: SpilledIncoming
    lookup: ShardLookup


@dataclass(frozen=True, slots=True)
class _Hint:
    """Where keys are said to be.

    ``files`` has the ordinal of each file group's file.
    """

    left: SpillRef
    files: tuple[int, ...]

    def load(self, context: WriteContext) -> tuple[IntArray, IntArray]:
        """Return ordinals of keys, and for each the ordinal of the file."""
        table = load(context, self.left)
        groups = table.column("group").to_numpy()
        return table.column("key").to_numpy(), np.array(self.files, dtype=np.int32)[groups]


@dataclass(frozen=True, slots=True)
class _Answer:
    """Locations from some shards; ``left`` has keys with group ordinals."""

    left: SpillRef
    file_groups: tuple[FileGroupId, ...]

    def hints(self, ordinals: Mapping[FileGroupId, int]) -> _Hint:
        """Return which files that means."""
        return _Hint(self.left, tuple(ordinals[group] for group in self.file_groups))


@dataclass(frozen=True, slots=True)
class _Piece:
    scope: Scope
    incoming: SpilledIncoming
    files: tuple[int, ...]
    hints: tuple[_Hint, ...]


def _pieces(
    scope: Scope,
    incoming: SpilledIncoming,
    answers: Sequence[_Answer],
    ordinals: Mapping[FileGroupId, int],
) -> list[_Piece]:
    """The files of a scope that hold keys, as the index says."""
    hints = tuple(answer.hints(ordinals) for answer in answers)
    chunks = file_chunks(scope, sorted(ordinals.values()))
    return [_Piece(scope, incoming, chunk, hints) for chunk in chunks]


def _locations(found: Locations) -> pa.Table:
    return pa.table(
        {"key": pa.array(found.keys, pa.int32()), "group": pa.array(found.groups, pa.int32())}
    )
