"""Forked processes of the crash rig, what they are forked from, and copies of their folders."""

from __future__ import annotations

import os
import pickle
import shutil
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import hudi_core as hudi
from hudi_core.metadata.partitions.names import ALL_CHECKS
from hudi_core.metadata.validator import validate
from tests.crash.actions import next_write
from tests.crash.readers import foreign_readers
from tests.crash.tables import OPTIONS, create


class Ended(NamedTuple):
    """How a forked process ended: its exit status, its answer, and what it has printed."""

    status: int
    answer: Any
    printed: str


def copy_folder(folder: Path, to: Path) -> None:
    """Copy a folder; names of one file stay names of one."""
    names: dict[int, str] = {}

    def copied(name: str, copy: str) -> str:
        found = os.stat(name)
        if found.st_nlink > 1 and names.setdefault(found.st_ino, copy) != copy:
            os.link(names[found.st_ino], copy)
            return copy
        return shutil.copy2(name, copy)

    shutil.copytree(folder, to, copy_function=copied)


def in_child(
    writing: int, printed: int, function: Callable[..., Any], arguments: Sequence[Any]
) -> None:
    """Call a function, send its answer, and end the process."""
    status = 1
    try:
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        data = pickle.dumps(function(*arguments))
        with open(writing, "wb") as pipe:
            pipe.write(data)
        status = 0
    finally:
        # never back into the loop of the process that was forked
        if status:
            os.write(2, traceback.format_exc().encode())
        os._exit(status)


def warm_up(folder: Path) -> None:
    """Use the project's writers and readers once, as the first use costs each process a third.

    hudi-rs and deltalake stay unused: their threads are gone after a fork, and they hang or refuse.
    A case took 0.36 s of a processor without this and 0.25 s with it (native), 0.53 s and 0.38 s
    (Iceberg).
    """
    for name in ("native", "iceberg"):
        path = folder / f"warm-{name}"
        create(path, name)
        table = hudi.Table.open(str(path), OPTIONS)
        next_write(0).run(table)
        table.incremental()
        validate(table._session.opened.client, ALL_CHECKS)
        for foreign in foreign_readers(path, name).values():
            foreign.rows()
            foreign.by_path()
            list(foreign.files())
        shutil.rmtree(path)
