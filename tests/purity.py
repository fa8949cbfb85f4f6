"""The mark ``pure``: tests that need nothing but this process and what it reads of the sources.

A test is pure where none of its fixtures gives it a folder, a service, a session or a process.
What works on these without a fixture says so by the mark ``impure``; a pure test that is found to
start a process, to open a socket or to change files fails.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from typing import Any, Final

import pytest

SYSTEM_FIXTURES: Final = frozenset(
    {
        "tmp_path",
        "tmp_path_factory",
        "tmpdir",
        "tmpdir_factory",
        "pytester",
        "spark",
        "s3",
        "metastore",
        "hive_metastore",
        "glue",
        "nursery",
    }
)
"""What every other fixture with effects is built on; pytest lists those of fixtures as well."""

_EFFECTS: Final = frozenset(
    {
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.link",
        "os.mkdir",
        "os.posix_spawn",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.symlink",
        "os.system",
        "os.truncate",
        "socket.bind",
        "socket.connect",
        "subprocess.Popen",
    }
)
"""Audit events of Python; files that libraries in C write are not among them."""
_CACHES: Final = ("__pycache__", ".hypothesis")
_CHANGES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class _Watch:
    """The effects that the test of now has; ``None`` between pure tests."""

    def __init__(self) -> None:
        self.seen: list[str] | None = None
        self.is_hooked = False
        self._thread = threading.get_ident()

    def begin(self) -> None:
        if not self.is_hooked:  # a hook stays for as long as the process does
            sys.addaudithook(self.notice)
            self.is_hooked = True
        self.seen = []

    def notice(self, event: str, facts: tuple[Any, ...]) -> None:
        if self.seen is None or threading.get_ident() != self._thread:
            return
        # to make a file object of an open descriptor changes nothing
        is_change = event == "open" and not isinstance(facts[0], int) and facts[2] & _CHANGES
        if not is_change and event not in _EFFECTS:
            return
        subject = str(facts[0]) if facts else ""
        if subject != os.devnull and not any(cache in subject for cache in _CACHES):
            self.seen.append(f"{event} {subject}")


_watch = _Watch()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Set the mark."""
    fixtures = getattr(item, "fixturenames", ())
    if SYSTEM_FIXTURES.isdisjoint(fixtures) and item.get_closest_marker("impure") is None:
        item.add_marker("pure")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Let a pure test fail that is not."""
    if item.get_closest_marker("pure") is None:
        return (yield)
    _watch.begin()
    try:
        result = yield
    finally:
        seen, _watch.seen = _watch.seen, None
    if seen:
        pytest.fail(f"not pure, take a fixture for it or mark it impure: {seen[:3]}", pytrace=False)
    return result
