"""The reference of all options, made from their declarations.

``python -m hudi_core.config.docs [FOLDER]`` writes it to ``docs/configuration.md``, and the options
whose defaults are not Hudi's to the end of ``docs/deviations.md``.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from hudi_core.config.catalog import ALL_KEYS, OPTIONS
from hudi_core.config.foreign import ForeignOption, OptionTreatment, Section, foreign_options
from hudi_core.config.key import ConfigKey, Group
from hudi_core.config.options import Options
from hudi_core.config.stored_keys import ManagedKeys

DEFAULT_FOLDER: Final = Path("docs")
REFERENCE: Final = "configuration.md"
DEVIATIONS: Final = "deviations.md"
_DEFAULTS: Final = "## Defaults of options\n"

_INTRO: Final = """\
# Configuration

<!-- Made by `python -m hudi_core.config.docs` from the declarations in hudi_core/config. -->

Options have Hudi's own names and Hudi's defaults, so that the options of a Hudi job can be passed
on unchanged. Where a default differs, [one list](deviations.md#defaults-of-options) says why; what
becomes of [Hudi's other options](#hudis-other-options) is said for each of them. An unknown
`hoodie.*` option is warned of once, with the nearest known name, and so is a plain one that looks
like an option of Hudi's, such as `recordkey`. An option that contradicts what the table has stored
is an error. Warnings are of the class `hudi_core.UnknownOptionWarning`. Options of a table's format
are on [their own page](formats.md).
"""

_TITLES: Final = {
    Group.TABLE: (
        "Table",
        (
            "Chosen when a table is created and kept in `.hoodie/hoodie.properties`. A later write "
            "may leave them out and may not change them."
        ),
    ),
    Group.WRITE: ("Write", "For one write; not stored."),
    Group.CLUSTERING: (
        "Clustering",
        "Which files a clustering rewrites, in which order, and when. For one call; not stored.",
    ),
    Group.READ: ("Read", "For one read."),
    Group.SERVICES: (
        "Table services",
        "What a writer does after its commits, and what these calls and commands do.",
    ),
    Group.LOCK: ("Locks", "How writers take turns."),
    Group.STORAGE: (
        "Storage",
        (
            "Never stored with a table. Values marked *secret* are shown in no message and no "
            "`repr`. A bucket of S3 may have values of its own, as in Hadoop: for the bucket "
            "`NAME`, `fs.s3a.bucket.NAME.access.key` goes before `fs.s3a.access.key`, and so on."
        ),
    ),
    Group.METADATA: (
        "Metadata table",
        (
            "The table below `.hoodie/metadata` in which a table keeps the list of its own files, "
            "and indexes of them."
        ),
    ),
    Group.METRICS: ("Metrics", "What is measured of the metadata table, for Prometheus."),
    Group.CONNECTOR: (
        "Connector",
        (
            "How a `hudi.Connector` finds tables and plans scans of them, by the names of Hudi's "
            "connector for Trino; see [`connector.md`](connector.md)."
        ),
    ),
    Group.TRINO: (
        "Trino service",
        (
            "Who may connect to `hudi serve-trino`, how what it hands out is signed, and what a "
            "client may ask for; see [`trino.md`](trino.md#who-may-reach-what). They are given to "
            "the service as those of the connector are."
        ),
    ),
    Group.INGESTION: (
        "Ingestion",
        (
            "How `hudi.ingest` and `hudi ingest` read files, by the names of Hudi Streamer where "
            "it has them; see [`ingestion.md`](ingestion.md)."
        ),
    ),
    Group.SYNC: (
        "Sync",
        (
            "How tables are registered in Hive metastores and in AWS Glue; see "
            "[`sync.md`](sync.md). They are looked at where a sync is asked for, by itself or "
            "after each commit."
        ),
    ),
}


def render() -> str:
    """Return the whole reference as Markdown."""
    parts = [_INTRO, *(_group(group) for group in Group), _stored(), _foreign()]
    return "\n".join(parts)


def _group(group: Group) -> str:
    title, text = _TITLES[group]
    return f"## {title}\n\n{text}\n\n" + _keys(
        "Option", *(one for one in OPTIONS if one.group is group)
    )


def _stored() -> str:
    return (
        "## Stored with a table\n\nKept in `.hoodie/hoodie.properties` by the project itself; "
        "no option sets them.\n\n" + _keys("Property", ManagedKeys)
    )


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


_FOREIGN: Final = {
    OptionTreatment.LATER: (
        "Not built yet",
        (
            "What these ask for, this release does not do. One warning says so, where a switch has "
            "another value than the one in parentheses; the other options say how Hudi does it."
        ),
    ),
    OptionTreatment.LATER_BY_DEFAULT: (
        "Not built yet, and done by Hudi unless an option says otherwise",
        (
            "One warning says so where one of these is given, unless a switch has the value in "
            "parentheses."
        ),
    ),
    OptionTreatment.REFUSED_IN_WRITES: (
        "Refused in writes",
        (
            "These change rows, or what is safe. A write is refused that gives one another value "
            "than those in parentheses, which ask for what happens anyway."
        ),
    ),
    OptionTreatment.REFUSED_IN_READS: (
        "Refused in reads",
        "A read is refused that gives one another value than those in parentheses.",
    ),
    OptionTreatment.QUIET: (
        "Accepted in silence",
        "No value of these changes a row, or what is safe; they are not used.",
    ),
}


def _foreign() -> str:
    parts = ["## Hudi's other options\n\nEvery further option of Apache Hudi 1.2.\n"]
    sections = foreign_options().sections
    for kind, (title, text) in _FOREIGN.items():
        parts.append(f"### {title}\n\n{text}\n")
        parts += [
            _section(section, lines) for section, lines in sections.items() if section.kind is kind
        ]
    return "\n".join(parts)


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
    """Write the reference into a folder, by default :data:`DEFAULT_FOLDER`.

    The default is relative to the current folder.
    """
    folder = Path(arguments[0]) if arguments else DEFAULT_FOLDER
    (folder / REFERENCE).write_text(render(), encoding="utf-8")
    page = folder / DEVIATIONS
    written_by_hand = page.read_text(encoding="utf-8").partition(_DEFAULTS)[0]
    page.write_text(written_by_hand + deviations(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
