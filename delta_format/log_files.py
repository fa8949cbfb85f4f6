"""Files of the Delta log: refused ones, and dead writers'."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Sequence
from typing import Final

from delta_format.location import LOG_FOLDER, root_of
from hudi_core.spi import CorruptMetadataError, FileStatus, MetaClientView
from hudi_core.spi.files import require_no_links

MAX_BYTES: Final = 1 << 28
"""No file of a sound log comes near this size, and deltalake reads each as a whole."""
VERSION: Final = re.compile(r"([0-9]{20})\.json")
CHECKPOINT: Final = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
"""In one file: of several, one may be missing."""
_OF_VERSION: Final = re.compile(r"\.?([0-9]{20})\..+")
"""Whatever belongs to one version: checksums of Hadoop and of Delta-Spark too."""
_LAST_CHECKPOINT: Final = f"{LOG_FOLDER}/_last_checkpoint"
_STAGED: Final = re.compile(r".+#[0-9]+")
"""How deltalake names a file on a disk until it is complete."""
_DEAD_MS: Final = 24 * 3600 * 1000
"""No writer takes that long for one file."""


def file_of(version: int) -> str:
    """The file of a version, relative to the table."""
    return f"{LOG_FOLDER}/{version:020}.json"


def number_of(name: str, kind: re.Pattern[str]) -> int:
    """The version of a file; -1 for one of another kind."""
    found = kind.fullmatch(name)
    return int(found[1]) if found else -1


def readable_log(meta_client: MetaClientView, since: int | None = None) -> Sequence[FileStatus]:
    """The files of a log, checked that deltalake may open them.

    ``since`` is the newest version when the log was last opened; with it nothing is listed unless
    there is a newer one. A symbolic link out of the table is an
    :class:`UnsafePathError`, a file that is too large a :class:`CorruptMetadataError`.
    """
    if since is not None and meta_client.root.head(file_of(since + 1)) is None:
        return ()
    found = _all(meta_client)
    for one in found:
        if one.size > MAX_BYTES:
            raise CorruptMetadataError(
                f"{root_of(meta_client)}/{one.path}",
                f"its {one.size} bytes are more than the {MAX_BYTES} accepted",
                f"`hudi table repair {meta_client.base_path}` rebuilds the log from the timeline "
                "and the data files.",
            )
    return found


def _all(meta_client: MetaClientView) -> list[FileStatus]:
    found = list(meta_client.root.list(LOG_FOLDER, recursive=True))
    require_no_links(root_of(meta_client), [one.path for one in found])
    return found


def sweep(meta_client: MetaClientView) -> None:
    """Delete files that writers were at when they died."""
    before = time.time() * 1000 - _DEAD_MS
    for one in meta_client.root.list(LOG_FOLDER):
        if one.modified_ms < before and _STAGED.fullmatch(one.name):
            meta_client.root.delete(one.path)


def prune(meta_client: MetaClientView, files: Iterable[FileStatus], needed: int) -> None:
    """Delete what no version from one on is read from.

    Checkpoints go first, then versions, the oldest first: who reads an older version meanwhile
    sees it, or fails.

    ``needed`` is the oldest version that must stay readable; ``files`` are all of the log.
    """
    found = list(files)
    checkpoints = (number_of(one.name, CHECKPOINT) for one in found)
    first = max((one for one in checkpoints if one <= needed), default=-1)
    old = {one.path: one.name for one in found if 0 <= number_of(one.name, _OF_VERSION) < first}
    if not old or not _is_reached_past(meta_client, first, found):
        return
    versions = sorted(path for path, name in old.items() if VERSION.fullmatch(name))
    meta_client.root.discard(sorted(old.keys() - set(versions)))
    meta_client.root.discard(versions)


def _is_reached_past(meta_client: MetaClientView, first: int, files: Iterable[FileStatus]) -> bool:
    """Whether readers that go by the last checkpoint's mark begin no earlier."""
    if all(one.path != _LAST_CHECKPOINT for one in files):
        return True
    try:
        marked = json.loads(meta_client.root.read(_LAST_CHECKPOINT))["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    return isinstance(marked, int) and marked >= first
