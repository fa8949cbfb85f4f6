"""Distributions that are installed for one test: a metadata folder each, and a module."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

Install = Callable[..., None]
"""Takes a distribution's name, its entry points, and a module's name and code; and a group."""


def fake_distributions(
    folder: Path, monkeypatch: pytest.MonkeyPatch, group: str
) -> Iterator[Install]:
    """Yields a function that puts a distribution on the path: its metadata and one module.

    ``group``: the entry-point group, where none is given.
    """
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)

    def put(
        distribution: str,
        entries: dict[str, str],
        module: str = "",
        code: str = "",
        group: str = group,
    ) -> None:
        info = folder / f"{distribution.replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n"
        )
        write_entry_points(info, {group: entries})
        if module:
            (folder / f"{module}.py").write_text(code)

    yield put
    # not what this project imported meanwhile: its classes must stay the same
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
            del sys.modules[name]


def write_entry_points(info: Path, groups: Mapping[str, Mapping[str, str]]) -> None:
    """Say in a metadata folder what a distribution provides.

    ``groups``: names and targets by entry-point group.
    """
    lines = []
    for group, entries in groups.items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in entries.items())]
    (info / "entry_points.txt").write_text("\n".join([*lines, ""]))
