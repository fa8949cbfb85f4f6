"""Stored tables that this release can read and write.

And the names of features that it cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hudi_core.config.extension_points import KEY_GENERATOR_POINT
from hudi_core.config.key_generators import KEY_GENERATORS, has_time_based
from hudi_core.config.key_settings import why_unmade
from hudi_core.config.kinds import (
    FIELD_TYPES,
    KeyGeneratorType,
    TableType,
)
from hudi_core.config.merging import unknown_merging
from hudi_core.config.table import TableConfig
from hudi_core.config.timebased import time_based
from hudi_core.errors import InvalidOptionError, UnsupportedTableError
from hudi_core.model.capability import Capability

NOT_BUILT: Final = frozenset(
    {
        Capability.DROPPED_PARTITION_COLUMNS,
        Capability.REORDER_COLUMNS,
    }
)
"""Abilities that a format may have and no part of this release makes use of."""

_ELSEWHERE: Final = "Write to it with Apache Hudi, or copy its rows into a new table."
_COPY: Final = (
    "It can be read. To write, copy its rows into a new table: "
    "new.bulk_insert(table.to_batches()); or write to it with Apache Hudi."
)
_EXPRESSION_INDEX: Final = "expr_index_"
_DROP: Final = "hoodie.datasource.write.drop.partition.columns"
_UNWRITTEN: Final[Mapping[str, tuple[str, str]]] = {
    "hoodie.table.multiple.base.file.formats.enable": ("false", "mixes formats of base files"),
    "hoodie.partition.metafile.use.base.format": ("false", "keeps partition metadata in Parquet"),
    "hoodie.datasource.write.slash.separated.date.partitioning": (
        "false",
        "makes folders of the parts of dates",
    ),
}
"""Properties that change what a writer owes the table: their usual value and what another means."""


def require_readable_table(
    config: TableConfig, base_path: str, *, base_files_only: bool = False
) -> None:
    """Raise ``UnsupportedTableError`` for a table that cannot be read rightly.

    ``base_files_only`` means that rows are wanted as the base files have them, whatever logs say.
    """
    merges = config.table_type is TableType.MERGE_ON_READ and not base_files_only
    for feature in unknown_merging(config) if merges else ():
        raise UnsupportedTableError(base_path, feature, "Read it with Apache Hudi.")
    for feature, hint in _unreadable(config):
        raise UnsupportedTableError(base_path, feature, hint)


def require_writable_table(config: TableConfig, base_path: str) -> None:
    """Raise ``UnsupportedTableError`` for a table that cannot be written without loss.

    ``PluginError`` for one whose key generator or record merger is not installed.
    """
    require_readable_table(config, base_path)
    for feature, hint in _unwritable(config):
        raise UnsupportedTableError(base_path, feature, hint)


def require_copy_on_write(config: TableConfig, base_path: str, what: str) -> None:
    """Refuse what cannot be done yet to tables of the type MERGE_ON_READ."""
    if config.table_type is TableType.MERGE_ON_READ:
        raise UnsupportedTableError(
            base_path,
            f"is of type MERGE_ON_READ, in which this release does not {what}",
            "Use a table of type COPY_ON_WRITE for that.",
        )


def require_no_logged_changes(config: TableConfig, base_path: str) -> None:
    """Refuse tables of the type MERGE_ON_READ that log changes."""
    if config.logs_changes:
        require_copy_on_write(config, base_path, "log changes")


def require_known_zone(config: TableConfig, base_path: str) -> None:
    """Refuse a table whose partitions are in an unknown time zone.

    Raises ``UnsupportedTableError``: rows would be searched and put in the wrong partitions.
    """
    key = config.time_based.needs_zone if config.time_based is not None else None
    if key is not None:
        raise UnsupportedTableError(
            base_path,
            "does not record in which time zone its partitions were made of timestamps, and it was "
            "made by Apache Hudi, which takes that of the process",
            f"Set {key.key} to the zone of the writers before, such as UTC or Asia/Tokyo, with "
            "every write.",
        )


def _unreadable(config: TableConfig) -> Iterator[tuple[str, str]]:
    if config.bootstrap_base_path:
        yield "was bootstrapped from other data (hoodie.bootstrap.base.path)", _ELSEWHERE
    if config.base_file_format != "PARQUET":
        yield f"has base files of format {config.base_file_format}", "Only PARQUET is supported."
    if config.drop_partition_columns:
        yield (
            f"leaves the partition columns out of its files ({_DROP})",
            "Read it with Apache Hudi.",
        )


def _unwritable(config: TableConfig) -> Iterator[tuple[str, str]]:
    if config.version == 6:
        yield "has table version 6", "Run `hudi table upgrade PATH --to 8` (or 9) first."
        yield from (
            (f"has the expression index {name}, which no release kept in that version", _ELSEWHERE)
            for name in config.metadata_partitions
            if name.startswith(_EXPRESSION_INDEX)
        )
    reason = why_unmade(config)
    if reason is not None:
        yield f"stores no record keys and names no columns of them, and {reason}", _COPY
    if config.named_keygen is not None:
        KEY_GENERATOR_POINT.require(config.named_keygen.name)
    elif config.keygen_type not in KEY_GENERATORS:
        name = config.raw.get("hoodie.table.keygenerator.type", config.keygen_type.value)
        if config.keygen_type is KeyGeneratorType.USER_PROVIDED:
            name = config.raw.get("hoodie.table.keygenerator.class", name)
        yield f"makes its keys with the key generator {name}", _ELSEWHERE
    yield from _unwritable_fields(config)
    for feature in unknown_merging(config):
        yield feature, _ELSEWHERE
    if config.raw.get("hoodie.index.bucket.engine", "").strip().upper() == "CONSISTENT_HASHING":
        yield "has consistent-hashing buckets", _ELSEWHERE
    for key, (usual, meaning) in _UNWRITTEN.items():
        if config.raw.get(key, usual).strip().upper() != usual.upper():
            yield f"{meaning} ({key}={config.raw[key]})", _ELSEWHERE


def _unwritable_fields(config: TableConfig) -> Iterator[tuple[str, str]]:
    unknown = sorted(set(config.partition_types) - set(FIELD_TYPES))
    if unknown:
        yield f"has partition fields of the type {unknown[0] or '(none)'}", _ELSEWHERE
    has_times = has_time_based(config.keygen_type, config.partition_types)
    if has_times and config.time_based is None:
        try:
            time_based(config.raw)
        except InvalidOptionError as error:
            reason = f"has a wrong record of how its partitions are made ({error.what})"
            yield reason, "Name the missing option with the write, or write with Apache Hudi."
