"""Access to an open table, for tests of table formats.

A test opens a table with its format's host, to call hooks again; lets a writer die between the two
steps of a commit; and lets a second writer in, in the middle of a first one's commit. Everything
else a test does by the public interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from hudi_core.extension.registry import installed_entry_points
from hudi_core.model.instant_time import next_instant_time
from hudi_core.model.result import CommitResult
from hudi_core.plugin import registry
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FORMAT_GROUP, OBSERVER_GROUP, FormatRegistry
from hudi_core.services.opening import open_table
from hudi_core.table_handle import OpenTable
from hudi_core.txn.transaction import Transaction

__all__ = [
    "FORMAT_GROUP",
    "OBSERVER_GROUP",
    "CommitResult",
    "FormatHost",
    "OpenTable",
    "WriterDied",
    "dies_before",
    "load_format",
    "meets",
    "next_instant_time",
    "open_table",
    "without_format",
]

STEP_2: Final = "complete_write"


class WriterDied(Exception):  # noqa: N818 - it is what happened, not a mistake
    """The writer is no more."""


def load_format(name: str) -> FormatHost:
    """Load an installed format, for no table.

    Raises
    ------
    PluginError
        It is not installed, or cannot be used.
    """
    return FormatHost.load(FormatRegistry(), name)


@contextmanager
def dies_before(hook: str = STEP_2) -> Iterator[None]:
    """Let writers die when they are about to call a hook: :class:`WriterDied`.

    Before ``complete_write`` that is between the two steps of a commit.

    Parameters
    ----------
    hook
        Its name.
    """

    def die(*_: object, **__: object) -> None:
        raise WriterDied(hook)

    with _replaced(FormatHost, hook, die):
        yield


@contextmanager
def meets(other: Callable[[], object]) -> Iterator[None]:
    """Let another writer in before the next one commits.

    That has written its files by then.

    Parameters
    ----------
    other
        What the other writer does; called once.
    """
    commit = Transaction.commit

    def after_other(self: Transaction, *arguments: Any, **named: Any) -> Any:
        Transaction.commit = commit  # type: ignore[method-assign]
        other()
        return commit(self, *arguments, **named)

    with _replaced(Transaction, "commit", after_other):
        yield


@contextmanager
def without_format(name: str) -> Iterator[None]:
    """Let a format be as if it was not installed."""

    def others(group: str) -> Any:
        found = installed_entry_points(group)
        hidden = name.lower() if group == FORMAT_GROUP else None
        return tuple(one for one in found if one.name.lower() != hidden)

    with _replaced(registry, "installed_entry_points", others):
        yield


@contextmanager
def _replaced(owner: object, name: str, value: object) -> Iterator[None]:
    own = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)  # it was inherited
        else:
            setattr(owner, name, own)
