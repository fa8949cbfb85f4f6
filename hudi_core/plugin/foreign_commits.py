"""Reads of a table whose format other writers have committed to."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from hudi_core.errors import ForeignCommitError

_log: Final = logging.getLogger(__name__)
_MOST: Final = 1024
_seen: Final[set[tuple[str, str]]] = set()


def warn_of_foreign_commits(
    where: str, version: str, describe: Callable[[], ForeignCommitError]
) -> None:
    """Log once that readers of the format see other rows than Hudi.

    Parameters
    ----------
    where, version
        The format's metadata, and its present state.
    describe
        Makes the error that a write would get; called once for each state, as it may count rows.
    """
    if (where, version) in _seen:
        return
    if len(_seen) >= _MOST:
        _seen.clear()
    _seen.add((where, version))
    error = describe()
    _log.warning("%s. Reads go on with Hudi's state. %s", error.what, error.hint)
