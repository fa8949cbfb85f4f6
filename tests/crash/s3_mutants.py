"""Changes to the protocol that break it where an answer is lost; see :mod:`tests.crash.mutants`.

An answer can only be lost on the way: only a store of S3's protocol and its proxy show these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from delta_format import commit
from delta_format.commit import Record
from delta_format.log import Head
from delta_format.versions import NewVersion, make_next
from hudi_core.errors import CommitConflictError, StorageError
from hudi_core.spi import FormatCommit, MetaClientView
from hudi_core.storage.object_store import ObjectStorage
from tests.crash.mutants import MUTANTS, Mutant, changed

_owner: Final = ObjectStorage._owner


def _of_nobody(storage: ObjectStorage, path: str) -> tuple[Any, str | None]:
    """The token of a put says nothing."""
    return _owner(storage, path)[0], None


def _made_once(
    meta_client: MetaClientView, head: Head, what: Record, version: NewVersion
) -> FormatCommit:
    """An error of the store means that nothing has happened."""
    try:
        make_next(meta_client, head, version)
    except StorageError as error:
        raise CommitConflictError(f"{what.instant} is not recorded", "Run it again.") from error
    return FormatCommit(str(head.version), head.root)


@contextmanager
def _no_look() -> Iterator[None]:
    """What failed in the store, or in the format, has not happened; no token tells otherwise."""
    formats = MUTANTS["no look at the format after an error"]
    token = (ObjectStorage, "_owner", _of_nobody)
    with formats(), changed(token, (commit, "_make", _made_once)):
        yield


S3_MUTANTS: Final[Mapping[str | None, Mutant]] = {
    **MUTANTS,
    "no look at the token": partial(changed, (ObjectStorage, "_owner", _of_nobody)),
    "no look at the log after an error": _no_look,
}
