"""Record mergers that other distributions provide."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.config.extension_points import RECORD_MERGER_POINT, NamedMerger
from hudi_core.errors import SchemaError


class BaseRecordMerger(ABC):
    """Decides which of several versions of a row survives.

    It gives every version a rank, which depends on the values of its ordering columns and on
    nothing else: the version with the greatest rank survives, among equals the one that came last.
    So the outcome is the same whichever versions meet first. One is made for each task, where the
    task runs: with Spark on an executor.

    Parameters
    ----------
    names
        The table's ordering fields, with dots in the names of fields of structs.
    options
        The table's options that begin with ``hoodie.record.merge.property.<name>.``, without that.
    """

    def __init__(self, names: Sequence[str], options: Mapping[str, str]) -> None:
        self.names, self.options = tuple(names), options

    @abstractmethod
    def ranks(self, columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray | pa.Array:
        """Return the rank of each version.

        Numbers, strings or times, always of one type, and none of them null.

        Parameters
        ----------
        columns
            The values of the ordering fields.
        """

    def refusal(self, types: Sequence[pa.DataType]) -> str | None:
        """Why such ordering columns cannot be ranked; ``None`` where they can.

        Asked before a table is created and before each write. Completes the sentence "The record
        merger ... cannot rank by these columns: ...".
        """
        del types
        return None


_RANKS: Final = (
    pt.is_integer,
    pt.is_floating,
    pt.is_boolean,
    pt.is_decimal,
    pt.is_string,
    pt.is_date,
    pt.is_timestamp,
)


def record_merger(chosen: NamedMerger, names: Sequence[str]) -> BaseRecordMerger:
    """Return the record merger that another distribution provides for a table."""
    return RECORD_MERGER_POINT.make(
        chosen.name, BaseRecordMerger, lambda kind: kind(names, dict(chosen.options))
    )


def require_rankable(
    chosen: NamedMerger, names: Sequence[str], types: Sequence[pa.DataType]
) -> None:
    """Refuse ordering columns that a record merger cannot rank."""
    merger = record_merger(chosen, names)
    guard = RECORD_MERGER_POINT.guard(chosen.name)
    reason = guard.call("refusal", lambda: merger.refusal(types))
    guard.require("refusal", reason, (str, type(None)), "a reason or None")
    if reason is not None:
        raise SchemaError(
            f"The record merger {chosen.name!r} cannot rank by these columns: {reason}",
            "Create a table with other ordering fields.",
            columns=list(names),
        )


def ranks(
    chosen: NamedMerger, names: Sequence[str], columns: Sequence[pa.ChunkedArray]
) -> pa.ChunkedArray:
    """Return the ranks of versions."""
    merger = record_merger(chosen, names)
    guard = RECORD_MERGER_POINT.guard(chosen.name)
    found = guard.call("ranks", lambda: merger.ranks(columns))
    guard.require("ranks", found, (pa.Array, pa.ChunkedArray), "an Arrow array")
    rows = len(columns[0])
    if len(found) != rows:
        guard.raise_violation(f"ranks returned {len(found)} ranks for {rows} rows")
    if found.null_count:
        guard.raise_violation(f"ranks returned {found.null_count} nulls")
    if not any(fits(found.type) for fits in _RANKS):
        guard.raise_violation(f"ranks returned values of the type {found.type}")
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])
