"""Versions of a log that no Hudi writer made."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from delta_format.log import ForeignVersions, Head, open_log
from delta_format.snapshot import Snapshot
from delta_format.vectors import is_split
from hudi_core.spi import (
    CorruptMetadataError,
    FileGroupId,
    ForeignCommitError,
    HudiError,
    MetaClientView,
    StorageError,
    TakenIn,
    warn_of_foreign_commits,
)


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
    if is_split(meta_client) and not _has_same_vectors(meta_client, head, foreign):
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
    out = [*chain(came, *groups.values())] if taken.files else []
    if all(one.vector is None for one in out):
        return True
    try:
        then = Snapshot(open_log(meta_client, int(taken.version)))
        known = {one.identity for one in then.at_paths({one.path for one in out})}
    except (CorruptMetadataError, StorageError):
        return False
    return all(one.identity in known for one in out)


def _has_same_vectors(meta_client: MetaClientView, head: Head, foreign: ForeignVersions) -> bool:
    """Whether the files of Hudi's last state have the same rows still."""
    if foreign.hudi_version is None:
        return False
    then, now = (
        {one.spelling: one.identity for one in Snapshot(of).files()}
        for of in (open_log(meta_client, foreign.hudi_version), head)
    )
    return all(now[path] == then[path] for path in then.keys() & now.keys())


def _error(meta_client: MetaClientView, head: Head, foreign: ForeignVersions) -> ForeignCommitError:
    base = foreign.hudi_version
    return ForeignCommitError(
        meta_client.base_path,
        _where(head),
        foreign.texts,
        version=str(head.version),
        hudi_version=None if base is None else str(base),
        is_replaced=base is None,
        rows=_rows(lambda: head),
        hudi_rows=None if base is None else _rows(lambda: open_log(meta_client, base)),
        can_take_in=meta_client.files.is_plain,
    )


def _where(head: Head) -> str:
    return f"the Delta log of {head.root}"


def _rows(opened: Callable[[], Head]) -> int | None:
    """Rows of a version; ``None`` where they are not known."""
    try:
        named = [*Snapshot(opened()).named_files()]
    except HudiError:
        return None
    counts = [
        None if one.rows is None or one.deleted_rows is None else one.rows - one.deleted_rows
        for one in named
    ]
    return None if None in counts else sum(filter(None, counts))
