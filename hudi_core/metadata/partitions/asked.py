"""Which partition an index is that a user names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from hudi_core.errors import TableServiceError
from hudi_core.metadata.partition_types import RECORD_INDEX
from hudi_core.metadata.partitions.names import full_name

_OF_COLUMN: Final = "secondary_index"


class AskedPartition(NamedTuple):
    """A partition that an index makes."""

    name: str
    column: str | None
    kind: str | None


def asked_partition(
    name: str,
    columns: Sequence[str],
    using: str | None,
    keys: Sequence[str],
    *,
    has_options: bool,
) -> AskedPartition:
    """The partition of an index, as Hudi's ``CREATE INDEX`` chooses it."""
    is_of_keys = not has_options and set(columns) == set(keys)
    if using == RECORD_INDEX or (using in (None, _OF_COLUMN) and is_of_keys):
        if not is_of_keys:
            raise TableServiceError(
                f"The record index is of the record key, and not of {', '.join(columns)}",
                f"The record key is {', '.join(keys) or 'generated'}.",
            )
        return AskedPartition(RECORD_INDEX, None, None)
    if len(columns) != 1:
        raise TableServiceError(
            f"The index {name} would be of {len(columns)} columns: {', '.join(columns)}",
            "Name one column; the record index alone is of several.",
        )
    kind = None if using == _OF_COLUMN else using
    is_of_function = bool(kind) or has_options
    return AskedPartition(full_name(name, is_of_function=is_of_function), columns[0], kind)
