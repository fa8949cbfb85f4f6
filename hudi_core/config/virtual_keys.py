"""Which tables can have virtual record keys (RFC-21)."""

from __future__ import annotations

from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.errors import InvalidOptionError

_NO_KEY = "keys that are generated when rows are written cannot be made again of a row"


def require_possible_keys(config: TableConfig) -> None:
    """Refuse a new table whose virtual keys cannot be."""
    if config.makes_keys and not config.record_key_fields:
        switch = TableKeys.virtual_keys if config.virtual_keys else TableKeys.populate_meta_fields
        raise InvalidOptionError(
            switch.key,
            str(config.virtual_keys).lower(),
            f"the table has no record key, and {_NO_KEY}",
            f"Set {TableKeys.record_key_fields.key}, or leave it out.",
        )
    if config.virtual_keys and not config.populate_meta_fields:
        raise InvalidOptionError(
            TableKeys.virtual_keys.key,
            "true",
            f"with {TableKeys.populate_meta_fields.key}=false no meta column is stored anyway",
            "Give one of the two.",
        )
    if config.virtual_keys:
        return
    for key, value in (
        (TableKeys.key_concatenator, config.key_concatenator),
        (TableKeys.keeps_virtual_keys, config.keeps_virtual_keys),
    ):
        if value:
            raise InvalidOptionError(
                key.key,
                str(value).lower(),
                "it is about virtual keys, which the table does not have",
                f"Set {TableKeys.virtual_keys.key}=true as well, or leave it out.",
            )


def why_unmade(config: TableConfig) -> str | None:
    """Why keys of a table cannot be made; ``None`` if possible."""
    return _NO_KEY if config.makes_keys and not config.record_key_fields else None
