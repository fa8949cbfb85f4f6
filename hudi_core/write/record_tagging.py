"""Locating rows by the record index: keys to shards, shards to file groups, file groups to rows.

Four rounds of tasks: the keys are collected; each task asks some shards; of the files that they
name, and of no others, each task looks for the keys that are said to be there; and what was found
is settled as it is with every other index.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hudi_core.engine.base import Engine, TaskContext
from hudi_core.index.base import IntArray
from hudi_core.index.record_index import Locations, RecordIndex, ShardLookup
from hudi_core.model.files import BaseFile, FileGroupId, PartitionPath
from hudi_core.write.context import WriteContext
from hudi_core.write.incoming import LeftIncoming, Scope
from hudi_core.write.locating import locate_hinted, to_table
from hudi_core.write.stage_files import Left, find, leave
from hudi_core.write.tagging import Settlement, Tagged, Tagging, file_chunks

BaseFiles = dict[PartitionPath, tuple[BaseFile, ...]]


@dataclass(frozen=True, slots=True)
class RecordTagging:
    """The tasks that locate rows by the record index.

    Attributes
    ----------
    tagging
        What is the same with every index.
    """

    tagging: Tagging

    def run(
        self,
        engine: Engine,
        index: RecordIndex,
        scope: Scope,
        files_of: Callable[[Collection[PartitionPath]], BaseFiles],
        stage: int,
    ) -> tuple[BaseFiles, dict[PartitionPath, Tagged]]:
        """Locate the rows of a write.

        Parameters
        ----------
        index
            The index.
        scope
            The rows, without files.
        files_of
            Returns the latest base files of some partitions.

        Returns
        -------
        tuple
            The base files of the partitions concerned, and what becomes of these partitions.
        """
        (incoming,) = engine.map_tasks([scope], self.tagging.collect, stage)
        looks = [_Look(incoming, lookup) for lookup in index.lookups(sum(scope.sources.rows))]
        answers = engine.map_tasks(looks, self.ask, stage)
        named = {group for answer in answers for group in answer.file_groups}
        files = files_of({*scope.sources.paths, *(group.partition_path for group in named)})
        flat = tuple((path, file) for path, some in files.items() for file in some)
        scope = replace(scope, files=flat)
        ordinals = {
            group: ordinal
            for ordinal, (path, file) in enumerate(flat)
            if (group := FileGroupId(path, file.name.file_id)) in named
        }
        hints = tuple(answer.hints(ordinals) for answer in answers)
        pieces = [
            _Piece(scope, incoming, chunk, hints)
            for chunk in file_chunks(scope, sorted(ordinals.values()))
        ]
        weights = [sum(flat[one][1].size for one in piece.files) for piece in pieces]
        found = engine.map_tasks(pieces, self.look, stage, weights)
        settlement = Settlement(scope, incoming, tuple(found))
        (tagged,) = engine.map_tasks([settlement], self.tagging.settle, stage)
        return files, {one.partition_path: one for one in tagged}

    def ask(self, task: TaskContext, item: _Look) -> _Answer:
        """Ask some shards for the keys that they hold."""
        context = self._context
        keys = find(context, item.incoming.keys).column("key").combine_chunks()
        found = item.lookup.find(keys)
        left = leave(context, task, "where", _locations(found), self.tagging.in_memory)
        return _Answer(left, found.file_groups)

    def look(self, task: TaskContext, item: _Piece) -> Left:
        """Look into some files for the keys that are said to be there."""
        context = self._context
        incoming = item.incoming.find(context)
        said = [hint.find(context) for hint in item.hints]
        keys = np.concatenate([one for one, _ in said])
        files = np.concatenate([one for _, one in said])
        hinted = {ordinal: np.sort(keys[files == ordinal]) for ordinal in item.files}
        found = to_table(locate_hinted(item.scope, incoming, context, hinted))
        return leave(context, task, "found", found, self.tagging.in_memory)

    @property
    def _context(self) -> WriteContext:
        return self.tagging.context


@dataclass(frozen=True, slots=True)
class _Look:
    incoming: LeftIncoming
    lookup: ShardLookup


@dataclass(frozen=True, slots=True)
class _Hint:
    """Where keys are said to be; ``files`` has the ordinal of each file group's file, -1 of those
    that are gone."""

    left: Left
    files: tuple[int, ...]

    def find(self, context: WriteContext) -> tuple[IntArray, IntArray]:
        """Return ordinals of keys, and for each the ordinal of the file."""
        table = find(context, self.left)
        groups = table.column("group").to_numpy()
        files = np.array([*self.files, -1], dtype=np.int32)
        return table.column("key").to_numpy(), files[groups]


@dataclass(frozen=True, slots=True)
class _Answer:
    """What some shards say; ``left`` has the keys with ordinals of the file groups."""

    left: Left
    file_groups: tuple[FileGroupId, ...]

    def hints(self, ordinals: Mapping[FileGroupId, int]) -> _Hint:
        """Return which files that means."""
        return _Hint(self.left, tuple(ordinals.get(group, -1) for group in self.file_groups))


@dataclass(frozen=True, slots=True)
class _Piece:
    scope: Scope
    incoming: LeftIncoming
    files: tuple[int, ...]
    hints: tuple[_Hint, ...]


def _locations(found: Locations) -> pa.Table:
    return pa.table(
        {"key": pa.array(found.keys, pa.int32()), "group": pa.array(found.groups, pa.int32())}
    )
