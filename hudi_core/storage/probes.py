"""Short-lived files that probe a store's behaviour and clock.

The process that puts one deletes it. Orphans of dead processes are removed once they are old.
"""

from __future__ import annotations

import contextlib
import re
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from hudi_core.errors import StorageError
from hudi_core.model.files import FileStatus
from hudi_core.model.protocols import Storage

_FOLDER: Final = ".hoodie/.temp"
_NAME: Final = re.compile(r"(probe|clock)-[0-9a-f]{32}")
_OLD_MS: Final = 3_600_000
"""Much longer than anybody needs one, in milliseconds."""


@contextmanager
def probe(storage: Storage, kind: str, data: bytes = b"") -> Iterator[str]:
    """Put a new file for the block's duration; yield its path."""
    path = f"{_FOLDER}/{kind}-{uuid.uuid4().hex}"
    storage.put_if_absent(path, data)
    try:
        yield path
    except BaseException as error:
        # a store that is away refuses this too, which says less than what went wrong first
        try:
            storage.delete(path)
        except StorageError as left:
            error.add_note(f"{path} was left behind: {left}")
        raise
    storage.delete(path)


def sweep(storage: Storage, found: Iterable[FileStatus]) -> None:
    """Remove the probes of processes that died over them."""
    # this machine's clock and the store's differ by less than the age that counts as old
    now_ms = time.time() * 1000
    # what cannot be removed now is left for another time
    with contextlib.suppress(StorageError):
        for one in found:
            if _NAME.fullmatch(one.name) and now_ms - one.modified_ms > _OLD_MS:
                storage.delete(one.path)
