"""Ways to key and partition a table, and what Hudi makes of them: keys, folders and buckets.

Nothing here asks the project: what a folder or a record key must look like is written out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

Row = dict[str, Any]

MATRIX_COLUMNS: Final = pa.schema(
    [
        ("id", pa.string()),
        ("line", pa.int32()),
        ("city", pa.string()),
        ("day", pa.date32()),
        ("ts", pa.int64()),
        # no two rows that are ever written have the same
        ("mark", pa.string()),
        ("value", pa.float64()),
        ("tags", pa.list_(pa.string())),
    ]
)
LEFT_OUT: Final = ("value", "tags")
"""What rows lack that are to keep the stored values."""
BUCKETS: Final = 3
NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"

PLAIN: Final = ("rome", "new york", "São Paulo", None, "oslo")
HOSTILE: Final = ("a/b", "50% = half", "x:y#z?*", None, "'\"\\{}[]^ 東京")
ESCAPED: Final = {
    "a/b": "a%2Fb",
    "50% = half": "50%25 %3D half",
    "x:y#z?*": "x%3Ay%23z%3F%2A",
    "'\"\\{}[]^ 東京": "%27%22%5C%7B}%5B%5D%5E 東京",
}
HIVE: Final = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED: Final = {"hoodie.datasource.write.partitionpath.urlencode": "true"}


@dataclass(frozen=True)
class Layout:
    """A way to key and partition.

    ``names_key`` tells whether a record key says which fields it is made of. The last of
    ``cities`` is in no row of the tables as the operations find them.
    """

    key: tuple[str, ...]
    partition: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    names_key: bool = False
    cities: tuple[str | None, ...] = PLAIN

    def record_key(self, row: Row) -> str:
        if not self.names_key:
            return str(row["id"])
        return ",".join(f"{name}:{row[name]}" for name in self.key)

    def folder(self, row: Row) -> str:
        hive = "hoodie.datasource.write.hive_style_partitioning" in self.options
        levels = []
        for name in self.partition:
            text = NULL_FOLDER if row[name] is None else str(row[name])
            if "hoodie.datasource.write.partitionpath.urlencode" in self.options:
                text = ESCAPED.get(text, text)
            levels.append(f"{name}={text}" if hive else text)
        return "/".join(levels)

    def bucket(self, row: Row) -> int:
        """Hash as Java does: a list of the values of the key fields, as texts."""
        code = 1
        for name in self.key:
            code = 31 * code + _java_hash(str(row[name]))
        return (code & 0x7FFFFFFF) % BUCKETS


def _java_hash(text: str) -> int:
    assert text.isascii()  # Java's characters are those of Python here
    code = 0
    for letter in text:
        code = (31 * code + ord(letter)) & 0xFFFFFFFF
    return code


BOTH: Final = ("id", "line")
LAYOUTS: Final = {
    "none": Layout(("id",), ()),
    "none-two-keys": Layout(BOTH, (), names_key=True),
    "plain": Layout(("id",), ("city",)),
    "hive-two-keys": Layout(BOTH, ("city",), HIVE, names_key=True),
    "encoded": Layout(("id",), ("city",), ENCODED, cities=HOSTILE),
    "encoded-hive": Layout(("id",), ("city",), {**ENCODED, **HIVE}, cities=HOSTILE),
    "two-levels": Layout(("id",), ("city", "day"), names_key=True),
    "two-levels-encoded-hive-two-keys": Layout(
        BOTH, ("city", "day"), {**ENCODED, **HIVE}, names_key=True, cities=HOSTILE
    ),
}
