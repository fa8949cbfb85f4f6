"""How keys spell values, and how a table stores that choice."""

from __future__ import annotations

from typing import Final

from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.time_zone import UTC, stored_zone
from hudi_core.errors import InvalidOptionError
from hudi_core.model.key_form import KeyForm

_JAVA: Final = {True: "17", False: "21"}
"""A release of Java for each way of spelling floating-point numbers."""


def key_form(config: TableConfig) -> KeyForm:
    """The spelling of timestamps and floating-point numbers in keys and paths.

    Refused where timestamps are strings in the zone of this process, which has no name.
    """
    zone = None
    if config.consistent_timestamps:
        zone = config.local_zone or (None if config.timezone == "LOCAL" else UTC)
        if zone is None:
            raise InvalidOptionError(
                TableKeys.local_zone.key,
                None,
                "keys spell timestamps as clocks show them, and this process's zone has no name",
                "Set it to the zone of the table's other writers.",
            )
    return KeyForm(zone, bool(config.old_floats))


def form_properties(config: TableConfig) -> dict[str, str]:
    """The properties of a spelling that is not the default."""
    found = {}
    if config.consistent_timestamps:
        found[TableKeys.consistent_timestamps.key] = "true"
        zone = key_form(config).timestamp_zone
        if zone not in (None, UTC) or config.timezone == "LOCAL":
            found[TableKeys.local_zone.key] = stored_zone(zone or UTC)
    if config.old_floats is not None:
        found[TableKeys.old_floats.key] = _JAVA[config.old_floats]
    return found
