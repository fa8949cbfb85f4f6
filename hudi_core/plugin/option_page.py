"""Writes the option reference of the project's own formats.

Made from their declarations.

``python -m hudi_core.plugin.option_page [FILE]`` writes it to ``docs/formats.md``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path
from typing import Any, Final

from hudi_core.config.format_option import FormatOption, option_key
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry

DEFAULT_PATH: Final = Path("docs/formats.md")
_OWN: Final = "hudi-core"
_INTRO: Final = """\
# Options of the table formats

<!-- Made by `python -m hudi_core.plugin.option_page` from the declarations of the formats. -->

What a table's format alone understands is given below `hoodie.table.format.<name>.`, among the
other options. `hudi formats` shows the same of every format that is installed, those of others too.
A value that cannot be used is refused before the first file is written; a name that a format does
not have is warned of, with the nearest one that it has. What a table keeps it is created with; a
different value is an error from then on. The others are given whenever the table is opened.
"""


def render() -> str:
    """Return the whole page as Markdown."""
    registry = FormatRegistry()
    parts = [_INTRO]
    for claim in registry.installed():
        if _is_of_project(claim.distribution):
            options = FormatHost(registry.load(claim.name), name=claim.name).get_options()
            parts.append("\n".join(_section(claim.name, options or ())))
    return "\n".join(parts)


def _is_of_project(distribution: str) -> bool:
    """Whether a distribution is this one, or among its extras."""
    asked_for = [_OWN, *(requires(_OWN) or ())]
    return any(re.match(rf"{re.escape(distribution)}(?![\w.-])", one) for one in asked_for)


def _section(name: str, options: tuple[FormatOption[Any], ...]) -> Iterator[str]:
    yield f"## {name}\n"
    if not options:
        yield "None.\n"
        return
    yield "| Option | Default | Kept | Meaning |"
    yield "| --- | --- | --- | --- |"
    for one in options:
        key = option_key(name, one.name) + ("*" if one.is_prefix else "")
        values = f" Values: {', '.join(f'`{choice}`' for choice in one.choices)}."
        meaning = one.doc + (values if one.choices else "")
        shown = one.shown_default
        default = shown if shown.startswith("(") else f"`{shown}`"
        yield f"| `{key}` | {default} | {'yes' if one.is_stored else 'no'} | {meaning} |"
    yield ""


def main(arguments: list[str]) -> int:
    """Write the page to a file, by default :data:`DEFAULT_PATH`.

    The default is relative to the current folder.
    """
    path = Path(arguments[0]) if arguments else DEFAULT_PATH
    path.write_text(render(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
