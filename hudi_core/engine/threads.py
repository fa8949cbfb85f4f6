"""Threads of this process, and the error where none is left."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from hudi_core.errors import ResourceLimitError

_NO_MORE: Final = "can't start new thread"
"""What CPython says where the system refuses a thread; there is no class for it."""


@contextmanager
def thread_pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """A pool of threads, ended with the block."""
    with translated(), ThreadPoolExecutor(workers) as pool:
        yield pool


def start_thread(thread: threading.Thread) -> None:
    """Start a thread."""
    with translated():
        thread.start()


@contextmanager
def translated() -> Iterator[None]:
    """Raise the error of this project where the system refuses a thread."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != _NO_MORE:
            raise
        raise ResourceLimitError(
            "This process cannot start another thread",
            "Raise its limits (memory: ulimit -v, threads: ulimit -u), or end other threads of it; "
            "then do the same again.",
        ) from error
