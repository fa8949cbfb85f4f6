"""Every declared option in one place: for the reference, and to tell unknown options from known."""

from __future__ import annotations

from typing import Any, Final

from hudi_core.config import (
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
from hudi_core.config.foreign import ABSENT_FEATURES, TUNING_OPTIONS
from hudi_core.config.key import ConfigKey

ALL_KEYS: Final[tuple[ConfigKey[Any], ...]] = (
    *table_keys.CHOSEN_KEYS,
    *merge_keys.KEYS,
    *timebased.KEYS,
    *write_keys.KEYS,
    *schema.KEYS,
    *read.KEYS,
    *lock.KEYS,
    *storage.KEYS,
    *metadata_keys.KEYS,
    *metrics.KEYS,
)
"""Every option a user may give."""

KNOWN_NAMES: Final = frozenset(
    name for key in (*ALL_KEYS, *stored_keys.MANAGED_KEYS) for name in key.names
) | frozenset((*ABSENT_FEATURES, *TUNING_OPTIONS))
"""Every option name that means something here."""

FORMAT_PREFIX: Final = "hoodie.table.format."
"""Options below this prefix belong to the table's format, which checks them itself."""
