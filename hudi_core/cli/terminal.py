"""Output: tables for people, JSON for programs, messages for both.

Whatever a table holds was written by other people. Text from it reaches the terminal as text only:
rich gets it as :class:`rich.text.Text`, which knows no markup, and characters that a terminal would
obey or hide (escape sequences, line breaks, changes of the writing direction) are shown as escapes.
"""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.table import Table as Grid
from rich.text import Text

from hudi_core.cli import library

if TYPE_CHECKING:
    from hudi_core.services.progress import Progress as Report

_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of what is no visible text: controls, formats, lone surrogates, separators."""

_UNBOUNDED: Final = 1 << 20
_WIDTH: Final = 120
"""Characters of a line where there is no terminal, and ``COLUMNS`` does not say."""
_PHRASE: Final = 24
_NAME: Final = 60
"""Characters of a value, with and without spaces, that is not cut into lines."""


def visible(text: str) -> str:
    """Return ``text`` with characters that are not visible text escaped."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible, text))


def _visible(char: str) -> str:
    return ascii(char)[1:-1] if unicodedata.category(char) in _UNSEEN else char


def write_json(document: Mapping[str, Any]) -> None:
    """Write one JSON object, ASCII only, to the standard output."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False))


def write_line(text: str) -> None:
    """Write one line to the standard output."""
    typer.echo(visible(text))


def write_error(text: str) -> None:
    """Write a failed command's one message to the standard error."""
    _on_stderr("error", "bold red", text)


def write_warning(text: str) -> None:
    """Write something that does not stop a command to the standard error."""
    _on_stderr("warning", "yellow", text)


def write_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Write names with their values, one pair a line."""
    grid = Grid(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts:
        grid.add_row(Text(visible(name)), Text(visible(value)))
    _print(grid, is_limited=False)


def write_grid(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write rows under headings; strings of digits are right-aligned."""
    caption = Text(visible(title)) if title else None
    grid = Grid(box=box.SIMPLE_HEAD, title=caption, title_justify="left", pad_edge=False)
    for position, heading in enumerate(headings):
        cells = [visible(row[position]) for row in rows]
        is_number = bool(cells) and all(cell.replace(",", "").isdigit() for cell in cells)
        # names and times stay whole where other columns of the row can give way
        is_short = all(len(cell) <= (_PHRASE if " " in cell else _NAME) for cell in cells)
        justify: JustifyMethod = "right" if is_number else "left"
        # rich takes what is not to be wrapped for as wide as its longest word
        width = max(map(cell_len, (heading, *cells))) if is_short else None
        grid.add_column(
            heading, justify=justify, overflow="fold", no_wrap=is_short, min_width=width
        )
    for row in rows:
        grid.add_row(*(Text(visible(cell)) for cell in row))
    _print(grid)


def _print(grid: Grid, *, is_limited: bool = True) -> None:
    """Print; in lines of a limited width where there is no terminal."""
    console = Console(file=sys.stdout, markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = _UNBOUNDED
        widest = console.measure(grid).maximum
        if is_limited:
            # long values go on in the next line of their cell: all of them are there
            given = os.environ.get("COLUMNS", "")
            widest = min(widest, int(given) if given.isdigit() and int(given) > 0 else _WIDTH)
            # the column of the longest value gives way first: short names stay whole
            by_length = sorted(grid.columns, key=_length)
            while by_length and console.measure(grid).minimum > widest:
                column = by_length.pop()
                column.no_wrap, column.min_width = False, None
        console.width = max(widest, 1)
    console.print(grid)


def _length(column: Column) -> int:
    return max((len(str(cell)) for cell in column.cells), default=0)


def _on_stderr(kind: str, style: str, text: str) -> None:
    console = Console(file=sys.stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)
    console.print(Text.assemble((f"{kind}: ", style), visible(text)))


# --- a bar for work that takes long, where a person looks on --------------------------------------


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
