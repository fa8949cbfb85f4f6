"""Operations on rows, each one a value that a write's steps consult.

A new operation is declared here; besides, it needs a method of :class:`~hudi_core.table.Table` and
what is its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from hudi_core.errors import InvalidOptionError
from hudi_core.model.commit import WriteOperation


class Replaces(Enum):
    """Which file groups a write takes out of the table."""

    NOTHING = "nothing"
    PARTITIONS = "partitions"
    """Those of the partitions that it writes to, or that it names."""
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Operation:
    """What is done with rows.

    Attributes
    ----------
    recorded
        The word that commits record.
    method
        Name of the method of ``Table``.
    combined_by
        Field of the write's options for whether incoming rows with one key are combined.
    participle
        For errors: rows are ... by it.
    by_key
        Whether incoming rows are looked for among the stored ones.
    updates
        Whether an incoming row and the stored one with its key become one row.
    deletes
        Whether the stored rows that are found go, and no incoming row is written.
    has_duplicate_policy
        Whether options decide what becomes of incoming rows whose keys are stored.
    writes_straight
        Whether input tasks write files of their own, sorted where options ask for it.
    new_groups_only
        Whether no row goes to a file group that is there, but for buckets.
    replaces
        Which file groups leave the table.
    adds_keys_once
        Whether a key is in the table at most once afterwards, if it was before.
    """

    recorded: WriteOperation
    method: str
    combined_by: str = "combine_before_insert"
    participle: str = "inserted"
    by_key: bool = False
    updates: bool = False
    deletes: bool = False
    has_duplicate_policy: bool = False
    writes_straight: bool = False
    new_groups_only: bool = False
    replaces: Replaces = Replaces.NOTHING
    adds_keys_once: bool = False

    @property
    def option(self) -> str:
        """What Hudi's option calls it."""
        return self.recorded.value.lower()

    @property
    def is_replacing(self) -> bool:
        """Whether it completes as ``replacecommit``."""
        return self.replaces is not Replaces.NOTHING


UPSERT: Final = Operation(
    WriteOperation.UPSERT,
    "upsert",
    combined_by="combine_before_upsert",
    participle="upserted",
    by_key=True,
    updates=True,
    adds_keys_once=True,
)
INSERT: Final = Operation(WriteOperation.INSERT, "insert", has_duplicate_policy=True)
BULK_INSERT: Final = Operation(
    WriteOperation.BULK_INSERT, "bulk_insert", writes_straight=True, new_groups_only=True
)
DELETE: Final = Operation(
    WriteOperation.DELETE,
    "delete",
    combined_by="combine_before_delete",
    participle="deleted",
    by_key=True,
    deletes=True,
)
INSERT_OVERWRITE: Final = Operation(
    WriteOperation.INSERT_OVERWRITE,
    "insert_overwrite",
    new_groups_only=True,
    replaces=Replaces.PARTITIONS,
    adds_keys_once=True,
)
INSERT_OVERWRITE_TABLE: Final = Operation(
    WriteOperation.INSERT_OVERWRITE_TABLE,
    "insert_overwrite_table",
    new_groups_only=True,
    replaces=Replaces.TABLE,
    adds_keys_once=True,
)
DELETE_PARTITION: Final = Operation(
    WriteOperation.DELETE_PARTITION,
    "delete_partitions",
    participle="deleted",
    deletes=True,
    replaces=Replaces.PARTITIONS,
)
OPERATIONS: Final = (
    UPSERT,
    INSERT,
    BULK_INSERT,
    DELETE,
    INSERT_OVERWRITE,
    INSERT_OVERWRITE_TABLE,
    DELETE_PARTITION,
)
"""In the order of the documentation."""


def operation_recorded(word: str | None) -> Operation | None:
    """The operation that a commit records.

    ``None`` for table services, and for what other writers know.
    """
    return next((one for one in OPERATIONS if one.recorded == word), None)


def operation_named(name: str) -> Operation:
    """The operation of a name: ``Table``'s method or Hudi's option value.

    Raises
    ------
    InvalidOptionError
        There is none.
    """
    for one in OPERATIONS:
        if name.lower() in (one.method, one.option):
            return one
    methods = ", ".join(one.method for one in OPERATIONS)
    raise InvalidOptionError("operation", name, "there is none", f"Use one of {methods}.")
