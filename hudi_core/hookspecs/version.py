"""The version of the contract, and how versions compare."""

from __future__ import annotations

import re
from typing import Final

SPI_VERSION: Final = "1.0"
"""The contract of this release, for authors of formats: ``major.minor``.

A minor contract adds hooks, arguments and abilities, which no plugin needs to know. A major one
takes away; plugins of the one before it are still called as they were, with a warning.
"""
BEFORE_VERSIONS: Final = "0"
"""The contract of a plugin that names none: plain classes with marked methods."""

Version = tuple[int, int]

_TEXT: Final = re.compile(r"(0|[1-9]\d{0,3})(?:\.(0|[1-9]\d{0,3}))?")


def parse_version(text: object) -> Version | None:
    """The parts of a version; ``None`` for what is none."""
    found = _TEXT.fullmatch(text) if isinstance(text, str) else None
    return None if found is None else (int(found[1]), int(found[2] or 0))
