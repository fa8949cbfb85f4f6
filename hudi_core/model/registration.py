"""How metastores know the tables of a format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_NUMBER: Final = re.compile(r"[1-9][0-9]{0,17}")


@dataclass(frozen=True, slots=True)
class NumberedFiles:
    """Files whose names differ in a number, from 1 on.

    Attributes
    ----------
    begin, end
        What comes before the number in their URIs, and after it.
    last
        The greatest number.
    """

    begin: str
    end: str
    last: int

    def __contains__(self, uri: object) -> bool:
        """Whether it is one of them, there or not."""
        number = self._number(uri)
        return number is not None and number <= self.last

    def is_named_so(self, uri: object) -> bool:
        """Whether it is one of them, or has a greater number."""
        return self._number(uri) is not None

    def _number(self, uri: object) -> int | None:
        if not isinstance(uri, str) or not uri.startswith(self.begin):
            return None
        number, end = uri[len(self.begin) :], self.end
        number = number.removesuffix(end) if number.endswith(end) else ""
        return int(number) if _NUMBER.fullmatch(number) is not None else None


@dataclass(frozen=True, slots=True)
class Registration:
    """What the entry of a table in a metastore says.

    Name, database and columns are the sync's.

    Attributes
    ----------
    location
        Path or URI of the folder that readers of the format open.
    parameters
        Of the entry; among them what names the format to readers.
    input_format, output_format, serde
        Names of Java classes.
    serde_parameters
        Further ones, of how files are read.
    has_path
        Whether these have ``path`` too: the location, as the metastore spells it.
    is_hudi
        Whether its readers are Hudi's. Then the sync adds to all this what those want: classes by
        the type of the table, meta columns, entries of partitions, and what Spark needs.
    pointer
        The parameter that names the present state, where there is one.
    follows
        What it named for former states of the table, as far as they are known.
    numbered
        Further such files, where a count of states names them.
    identity
        The parameter that distinguishes this table from others that were at its place before it.
    held_by
        The catalog whose entry is changed by each commit itself, so that no sync may; ``None``
        where there is none.
    """

    location: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    input_format: str = "org.apache.hadoop.mapred.FileInputFormat"
    output_format: str = "org.apache.hadoop.mapred.FileOutputFormat"
    serde: str = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
    serde_parameters: Mapping[str, str] = field(default_factory=dict)
    has_path: bool = False
    is_hudi: bool = False
    pointer: str | None = None
    follows: frozenset[str] = frozenset()
    numbered: NumberedFiles | None = None
    identity: str | None = None
    held_by: str | None = None
