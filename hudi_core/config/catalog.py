"""Every declared option in one place: for the reference, and to tell unknown options from known."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from hudi_core.config import (
    commit_keys,
    lock,
    merge_keys,
    metadata_keys,
    metrics,
    read,
    schema,
    storage,
    stored_keys,
    table_keys,
    timebased,
    write_keys,
)
from hudi_core.config.foreign import foreign_options
from hudi_core.config.key import ConfigKey

ALL_KEYS: Final[tuple[ConfigKey[Any], ...]] = (
    *table_keys.CHOSEN_KEYS,
    *merge_keys.KEYS,
    *timebased.KEYS,
    *write_keys.KEYS,
    *commit_keys.KEYS,
    *schema.KEYS,
    *read.KEYS,
    *lock.KEYS,
    *storage.KEYS,
    *metadata_keys.KEYS,
    *metrics.KEYS,
)
"""Every option a user may give."""

DECLARED_NAMES: Final = frozenset(
    name for key in (*ALL_KEYS, *stored_keys.MANAGED_KEYS) for name in key.names
)
"""Every name, aliases too, under which an option or a stored property is declared."""

FORMAT_PREFIX: Final = "hoodie.table.format."
"""Options below this prefix belong to the table's format, which checks them itself."""


@cache
def known_names() -> frozenset[str]:
    """Every option name of this project or of Hudi, without patterns."""
    return DECLARED_NAMES | foreign_options().names


@cache
def spellings() -> Mapping[str, str]:
    """Known names by their spelling in lower case, which Spark hands over."""
    known = known_names()
    return {name.lower(): name for name in known if name.lower() not in known}
