"""Kinds of tables that random histories and writers that die are tried on, and who reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from hudi_core.model.files import BaseFileName

STORED: Final = "plain"
SPREAD: Final = "spread"
VIRTUAL: Final = "virtual"
BARE: Final = "bare"
LOGGED: Final = "logged"
LOGGED_9: Final = "logged, version 9"
LOGGED_BARE: Final = "logged, bare"
SPLIT: Final = "split"
_NATIVE_KINDS: Final = (LOGGED, LOGGED_9, LOGGED_BARE)
LOGGED_KINDS: Final = (*_NATIVE_KINDS, SPLIT)
"""Of the type MERGE_ON_READ, at first."""
_LOGGED: Final = {"hoodie.table.type": "MERGE_ON_READ"}
MODE: Final = {"hoodie.table.merge-on-read.mode": "split"}
_STORAGE_PATH: Final = "hoodie.storage.path"


def storage_path(table: Path) -> Path:
    """Return where the data files of a spread table are: beside the table."""
    return table.with_name(f"{table.name}-store")


def _spread(table: Path) -> Mapping[str, str]:
    return {
        _STORAGE_PATH: str(storage_path(table).absolute()),
        "hoodie.storage.strategy.class": "object_store",
        "hoodie.storage.strategy.hash.bits": "4",
    }


_MADE: Final[Mapping[str, Callable[[Path], Mapping[str, str]]]] = {
    STORED: lambda _: {},
    # data files below prefixes of a storage path
    SPREAD: _spread,
    # rows that tell when they were written, and not their keys
    VIRTUAL: lambda _: {"hoodie.recordkey.virtual.enabled": "true"},
    # rows without any meta column
    BARE: lambda _: {"hoodie.populate.meta.fields": "false"},
    # changed rows in log files, and blocks of Hudi's default kind, or without keys
    LOGGED: lambda _: _LOGGED,
    LOGGED_9: lambda _: {
        **_LOGGED,
        "hoodie.write.table.version": "9",
        "hoodie.logfile.data.block.format": "avro",
    },
    # changed rows in other file groups, and logs that delete them
    SPLIT: lambda _: {**_LOGGED, **MODE},
    LOGGED_BARE: lambda _: {**_LOGGED, "hoodie.populate.meta.fields": "false"},
}
KINDS: Final = tuple(one for one in _MADE if one not in LOGGED_KINDS)
"""Those of the type COPY_ON_WRITE."""


def is_possible(kind: str, format_name: str) -> bool:
    """Whether there are tables of a kind in a format: logs that have rows are Hudi's alone."""
    return kind not in _NATIVE_KINDS or format_name == "native"


def creation_options(kind: str, table: Path) -> Mapping[str, str]:
    """Return the options that make a new table one of a kind."""
    return _MADE[kind](table)


def data_root(table: Path) -> Path:
    """Return where a table says that its data files are, read without the project's code."""
    stored = _properties(table)
    return Path(stored[_STORAGE_PATH]) if _STORAGE_PATH in stored else table


def hudi_rs_reads(table: Path) -> bool:
    """Return whether hudi-rs finds the rows.

    It looks for files in the table's folder alone, and takes the partition fields of a custom key
    generator (``city:SIMPLE``) for names of columns, which it says. Where there is no metadata
    table it fails on files of other writers, as it does in tables of Hudi's own making: see
    ``test_hudi_rs_fails_on_files_of_others_without_a_metadata_table``.
    """
    stored = _properties(table)
    is_custom = ":" in stored.get("hoodie.table.partition.fields", "")
    if _STORAGE_PATH in stored or is_custom:
        return False
    if "files" in stored.get("hoodie.table.metadata.partitions", "").split(","):
        return True
    files = (one for one in table.rglob("*.parquet") if ".hoodie" not in one.parts)
    return all(BaseFileName.parse(one.name) for one in files)


def _properties(table: Path) -> Mapping[str, str]:
    file = table / ".hoodie/hoodie.properties"
    lines = file.read_text().splitlines() if file.exists() else []
    pairs = (line.split("=", 1) for line in lines if "=" in line)
    return {name: value.replace("\\:", ":") for name, value in pairs}
