"""What a lock has to know of the table that it locks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

import xxhash

from hudi_core.errors import InvalidOptionError
from hudi_core.model.protocols import Storage

Value = TypeVar("Value")
_SEED: Final = 0xFFFFFFFF_DABADABA
"""Hudi's, an ``int`` of Java that is made a ``long``."""


@dataclass(frozen=True, slots=True)
class LockPlace:
    """A table that is to be locked.

    Attributes
    ----------
    base_path
        Its path, spelt as its user does.
    storage
        Its store; only a lock in the store needs it.
    name
        Its name, if known.
    """

    base_path: str
    storage: Storage | None = None
    name: str | None = None

    @property
    def hashed_path(self) -> str:
        """The name of a lock that Hudi makes from a path.

        Writers that spell the path in other ways have other locks, but for `s3a://` and `s3://`.
        """
        path = self.base_path
        if path[:6].lower() == "s3a://":
            path = "s3://" + path[6:]
        return xxhash.xxh64(path.encode(), seed=_SEED).hexdigest().upper()

    def name_for(self, key: str, given: str | None) -> str:
        """The given name of a lock, or else that of the table.

        Raises
        ------
        InvalidOptionError
            Neither is known.
        """
        found = given or self.name
        if found is None:
            raise InvalidOptionError(
                key, "", "the table's name is not known here", "Give the name of the lock."
            )
        return found


def required(key: str, value: Value | None, provider: str) -> Value:
    """The value of an option that a lock cannot do without."""
    if not value:
        raise InvalidOptionError(
            key, "", f"the lock {provider} needs it", "All writers of a table give the same value."
        )
    return value
