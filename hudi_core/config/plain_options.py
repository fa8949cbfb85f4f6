"""Plain options that look like one of Hudi's, such as ``recordkey``.

Spark and its sources have options of their own without a prefix. Only what comes close to the words
below is taken for a mistake.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Final

from hudi_core.config import commit_keys, index_keys, lock, read, table_keys, write_keys

_NOT_LETTERS: Final = re.compile(r"[^a-z0-9]+")
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    table_keys.NAME.key: ("tablename",),
    table_keys.TABLE_TYPE.key: ("tabletype",),
    table_keys.VERSION.key: ("tableversion",),
    table_keys.FORMAT.key: ("format", "tableformat"),
    table_keys.RECORD_KEY.key: (
        "recordkey",
        "recordkeys",
        "recordkeyfield",
        "recordkeyfields",
        "primarykey",
    ),
    table_keys.PARTITION_PATH.key: (
        "partitionpath",
        "partitionpathfield",
        "partitionby",
        "partitionfields",
    ),
    table_keys.ORDERING.key: (
        "precombine",
        "precombinefield",
        "precombinekey",
        "orderingfield",
        "orderingfields",
    ),
    table_keys.MERGE_MODE.key: ("mergemode", "recordmergemode"),
    table_keys.PAYLOAD_CLASS.key: ("payloadclass",),
    table_keys.KEY_GENERATOR_CLASS.key: ("keygenerator", "keygeneratorclass"),
    table_keys.KEY_GENERATOR.key: ("keygeneratortype",),
    table_keys.HIVE_STYLE.key: ("hivestylepartitioning",),
    write_keys.OPERATION.key: ("operation", "writeoperation"),
    commit_keys.APPLICATION.key: ("idempotency",),
    index_keys.INDEX_TYPE.key: ("indextype",),
    lock.CONCURRENCY_MODE.key: ("concurrencymode",),
    lock.PROVIDER.key: ("lockprovider",),
    read.QUERY_TYPE.key: ("querytype",),
    # Spark's own words for time travel, which it does not hand to sources in Python
    read.AS_OF.key: ("asof", "asofinstant", "timestampasof", "versionasof"),
    read.BEGIN.key: ("begininstanttime",),
    read.END.key: ("endinstanttime",),
    "path": ("tablepath",),
}
_MEANT: Final = {word: key for key, words in _WORDS.items() for word in words}
_LONG: Final = 9
"""Letters of a word that is also recognised as the last part of a name."""


def meant_by(name: str) -> str | None:
    """The option that a plain name looks like, if any."""
    parts = [part for part in _NOT_LETTERS.split(name.lower()) if part]
    endings = ["".join(parts[start:]) for start in range(len(parts))]
    for number, ending in enumerate(endings):
        if ending in _MEANT and (number == 0 or len(ending) >= _LONG):
            return _MEANT[ending]
    if not endings:
        return None
    near = difflib.get_close_matches(endings[0], _MEANT, n=1, cutoff=0.9)
    return _MEANT[near[0]] if near else None
