"""Tables of bare timelines, and archivals or cleans of them that die at any step of the disk."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hudi_core.config.kinds import TableType
from hudi_core.config.table import TableConfig
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.actions import RollbackMetadata
from hudi_core.model.files import BasePath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.storage.disk import Disk
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.serde import encode
from tests.samples import IS_WHOLE, TAKES_A_THIRD, turn
from tests.unit.mortal_disk import Killed, MortalDisk

CONFIG = TableConfig(name="t", record_key_fields=("id",), partition_fields=("p",))
LOGS = TableConfig(
    name="t", record_key_fields=("id",), partition_fields=("p",), table_type=TableType.MERGE_ON_READ
)


WAYS_TO_DIE = ("before", "after", "torn")
DEATHS_APART = 1 if IS_WHOLE else len(WAYS_TO_DIE)
"""How many steps of the disk lie between two deaths of one way."""
DEATHS_FAR_APART = 9 if TAKES_A_THIRD else DEATHS_APART
"""The same for actions that take long."""

DONE = encode(RollbackMetadata("20260301000000000", 0, 0, ()))
"""A body for any completed instant; of rollbacks the timeline reads it."""


def at(ordinal: int) -> InstantTime:
    return InstantTime(f"202603010000{ordinal:05d}")


def open_client(
    path: Path, config: TableConfig = CONFIG, disk: Disk | None = None, **more: Any
) -> TableMetaClient:
    storage = PosixStorage(str(path), fsync=False, disk=disk)
    return TableMetaClient(BasePath(str(path)), storage, config, StorageOptions(), **more)


def add(
    client: TableMetaClient,
    ordinal: int,
    action: Action = Action.COMMIT,
    *,
    plan: bytes = b"",
    inflight: bytes = b"",
    body: bytes = DONE,
    upto: State = State.COMPLETED,
) -> Instant:
    """Put the files of one instant, requested at ``ordinal`` and completed 5 later."""
    instant = Instant(at(ordinal), action, State.REQUESTED)
    client.active.create_requested(instant, plan)
    if upto is State.REQUESTED:
        return instant
    instant = client.active.to_inflight(instant, inflight)
    if upto is State.INFLIGHT:
        return instant
    return client.active.complete(instant, at(ordinal + 5), body)


def deaths(
    template: Path,
    scratch: Path,
    act: Callable[[TableMetaClient], object],
    apart: int = DEATHS_APART,
    **settings: Any,
) -> Iterator[Path]:
    """Yield a copy of a table for every step at which ``act`` died in it.

    A campaign dies in every way at every step, a sample in one way at each, in turn, or where
    deaths are further ``apart`` at one of several; other runs die at others.
    """
    for number, mode in enumerate(WAYS_TO_DIE):
        first = (number * apart // len(WAYS_TO_DIE) + turn()) % apart
        for step in itertools.count(first, apart):
            path = scratch / f"{mode}-{step}"
            shutil.copytree(template, path)
            disk = MortalDisk(step, mode)
            try:
                act(open_client(path, disk=disk, **settings))
            except Killed:
                yield path
            else:
                assert step > 3
                break
            shutil.rmtree(path)
