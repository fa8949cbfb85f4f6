"""Paths within a table: which partitions and files they name.

Users of Spark give the path of a partition, or one with wildcards such as ``table/*/*``, where
other sources read whatever files lie there. Here they choose among the files of a snapshot.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hudi_core.errors import UnknownPartitionError
from hudi_core.model.files import PartitionPath

_ALTERNATIVES = re.compile(r"\{([^{}]*)\}")
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class PathPattern:
    """Paths below a table's folder, with the wildcards of Hadoop.

    ``*`` and ``?`` mean characters other than a slash, ``[a-c]`` and ``[^a]`` one of some,
    ``{a,b}`` either text. A path that names a folder names all files below it.
    """

    paths: tuple[str, ...]

    def may_name(self, partition: PartitionPath) -> bool:
        """Whether files of a partition may be named."""
        folders = partition.split("/") if partition else []
        return any(_agree(path.split("/"), folders) for path in self._alternatives())

    def names(self, file: str) -> bool:
        """Whether a file is named, by its path relative to the table."""
        parts = file.split("/")
        return any(
            len(path.split("/")) <= len(parts) and _agree(path.split("/"), parts)
            for path in self._alternatives()
        )

    def _alternatives(self) -> list[str]:
        return [one for path in self.paths for one in _spelled_out(path)]


def require_named(
    within: PathPattern, known: Sequence[PartitionPath], base_path: str
) -> list[PartitionPath]:
    """The partitions of a table that may have named files."""
    found = [partition for partition in known if within.may_name(partition)]
    if not found:
        shown = ", ".join(known[:_SHOWN]) + (", ..." if len(known) > _SHOWN else "")
        raise UnknownPartitionError(
            f"The table at {base_path} has nothing at {', '.join(within.paths)}",
            f"Its partitions are: {shown or '(none)'}.",
            paths=within.paths,
        )
    return found


def has_wildcards(part: str) -> bool:
    """Whether a part of a path has a wildcard."""
    return any(character in part for character in "*?[{")


def _agree(pattern: list[str], parts: list[str]) -> bool:
    """Whether common parts are equal and the pattern not much longer.

    It is at most a file longer.
    """
    if len(pattern) > len(parts) + 1:
        return False
    return all(
        wanted == part or re.fullmatch(_expression(wanted), part, re.DOTALL)
        for wanted, part in zip(pattern, parts, strict=False)
    )


def _spelled_out(path: str) -> list[str]:
    found = _ALTERNATIVES.search(path)
    if found is None:
        return [path]
    before, after = path[: found.start()], path[found.end() :]
    return [one for text in found[1].split(",") for one in _spelled_out(before + text + after)]


def _expression(pattern: str) -> str:
    made = []
    rest = pattern
    while rest:
        group = re.match(r"\[([\^!]?)([^\]]+)\]", rest)
        if group is not None:
            excluded = "^" if group[1] else ""
            members = "-".join(re.escape(each) for each in group[2].split("-"))
            made.append(f"[{excluded}{members}]")
            rest = rest[group.end() :]
            continue
        made.append({"*": ".*", "?": "."}.get(rest[0], re.escape(rest[0])))
        rest = rest[1:]
    return "".join(made)
