"""Options that a stage keeps for its publication."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_core.config.catalog import OPTIONS
from hudi_core.config.commit_keys import CommitConfig
from hudi_core.config.key import Group
from hudi_core.config.merge_keys import MergeKeys
from hudi_core.config.validators import ValidatorsConfig
from hudi_core.config.write import WriteConfig

_OF_PUBLISHERS: Final = (
    *ValidatorsConfig.keys,
    # which options are copied into the commit: of the publisher's they may be credentials
    CommitConfig.metadata_prefix,
    WriteConfig.heartbeat_interval_ms,
    WriteConfig.heartbeat_misses,
    WriteConfig.auto_upgrade,
    WriteConfig.markers_type,
)
"""Options of writes that say nothing about the rows: publishers bring their own."""
_KEPT: Final = frozenset(
    name
    for key in (
        *(key for one in OPTIONS if one.group is Group.WRITE for key in one.keys),
        MergeKeys.partial_update_mode,
    )
    if key not in _OF_PUBLISHERS
    for name in key.names
)


def kept_options(options: Mapping[str, str]) -> dict[str, str]:
    """Those that say how the rows are written.

    All others come with the table that the publisher opened. The record of a stage is a file that
    others can change: it must decide nothing about locks, services, stores or what SQL is run.
    """
    return {key: text for key, text in options.items() if key in _KEPT}
