"""The page that keeps results: what a run replaces in it, and what people wrote that stays."""

from __future__ import annotations

import re
from pathlib import Path

_CAUSE = re.compile(r"^- `(?P<target>[^`]+)`: (?P<cause>\S.*)$", re.MULTILINE)


def causes(page: Path) -> dict[str, str]:
    """Return why targets are missed, by name of the target, as people wrote it in a page.

    A cause is one line outside of the results: a dash, the target's name in backticks, a colon,
    the text.
    """
    if not page.exists():
        return {}
    results = re.compile(r"<!-- (\S+):begin -->.*?<!-- \1:end -->", re.DOTALL)
    outside = results.sub("", page.read_text())
    return {found["target"]: found["cause"] for found in _CAUSE.finditer(outside)}


def write_section(page: Path, name: str, content: str) -> None:
    """Put content between the two markers of a name; at the end of the page where it has none."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    section = f"{begin}\n{content}\n{end}"
    text = page.read_text() if page.exists() else ""
    before, has_begin, rest = text.partition(begin)
    _, has_end, after = rest.partition(end)
    if has_begin and has_end:
        page.write_text(before + section + after)
    elif has_begin or end in text:
        raise SystemExit(f"{page} has one of the two markers {begin} and {end}: add the other one")
    else:
        page.write_text(f"{text.rstrip()}\n\n{section}\n".lstrip())
