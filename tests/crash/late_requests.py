"""A commit that was sent, and arrives after its sender has died and others have gone on.

An object store may take a request long after the connection it came by is gone. Here the file that
makes a version of the format is taken away again as soon as it is there; it lands later, at some
step of the next writer, as a request does: put if absent.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from hudi_core.storage.disk import Disk
from tests.crash.counting_storage import DISK, die

LATE: Final = "late"
"""What goes wrong with the commit that is sent."""
LANDS: Final = "lands"
"""What goes wrong at a step of the next write."""
_VERSION: Final = re.compile(r"v\d+\.metadata\.json|\d{20}\.json")


def _kept(path: Path) -> Path:
    """Return the folder in which requests travel."""
    return path.with_name("travelling")


@contextmanager
def lost_sender(path: Path) -> Iterator[None]:
    """Die once the format's commit is sent; it is not there yet."""
    folder = _kept(path)
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()

    def die_after(call: Callable[..., Any]) -> Callable[..., Any]:
        def sent(*arguments: Any, **named: Any) -> Any:
            before = set(_versions(path))
            answer = call(*arguments, **named)
            new = set(_versions(path)) - before
            for file in new:
                file.rename(folder / file.name)
            if new:
                die()
            return answer

        return sent

    with _replaced([(Disk, "link")], die_after):
        yield


@contextmanager
def landing(path: Path, at: int) -> Iterator[None]:
    """Let what travels arrive before the step of that number."""
    left = [at]

    def land_before(call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                _land(path)
            return call(*arguments, **named)

        return step

    with _replaced([(Disk, name) for name in DISK], land_before):
        yield


def _land(path: Path) -> None:
    for file in _kept(path).iterdir():
        folder = "metadata" if file.name.startswith("v") else "_delta_log"
        with contextlib.suppress(FileExistsError):
            os.link(file, path / folder / file.name)


def _versions(path: Path) -> Iterator[Path]:
    for folder in ("metadata", "_delta_log"):
        yield from (one for one in (path / folder).glob("*") if _VERSION.fullmatch(one.name))


@contextmanager
def _replaced(
    targets: Any, change: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Iterator[None]:
    with ExitStack() as stack:
        for owner, name in targets:
            original = getattr(owner, name)
            stack.callback(setattr, owner, name, original)
            setattr(owner, name, change(original))
        yield
