"""Versions of a log that no Hudi writer made."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import chain

from delta_format.log import ForeignVersions, Head, open_log
from delta_format.log_files import file_of
from delta_format.snapshot import Snapshot
from hudi_core.spi import (
    FileGroupId,
    ForeignCommitError,
    HudiError,
    MetaClientView,
    StorageError,
    TakenIn,
    warn_of_foreign_commits,
)

_VECTORS = "deletionVectors"


def require_ours(
    meta_client: MetaClientView,
    head: Head,
    taken: TakenIn | None = None,
    replaced: frozenset[FileGroupId] = frozenset(),
) -> None:
    """Refuse a log that another writer has written to.

    ``taken`` is what the coming change takes in. It is allowed only while all of that is still
    there, with all rows; anything else that came since is foreign as well. ``replaced`` are the
    groups whose files the change takes out.
    """
    foreign = head.foreign
    if foreign is None:
        return
    if taken is None:
        raise _error(meta_client, head, foreign)
    if taken.version != str(head.version) and not _has_all(meta_client, head, taken, replaced):
        raise _error(meta_client, head, foreign)


def look_for_foreign(meta_client: MetaClientView, head: Head) -> None:
    """Warn once that another writer has written to the log.

    A log without anything of Hudi is an error.
    """
    foreign = head.foreign
    if foreign is None:
        return
    if foreign.hudi_version is None and not head.is_of_hudi:
        raise _error(meta_client, head, foreign)
    where = _where(head)
    warn_of_foreign_commits(where, str(head.version), lambda: _error(meta_client, head, foreign))


def deleted_rows(meta_client: MetaClientView, head: Head) -> dict[str, int]:
    """Numbers of rows that deletion vectors take out of files.

    By path as the log spells it. Hudi makes no vectors: only versions of others are looked at.
    """
    foreign = head.foreign
    with head.reading():
        features = head.table.protocol().reader_features or ()
    if foreign is None or _VECTORS not in features:
        return {}
    found: dict[str, int] = {}
    first = 0 if foreign.hudi_version is None else foreign.hudi_version + 1
    for version in range(first, head.version + 1):
        removed: list[str] = []
        added: dict[str, int] = {}
        for line in meta_client.root.read(file_of(version)).splitlines():
            action = json.loads(line)
            if (one := action.get("remove")) is not None:
                removed.append(one["path"])
            elif (one := action.get("add")) is not None:
                vector = one.get("deletionVector")
                added[one["path"]] = int(vector["cardinality"]) if vector else 0
        # a vector is set by removing and adding its file, in whichever order
        found |= dict.fromkeys(removed, 0) | added
    return found


def _has_all(
    meta_client: MetaClientView, head: Head, taken: TakenIn, replaced: frozenset[FileGroupId]
) -> bool:
    """Whether files that are taken out have all their rows.

    The change has the rows that they had when it was made: it would bring back what another
    writer has deleted of them since. A version that cannot be looked at any more may have.
    """
    named = Snapshot(head)
    groups = named.of_groups(replaced)
    came = named.at_paths(taken.files)
    if len(came) < len({*taken.files}) or replaced - groups.keys():
        return False
    try:
        deleted = deleted_rows(meta_client, head) if taken.files else {}
    except StorageError:
        return False
    return not any(deleted.get(one.spelling) for one in chain(came, *groups.values()))


def _error(meta_client: MetaClientView, head: Head, foreign: ForeignVersions) -> ForeignCommitError:
    base = foreign.hudi_version
    return ForeignCommitError(
        meta_client.base_path,
        _where(head),
        foreign.texts,
        version=str(head.version),
        hudi_version=None if base is None else str(base),
        is_replaced=base is None,
        rows=_rows(lambda: head, lambda: deleted_rows(meta_client, head)),
        # Hudi makes no vectors
        hudi_rows=None if base is None else _rows(lambda: open_log(meta_client, base), dict),
        can_take_in=meta_client.files.is_plain,
    )


def _where(head: Head) -> str:
    return f"the Delta log of {head.root}"


def _rows(opened: Callable[[], Head], deleted: Callable[[], Mapping[str, int]]) -> int | None:
    """Rows of a version; ``None`` where they are not known."""
    try:
        named = [*Snapshot(opened()).named_files(deleted())]
    except HudiError:
        return None
    counts = [
        None if one.rows is None or one.deleted_rows is None else one.rows - one.deleted_rows
        for one in named
    ]
    return None if None in counts else sum(filter(None, counts))
