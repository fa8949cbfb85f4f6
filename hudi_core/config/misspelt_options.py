"""Plain options that look like one of Hudi's, such as ``recordkey``.

Spark and its sources have options of their own without a prefix. Only what comes close to the words
below is taken for a mistake.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Final

from hudi_core.config.commit_keys import CommitConfig
from hudi_core.config.index_keys import IndexConfig
from hudi_core.config.lock import LockConfig
from hudi_core.config.read import ReadConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.write import WriteConfig

_NOT_LETTERS: Final = re.compile(r"[^a-z0-9]+")
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    TableKeys.name.key: ("tablename",),
    TableKeys.table_type.key: ("tabletype",),
    TableKeys.version.key: ("tableversion",),
    TableKeys.table_format.key: ("format", "tableformat"),
    TableKeys.record_key_fields.key: (
        "recordkey",
        "recordkeys",
        "recordkeyfield",
        "recordkeyfields",
        "primarykey",
    ),
    TableKeys.partition_path.key: (
        "partitionpath",
        "partitionpathfield",
        "partitionby",
        "partitionfields",
    ),
    TableKeys.ordering.key: (
        "precombine",
        "precombinefield",
        "precombinekey",
        "orderingfield",
        "orderingfields",
    ),
    TableKeys.merge_mode.key: ("mergemode", "recordmergemode"),
    TableKeys.payload_class.key: ("payloadclass",),
    TableKeys.key_generator_class.key: ("keygenerator", "keygeneratorclass"),
    TableKeys.key_generator.key: ("keygeneratortype",),
    TableKeys.hive_style.key: ("hivestylepartitioning",),
    WriteConfig.operation.key: ("operation", "writeoperation"),
    CommitConfig.application.key: ("idempotency",),
    IndexConfig.index_type.key: ("indextype",),
    LockConfig.concurrency_mode.key: ("concurrencymode",),
    LockConfig.provider.key: ("lockprovider",),
    ReadConfig.query_type.key: ("querytype",),
    # Spark's own words for time travel, which it does not hand to sources in Python
    ReadConfig.as_of.key: ("asof", "asofinstant", "timestampasof", "versionasof"),
    ReadConfig.begin.key: ("begininstanttime",),
    ReadConfig.end.key: ("endinstanttime",),
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
