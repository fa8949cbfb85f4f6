"""The options of the Iceberg format."""

from __future__ import annotations

from typing import Final

from hudi_core.spi import FormatOption

TYPES: Final = ("glue", "hive", "rest", "sql")
"""Kinds of catalogs; others of pyiceberg's take no commits."""


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("it is neither true nor false")
    return text.lower() == "true"


def _names(text: str) -> tuple[str, ...]:
    parts = tuple(text.split("."))
    if len(parts) < 2 or not all(parts):
        raise ValueError("it is not a namespace and a name: use the form namespace.table")
    return parts


LOCATION: Final = FormatOption(
    "location",
    None,
    str,
    "Folder, of the table, above that of the Iceberg metadata.",
    default_text="(the table's own folder)",
    is_stored=True,
)
TYPE: Final = FormatOption(
    "catalog.type",
    None,
    str.lower,
    "Kind of the catalog that holds the table.",
    choices=TYPES,
    default_text="(none: the table's folder)",
)
NAME: Final = FormatOption("catalog.name", "hudi", str, "Name that the catalog goes by.")
IDENTIFIER: Final = FormatOption[tuple[str, ...]](
    "catalog.identifier",
    (),
    _names,
    "Namespace and name of the table in its catalog, with full stops in between.",
    default_text="default.<table name>",
)
CREATE_NAMESPACE: Final = FormatOption(
    "catalog.create-namespace",
    False,
    _boolean,
    "Whether a namespace that the catalog does not have is made with the table. Otherwise it is "
    "refused.",
)
URI: Final = FormatOption("catalog.uri", None, str, "Address of the catalog.")
WAREHOUSE: Final = FormatOption(
    "catalog.warehouse", None, str, "Which of the catalog's warehouses, where it has several."
)
OTHERS: Final = FormatOption(
    "catalog.", None, str, "Whatever else pyiceberg takes for a catalog of the type."
)
VERSION: Final = FormatOption(
    "format-version",
    2,
    int,
    "Version of the Iceberg format: with 3, which not all engines read, deleted rows are deletion "
    "vectors, and rows have ids. A repair with this option makes a table 3 that was made without "
    "it.",
    choices=("2", "3"),
    is_stored=True,
)

OPTIONS: Final = (
    VERSION,
    LOCATION,
    TYPE,
    NAME,
    IDENTIFIER,
    CREATE_NAMESPACE,
    URI,
    WAREHOUSE,
    OTHERS,
)
