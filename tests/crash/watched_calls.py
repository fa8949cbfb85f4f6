"""Every call that changes a table, of whatever layer: what the crash rig counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hudi_core.errors import StorageError
from hudi_core.plugin.host import FormatHost
from tests.crash.counting_storage import CountedSteps, Fault

HOOKS: Final = (
    *("complete_write", "complete_clustering", "complete_schema_change"),
    *("complete_rollback", "before_rollback"),
)


def counted(fault: Fault | None, steps: CountedSteps | None = None) -> CountedSteps:
    """Count what changes a table: the disk, data files, and what formats are told."""
    steps = steps or CountedSteps(fault)
    for hook in HOOKS:
        steps.watch(FormatHost, hook, name=_of("the format"), error=_format_error)
    return steps


def _of(what: str) -> Callable[..., str]:
    return lambda *_, **__: f"of {what}"


def _format_error() -> Exception:
    return StorageError("The store of the format does not answer", "Try again later.")
