"""Names of columns as Trino's Thrift connector takes them.

It takes lower-case letters, digits and underscores, a letter first, and fails on any other name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from hudi_core.errors import SchemaError
from hudi_core.read.connector.metadata import HIDDEN_COLUMNS

_OTHERS: Final = re.compile("[^a-z0-9_]")
_UNNAMED: Final = "column"


def trino_name(name: str) -> str:
    """The name that a column has for Trino: ``_hoodie_commit_time`` is ``hoodie_commit_time``."""
    found = _OTHERS.sub("_", name.lower()).lstrip("_")
    return found if found[:1].isalpha() else f"{_UNNAMED}_{found}".rstrip("_")


def names_of_columns(stored: Iterable[str]) -> Mapping[str, str]:
    """The columns of a table by Trino's names for them.

    Hidden ones too; such a one gives way to one of the table's with its name.
    """
    found: dict[str, str] = {}
    for name in stored:
        known = found.setdefault(trino_name(name), name)
        if known != name:
            raise SchemaError(
                f"The columns {known} and {name} are both {trino_name(name)} to Trino",
                "Rename one of them.",
            )
    for name in HIDDEN_COLUMNS:
        found.setdefault(trino_name(name), name)
    return found
