"""A move of a table's data files, as its properties state it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hudi_core.config.placement import Placement, placement_of
from hudi_core.errors import InvalidOptionError

MOVE_PROPERTY: Final = "hoodie.storage.move"


class MovePhase(StrEnum):
    """How far a move has come."""

    COPYING = "copying"
    """Files are copied to the other places; the table is what it was."""
    PUBLISHING = "publishing"
    """All files are at both; the format's metadata may name either."""
    DELETING = "deleting"
    """The table has moved, and the other places are those that it had."""


@dataclass(frozen=True, slots=True)
class StorageMove:
    """A move that is not over.

    ``other`` is where else files of the table are: where they go, or where they were.
    """

    phase: MovePhase
    other: Placement

    @property
    def text(self) -> str:
        """The stored form."""
        properties = {name: text for name, text in self.other.properties.items() if text}
        return json.dumps({"phase": self.phase.value, "other": properties}, sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> StorageMove | None:
        """Read the stored form; an empty string is no move."""
        if not text.strip():
            return None
        try:
            found = json.loads(text)
            other = {str(name): str(value) for name, value in found["other"].items()}
            return cls(MovePhase(found["phase"]), placement_of(other))
        except (
            KeyError,
            TypeError,
            AttributeError,
            RecursionError,
            InvalidOptionError,
        ) as error:
            raise ValueError(f"it is no move of a table ({error})") from error


def placement_changes(before: Placement, after: Placement) -> dict[str, str | None]:
    """The changes of properties that replace one placement by another."""
    return {**dict.fromkeys(before.properties), **after.properties}
