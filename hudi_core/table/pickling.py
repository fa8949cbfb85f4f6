"""Pickles of tables: their path, and their options without secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from hudi_core.config.key import is_secret_name
from hudi_core.errors import HudiError
from hudi_core.table.session import TableSession

Opened = TypeVar("Opened")


def pickled(
    session: TableSession, reopen: Callable[[str, Mapping[str, str]], Opened]
) -> tuple[Callable[..., Opened], tuple[object, ...]]:
    """A pickle of a table: its path, and its options without secrets."""
    kept = {name: text for name, text in session.options.items() if not is_secret_name(name)}
    return _unpickled, (reopen, session.path, kept, sorted(session.options.keys() - kept.keys()))


def _unpickled(
    reopen: Callable[[str, Mapping[str, str]], Opened],
    path: str,
    options: Mapping[str, str],
    left_out: Sequence[str],
) -> Opened:
    """A table from a pickle; the environment has the secrets."""
    try:
        return reopen(path, options)
    except HudiError as error:
        if not left_out:
            raise
        raise HudiError(
            f"The table {path} cannot be opened from a pickle, which leaves out secrets "
            f"({', '.join(left_out)}): {error.what}",
            "Set them in the environment of this process, or open the table by its path with them.",
            path=path,
            left_out=tuple(left_out),
        ) from error
