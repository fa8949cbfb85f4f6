"""A bar for work that takes long, where a person looks on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hudi_core.cli import library

if TYPE_CHECKING:
    from hudi_core.services.progress import Progress as Report


@contextmanager
def progress_bar(what: str) -> Iterator[Report]:
    """Return a progress callback that draws on a terminal's standard error."""
    console = Console(file=sys.stderr, markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        yield library.no_progress
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report
