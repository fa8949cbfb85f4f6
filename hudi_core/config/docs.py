"""The reference of all options, made from their declarations.

``python -m hudi_core.config.docs [FOLDER]`` writes its lists into ``docs/configuration.md``, below
the headings that are there, and the options whose defaults are not Hudi's to the end of
``docs/deviations.md``.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from hudi_core.config.foreign import ForeignOption, OptionTreatment, Section, foreign_options
from hudi_core.config.option_warnings import ALL_KEYS, OPTIONS
from hudi_core.config.options import ConfigKey, Group, Options
from hudi_core.config.stored_keys import ManagedKeys

DEFAULT_FOLDER: Final = Path("docs")
REFERENCE: Final = "configuration.md"
DEVIATIONS: Final = "deviations.md"
_DEFAULTS: Final = "## Defaults of options\n"
_STORED: Final = "Stored with a table"
_FOREIGN: Final = {
    "Not built yet": OptionTreatment.LATER,
    "Not built yet, and done by Hudi unless an option says otherwise": (
        OptionTreatment.LATER_BY_DEFAULT
    ),
    "Refused in writes": OptionTreatment.REFUSED_IN_WRITES,
    "Refused in reads": OptionTreatment.REFUSED_IN_READS,
    "Accepted in silence": OptionTreatment.QUIET,
}
"""What becomes of Hudi's other options, by headings."""
_LISTED: Final = re.compile(r"^(?=\| |\*\*)", re.MULTILINE)
"""Where a list begins, behind what is written by hand."""


def render(page: str) -> str:
    """The reference as Markdown, with fresh lists.

    What is written by hand stays: headings, and the prose below them.
    """
    beginning, *sections = re.split(r"^(?=##)", page, flags=re.MULTILINE)
    return beginning + "\n".join(map(_with_list, sections))


def _with_list(section: str) -> str:
    title = section.partition("\n")[0].lstrip("# ")
    by_hand = _LISTED.split(section.strip("\n") + "\n\n")[0]
    made = ""
    if title in list(Group):
        made = _keys("Option", *(one for one in OPTIONS if one.group == title))
    elif title == _STORED:
        made = _keys("Property", ManagedKeys)
    elif title in _FOREIGN:
        sections = foreign_options().sections.items()
        kind = _FOREIGN[title]
        made = "\n".join(_section(*one) for one in sections if one[0].kind is kind)
    return (by_hand + made).rstrip("\n") + "\n"


def _keys(head: str, *declared: type[Options]) -> str:
    return _table(
        (head, "Default", "Meaning"),
        (
            (_names(key), _default(key), _meaning(key, text[name]))
            for one, text in zip(declared, map(meanings, declared), strict=True)
            for name, key in one.by_attribute.items()
        ),
    )


def meanings(declared: type[Options]) -> Mapping[str, str]:
    """What options mean, by their attributes: the docstrings below their declarations."""
    tree = ast.parse(inspect.getsource(declared))
    (found,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    strings: dict[str, str] = {}
    for statement, below in pairwise(found.body):
        match statement, below:
            case (
                ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)),
                ast.Expr(ast.Constant(str(text))),
            ):
                strings[name] = " ".join(text.split())
    return strings


def deviations() -> str:
    """Return options whose defaults differ from Hudi's, as Markdown."""
    rows = (
        (f"`{key.key}`", _cell(key.hudi_default or ""), _default(key), _cell(key.reason or ""))
        for key in ALL_KEYS
        if key.reason
    )
    return f"{_DEFAULTS}\n" + _table(("Option", "Hudi", "Here", "Why"), rows)


def _section(section: Section, lines: Iterable[ForeignOption]) -> str:
    condition = ""
    if section.needs is not None:
        condition = f" (with `{section.needs.name}={section.needs.value}`)"
    if section.unless is not None:
        value = "" if section.unless.value is None else f"={section.unless.value}"
        condition = f" (unless `{section.unless.name}{value}` is given)"
    title = section.title[0].upper() + section.title[1:]
    return f"**{title}**{condition}: {', '.join(map(_line, lines))}.\n"


def _line(option: ForeignOption) -> str:
    values = ", ".join(f"`{value}`" for value in option.harmless or ())
    return f"`{option.name}`" + (f" ({values})" if values else "")


def _names(key: ConfigKey[Any]) -> str:
    also = "".join(f"<br>also `{alias}`" for alias in key.aliases)
    return f"`{key.key}`{also}"


def _default(key: ConfigKey[Any]) -> str:
    if key.default_text is not None:
        # prose is in parentheses, values are set as code
        plain = key.default_text.startswith("(") or " " in key.default_text
        return _cell(key.default_text) if plain else f"`{key.default_text}`"
    if isinstance(key.default, bool):
        return f"`{str(key.default).lower()}`"
    return f"`{key.default}`"


def _meaning(key: ConfigKey[Any], text: str) -> str:
    values = (
        f" Values: {', '.join(f'`{choice}`' for choice in key.choices)}." if key.choices else ""
    )
    return _cell(text) + values + (" *Secret.*" if key.secret else "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    def lines() -> Iterator[str]:
        yield "| " + " | ".join(head) + " |"
        yield "|" + " --- |" * len(head)
        for row in rows:
            yield "| " + " | ".join(row) + " |"

    return "\n".join(lines()) + "\n"


def main(arguments: list[str]) -> int:
    """Make the lists of the reference in a folder, by default :data:`DEFAULT_FOLDER`.

    The default is relative to the current folder.
    """
    folder = Path(arguments[0]) if arguments else DEFAULT_FOLDER
    reference, page = folder / REFERENCE, folder / DEVIATIONS
    reference.write_text(render(reference.read_text(encoding="utf-8")), encoding="utf-8")
    written_by_hand = page.read_text(encoding="utf-8").partition(_DEFAULTS)[0]
    page.write_text(written_by_hand + deviations(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
