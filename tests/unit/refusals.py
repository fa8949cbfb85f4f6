"""What is refused leaves a folder as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hudi_core.errors import HudiError


def files(path: Path) -> dict[str, bytes]:
    """Return every file below a folder but the lock, which is empty and stays."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and file.name != "table.lock"
    }


@contextmanager
def refused(path: Path, error: type[HudiError], *words: str) -> Iterator[None]:
    """Expect an error of a type that names what matters, and a folder as it was."""
    before = files(path)
    with pytest.raises(error) as caught:
        yield
    for word in words:
        assert word in str(caught.value)
    assert files(path) == before
