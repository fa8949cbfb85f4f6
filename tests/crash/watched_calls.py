"""Every call that changes a table, of whatever layer: what the crash rig counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from deltalake.table import TableAlterer

import delta_format.creation as delta_creation
from hudi_core.errors import StorageError
from hudi_core.plugin.host import FormatHost
from tests.crash.counting_storage import CountedSteps, Fault

HOOKS: Final = (
    *("complete_write", "complete_schema_change"),
    *("complete_rollback", "before_rollback"),
)


def counted(fault: Fault | None) -> CountedSteps:
    """Count what changes a table: the disk, data files, and what formats and libraries are told."""
    steps = CountedSteps(fault)
    for hook in HOOKS:
        steps.watch(FormatHost, hook, name=_of("the format"), error=_format_error)
    for call in ("create_write_transaction", "restore"):
        steps.watch(
            DeltaTable, call, name=_of("deltalake"), error=_library_error, torn=_torn_version
        )
    for call in ("add_columns", "set_table_properties"):
        steps.watch(
            TableAlterer,
            call,
            name=_of("deltalake"),
            error=_library_error,
            torn=lambda alterer, *_, **__: _torn_version(alterer.table),
        )
    steps.watch(
        delta_creation,
        "create_table_with_add_actions",
        name=_of("deltalake"),
        error=_library_error,
    )
    return steps


def _of(what: str) -> Callable[..., str]:
    return lambda *_, **__: f"of {what}"


def _format_error() -> Exception:
    return StorageError("The store of the format does not answer", "Try again later.")


def _library_error() -> Exception:
    return CommitFailedError("Failed to commit transaction: 0")


def _torn_version(table: DeltaTable, *_: Any, **__: Any) -> None:
    """Leave what deltalake leaves that dies before it gives a version its name."""
    log = Path(table.table_uri.removeprefix("file://")) / "_delta_log"
    (log / "_commit_5c1d8c5e-0d4e-4d2c-9f0c-2a8a5a7b1d11.json.tmp").write_bytes(b'{"commitIn')
