"""Versions of a log: each is put if absent, once.

deltalake reads the log and makes its checkpoints. It does not make versions: it spells paths in a
way that not every engine goes by, and has no call for new columns and files in one version.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from typing import Any, Final

from deltalake import DeltaTable

from delta_format.handles import later
from delta_format.library import LIBRARY_ERRORS
from delta_format.location import LOG_FOLDER, root_of
from delta_format.log import BASE, Head
from delta_format.log_actions import LogAction, lines, now_ms
from delta_format.log_files import file_of, sweep
from hudi_core.spi import AlreadyExistsError, CorruptMetadataError, MetaClientView, StorageError

WRITE: Final = "WRITE"
"""What engines call a version where no other name says more."""
_CHECKPOINT_INTERVAL: Final = "delta.checkpointInterval"
_OFTEN: Final = 100
"""Versions between checkpoints where the log says no number of them, as in deltalake."""
_LAST_CHECKPOINT_CRC: Final = f"{LOG_FOLDER}/._last_checkpoint.crc"
"""What Hadoop has beside the file that deltalake writes again; see the storage's checksums."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version that is to be made.

    ``report`` is in this project's words, ``operation`` as engines name it in the log's history.
    ``actions`` is empty for a version that only reports. ``with_checkpoint``: even when none is
    due.
    """

    report: Mapping[str, Any]
    actions: Sequence[LogAction] = field(default=())
    operation: str = WRITE
    with_checkpoint: bool = False


def make_next(meta_client: MetaClientView, head: Head, new: NewVersion) -> None:
    """Put a version behind the newest one that was read.

    After :class:`StorageError` the version may be there, or appear later.
    """
    base = head.version
    _put(meta_client, base + 1, new, {BASE: base})
    if meta_client.root.head(file_of(base)) is None:
        # so late that others have gone on and deleted old versions, this one's among them: it is
        # absent for that reason, and no reader opens what was put
        raise AlreadyExistsError(file_of(base + 1))
    _checkpoint(meta_client, head, base + 1, is_due=new.with_checkpoint)


def make_first(meta_client: MetaClientView, new: NewVersion) -> None:
    """Put the first version of a log."""
    _put(meta_client, 0, new, {})


def _put(
    meta_client: MetaClientView, number: int, new: NewVersion, more: Mapping[str, Any]
) -> None:
    held = meta_client.held
    if held is not None and held.value is not None:
        held.earlier, held.value = held.value, None
    info: LogAction = {
        "commitInfo": {
            "timestamp": now_ms(),
            "operation": new.operation,
            # what Delta of Spark shows of a version; keys of other names it passes over
            "operationParameters": dict(new.report),
            "engineInfo": _engine(),
            **more,
            **new.report,
        }
    }
    meta_client.root.put_if_absent(file_of(number), lines([info, *new.actions]))


def _checkpoint(meta_client: MetaClientView, head: Head, number: int, *, is_due: bool) -> None:
    """Make the checkpoint that is due with a version, and tidy up.

    No error of it is one of the commit: the log is right without a checkpoint.
    """
    try:
        if not is_due and (number + 1) % _interval(head.table.metadata().configuration):
            return
        table = _at_newest(meta_client, head)
        if root_of(meta_client).startswith("/"):
            meta_client.root.delete(_LAST_CHECKPOINT_CRC)
        table.create_checkpoint()
        sweep(meta_client)
    except (*LIBRARY_ERRORS, CorruptMetadataError, StorageError) as error:
        _log.warning("No checkpoint of the Delta log of %s at %s: %s", head.root, number, error)


def _at_newest(meta_client: MetaClientView, head: Head) -> DeltaTable:
    """The table that was read, at the version that was put."""
    held = meta_client.held
    if held is None or held.earlier is not head or head.handle is None:
        head.table.update_incremental()
        return head.table
    handle = later(meta_client, head.handle)
    held.earlier = replace(head, table=handle.table, handle=handle)
    return handle.table


def _interval(configuration: Mapping[str, str]) -> int:
    """How many versions there are between checkpoints."""
    text = configuration.get(_CHECKPOINT_INTERVAL, "")
    return (int(text) if text.isdecimal() else 0) or _OFTEN


@cache
def _engine() -> str:
    return f"hudi-delta-format/{version('hudi-delta-format')}"
