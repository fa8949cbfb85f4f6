"""Refuses rows whose record keys read like those of other rows.

Which keys those can be, :mod:`hudi_core.keygen.ambiguity` says. Rows of one write are compared with
each other before anything is made of them, and with a stored row where it is found; the columns of
the key are read of those files alone that hold such a key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from hudi_core.base_file.reader import read_column
from hudi_core.engine.base import Engine, TaskContext
from hudi_core.errors import KeyCollisionError
from hudi_core.file_slice.stored_slice import BEYOND, stored_slice
from hudi_core.index.incoming import Scope, key_names, record_keys
from hudi_core.keygen.ambiguity import Ambiguity, KeyAmbiguity
from hudi_core.model.files import BaseFile, PartitionPath
from hudi_core.rows.combine import Positions
from hudi_core.rows.context import WriteContext
from hudi_core.rows.equality import differing_rows
from hudi_core.rows.staging import StagedPart
from hudi_core.schema.table_schema import TableSchema


def ambiguity_of(parts: Sequence[StagedPart]) -> Ambiguity:
    """How ambiguous the record keys of staged rows are."""
    return max((part.ambiguity for part in parts), default=Ambiguity.NONE)


def require_distinct_rows(
    engine: Engine,
    scopes: Sequence[Scope],
    context: WriteContext,
    schema: TableSchema,
    stage: int,
) -> None:
    """Refuse different rows of a write with one record key."""
    if any(ambiguity_of(scope.parts) is Ambiguity.ACTIVE for scope in scopes):
        engine.map_tasks(scopes, partial(_compare, context=context, schema=schema), stage)


def _compare(_: TaskContext, scope: Scope, context: WriteContext, schema: TableSchema) -> None:
    ambiguity = context.key_ambiguity
    if ambiguity is None:
        return
    wanted = key_names(context)
    names = [name for name in scope.parts[0].schema.names if name in wanted]
    rows = scope.sources.table(context, scope.parts, names)
    keys = record_keys(rows, context, schema).combine_chunks()
    coded = keys.dictionary_encode()
    codes = coded.indices.to_numpy()
    often = np.bincount(codes, minlength=len(coded.dictionary)) > 1
    often &= ambiguity.among(coded.dictionary)
    numbers = np.flatnonzero(often[codes])
    if not len(numbers):
        return
    _codes, first, groups = np.unique(codes[numbers], return_index=True, return_inverse=True)
    require_same_rows(
        ambiguity,
        keys.take(pa.array(numbers)),
        rows.take(pa.array(numbers)),
        rows.take(pa.array(numbers[first[groups]])),
        "beside it",
    )


def require_same_rows(
    ambiguity: KeyAmbiguity, keys: pa.StringArray, rows: pa.Table, others: pa.Table, where: str
) -> None:
    """Refuse pairs of rows that have one key and other key columns.

    ``rows`` and ``others`` are pairs and have the columns of the key; ``where`` completes "the row
    ..." in the error.
    """
    ours, theirs = ambiguity.values(rows), ambiguity.values(others)
    differing = np.flatnonzero(differing_rows(ours, theirs))
    if len(differing):
        number = int(differing[0])
        [own], [other] = (some.slice(number, 1).to_pylist() for some in (ours, theirs))
        raise KeyCollisionError.of(str(keys[number]), own, other, where)


def require_same_stored(
    context: WriteContext,
    keys: pa.StringArray,
    rows: Callable[[Positions], pa.Table],
    stored: Callable[[Positions], pa.Table],
    path: PartitionPath,
) -> None:
    """Refuse incoming rows with the key of another stored row.

    ``rows`` and ``stored`` return rows of some of the pairs, with the columns of the key; ``path``
    is the partition of the stored rows.
    """
    ambiguity = context.key_ambiguity
    if ambiguity is None:
        return
    pairs = np.flatnonzero(ambiguity.among(keys))
    if len(pairs):
        where = f"stored in the partition {path!r}" if path else "stored in the table"
        require_same_rows(ambiguity, keys.take(pa.array(pairs)), rows(pairs), stored(pairs), where)


def stored_key_columns(context: WriteContext, file: BaseFile, positions: Positions) -> pa.Table:
    """The columns of the record key of some rows of a file."""
    names = [name for name in context.schema.names if name in key_names(context)]
    beyond = positions >= BEYOND
    if not beyond.any():
        wanted = pa.array(positions)
        return pa.table({one: read_column(context, file.path, one).take(wanted) for one in names})
    own = stored_slice(context, file, names).added_rows(positions[beyond], names)
    if beyond.all():
        return own
    base = stored_key_columns(context, file, positions[~beyond]).cast(own.schema)
    order = np.argsort(np.argsort(beyond, kind="stable"))
    return pa.concat_tables([base, own]).take(pa.array(order))
