"""Output of a command: JSON for programs, or text for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hudi_core.cli.terminal import write_facts, write_grid, write_json, write_line


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values, one pair a line."""

    pairs: Sequence[tuple[str, str]]

    def write(self) -> None:
        write_facts(self.pairs)


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows under headings."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""

    def write(self) -> None:
        write_grid(self.title, self.headings, self.rows)


Part = str | Facts | Grid
"""What people are shown; a string is one line."""


def answer(as_json: bool, document: Mapping[str, Any], parts: Iterable[Part]) -> None:
    """Write what a command has to say.

    ``document`` is for programs; ``parts`` says the same for people, and is not called where a
    program reads the output.
    """
    if as_json:
        write_json(document)
        return
    for part in parts:
        if isinstance(part, str):
            write_line(part)
        else:
            part.write()
