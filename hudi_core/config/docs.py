"""The reference of all options, made from their declarations.

``python -m hudi_core.config.docs [FILE]`` writes it to ``docs/configuration.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from hudi_core.config.catalog import ALL_KEYS
from hudi_core.config.foreign import ABSENT_FEATURES, TUNING_OPTIONS
from hudi_core.config.key import ConfigKey, Group
from hudi_core.config.stored_keys import MANAGED_KEYS

DEFAULT_PATH: Final = Path("docs/configuration.md")

_INTRO: Final = """\
# Configuration

<!-- Made by `python -m hudi_core.config.docs` from the declarations in hudi_core/config. -->

Options have Hudi's own names and Hudi's defaults, so that the options of a Hudi job can be passed
on unchanged. Where a default differs, [one list](#deviations-from-hudis-defaults) says why. An
unknown `hoodie.*` option is warned of, with the nearest known name. An option that contradicts what
the table has stored is an error.
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
    Group.READ: ("Read", "For one read."),
    Group.LOCK: ("Locks", "How writers take turns."),
    Group.STORAGE: (
        "Storage",
        "Never stored with a table. Values marked *secret* are shown in no message and no `repr`.",
    ),
    Group.METADATA: (
        "Metadata table",
        (
            "The table below `.hoodie/metadata` in which a table keeps the list of its own files, "
            "and indexes of them."
        ),
    ),
    Group.METRICS: ("Metrics", "What is measured of the metadata table, for Prometheus."),
}


def render() -> str:
    """Return the whole reference as Markdown."""
    parts = [_INTRO, *(_group(group) for group in Group), _stored(), _deviations(), _foreign()]
    return "\n".join(parts)


def _group(group: Group) -> str:
    title, text = _TITLES[group]
    keys = [key for key in ALL_KEYS if key.group is group]
    return f"## {title}\n\n{text}\n\n" + _table(
        ("Option", "Default", "Meaning"),
        ((_names(key), _default(key), _meaning(key)) for key in keys),
    )


def _stored() -> str:
    return (
        "## Stored with a table\n\nKept in `.hoodie/hoodie.properties` by the project itself; "
        "no option sets them.\n\n"
        + _table(
            ("Property", "Default", "Meaning"),
            ((_names(key), _default(key), _meaning(key)) for key in MANAGED_KEYS),
        )
    )


def _deviations() -> str:
    rows = (
        (f"`{key.key}`", _default(key), _cell(key.hudi_default or ""), _cell(key.reason or ""))
        for key in ALL_KEYS
        if key.reason
    )
    return "## Deviations from Hudi's defaults\n\n" + _table(
        ("Option", "Here", "Hudi", "Reason"), rows
    )


def _foreign() -> str:
    rows = (
        (f"`{name}`", f"`{absent.here}`", f"`{absent.hudi_default}`", absent.feature)
        for name, absent in ABSENT_FEATURES.items()
    )
    return (
        "## Hudi's options without effect\n\nThese ask for what this release does not have. The "
        "value that says so is accepted; another one is warned of.\n\n"
        + _table(("Option", "Accepted", "Hudi's default", "Controls"), rows)
        + "\nThese tune Hudi's engine and change no result; they are accepted and not used:\n\n"
        + "".join(f"* `{name}`\n" for name in TUNING_OPTIONS)
    )


def _names(key: ConfigKey[Any]) -> str:
    also = "".join(f"<br>also `{alias}`" for alias in key.aliases)
    return f"`{key.key}`{also}"


def _default(key: ConfigKey[Any]) -> str:
    if key.default_text is not None:
        # prose stands in parentheses, values are set as code
        plain = key.default_text.startswith("(") or " " in key.default_text
        return _cell(key.default_text) if plain else f"`{key.default_text}`"
    if isinstance(key.default, bool):
        return f"`{str(key.default).lower()}`"
    return f"`{key.default}`"


def _meaning(key: ConfigKey[Any]) -> str:
    values = (
        f" Values: {', '.join(f'`{choice}`' for choice in key.choices)}." if key.choices else ""
    )
    return _cell(key.doc) + values + (" *Secret.*" if key.secret else "")


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
    """Write the reference to a file, by default :data:`DEFAULT_PATH` in the current folder."""
    path = Path(arguments[0]) if arguments else DEFAULT_PATH
    path.write_text(render(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
