"""How a Delta log spells the paths of files.

The protocol asks for URIs and does not say which characters are escaped. Engines look for a file
by the decoded path, but compare paths as the log spells them: a vacuum of Delta of Spark deletes
what the log does not name in Spark's own spelling, and to all of them a removal is one of a file
that is spelled the same. So paths are spelled as Hadoop's ``Path`` spells them for Delta of Spark:
ASCII is escaped where a URI asks for it, and letters beyond it stay.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import quote, unquote

_KEPT: Final = "/_-!.~'()*,;:$&+=@"
_ESCAPED: Final = re.compile(f"[^A-Za-z0-9{re.escape(_KEPT)}]")
_UNSAFE: Final = frozenset(("", ".", ".."))
"""Names of folders in a path that may lead out of the table."""
_BLANK: Final = frozenset({"Zs", "Zl", "Zp", "Cc"})
"""Unicode categories beyond ASCII that Java's URIs do not hold as they are."""


def spelled(path: str) -> str:
    """A path as the log names it."""
    text = _ESCAPED.sub(lambda found: _escaped(found[0]), path)
    first, slash, rest = text.partition("/")
    # what precedes a colon in the first name would be taken for the scheme of a URI
    return f"{first.replace(':', '%3A')}{slash}{rest}"


def plain(text: str) -> str:
    """A path as the store names it."""
    return unquote(text)


def is_below(path: str) -> bool:
    """Whether a store's path stays below its root."""
    return not _UNSAFE & {*path.split("/")} and "\0" not in path


def _escaped(character: str) -> str:
    if not character.isascii() and unicodedata.category(character) not in _BLANK:
        return character
    return quote(character, safe="")
