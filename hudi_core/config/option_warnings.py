"""Warnings of options without effect, once in a process."""

from __future__ import annotations

import difflib
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from hudi_core.config.clustering import ClusteringConfig
from hudi_core.config.commit_keys import CommitConfig
from hudi_core.config.compaction import CompactionConfig
from hudi_core.config.connector import ConnectorConfig
from hudi_core.config.extension_points import POINTS
from hudi_core.config.foreign import foreign_options
from hudi_core.config.index_keys import IndexConfig
from hudi_core.config.ingestion import IngestionConfig
from hudi_core.config.lock import SERVER_LOCKS, LockConfig
from hudi_core.config.merge_keys import MergeKeys
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.metrics import MetricsConfig
from hudi_core.config.options import ConfigKey, Options
from hudi_core.config.placement import STRATEGY_PREFIX, PlacementKeys
from hudi_core.config.read import ReadConfig
from hudi_core.config.schema import SchemaConfig
from hudi_core.config.services import ServicesConfig
from hudi_core.config.sql import SqlConfig, SqlLimits
from hudi_core.config.storage import StoreKeys
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.streaming import StreamSinkConfig, StreamSourceConfig
from hudi_core.config.sync import GlueConfig, SyncConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.timebased import TimeKeys
from hudi_core.config.trino import TrinoConfig
from hudi_core.config.ttl import TtlConfig
from hudi_core.config.validators import ValidatorsConfig
from hudi_core.config.write import WriteConfig
from hudi_core.errors import UnknownOptionWarning

# --- every declared option: for the reference, and to find unknown ones ---------------------------


OPTIONS: Final[tuple[type[Options], ...]] = (
    TableKeys,
    PlacementKeys,
    MergeKeys,
    TimeKeys,
    IndexConfig,
    WriteConfig,
    CommitConfig,
    SqlConfig,
    StreamSinkConfig,
    ValidatorsConfig,
    SqlLimits,
    SchemaConfig,
    ClusteringConfig,
    CompactionConfig,
    ReadConfig,
    StreamSourceConfig,
    ServicesConfig,
    TtlConfig,
    LockConfig,
    *SERVER_LOCKS.values(),
    StoreKeys,
    MetadataConfig,
    MetricsConfig,
    ConnectorConfig,
    TrinoConfig,
    IngestionConfig,
    SyncConfig,
    GlueConfig,
)
"""Where the options are declared that a user may give."""

ALL_KEYS: Final[tuple[ConfigKey[Any], ...]] = tuple(key for one in OPTIONS for key in one.keys)
"""Every option a user may give."""

DECLARED_NAMES: Final = frozenset(
    name for key in (*ALL_KEYS, *ManagedKeys.keys) for name in key.names
)
"""Every name, aliases too, under which an option or a stored property is declared."""

FORMAT_PREFIX: Final = "hoodie.table.format."
"""Options below this prefix belong to the table's format, which checks them itself."""


@cache
def known_names() -> frozenset[str]:
    """Every option name of this project or of Hudi, without patterns."""
    return DECLARED_NAMES | foreign_options().names


@cache
def spellings() -> Mapping[str, str]:
    """Known names by their spelling in lower case, which Spark hands over."""
    known = known_names()
    return {name.lower(): name for name in known if name.lower() not in known}


# --- warnings -------------------------------------------------------------------------------------


_PREFIXES: Final = ("hoodie.", "hudi.")
_OWN: Final = frozenset({"hudi_core", "pyspark_hudi"})
"""Packages whose lines are of no use to who reads a warning."""
_SHOWN: Final = 3
"""Names that a warning lists of one feature."""

WARNED: Final[set[str]] = set()
"""Names and features that this process has warned of."""


def warn_of_options(options: Mapping[str, str], stored: Iterable[str] = ()) -> None:
    """Warn of options without effect, of each name once in a process.

    These are names that neither Hudi nor this project has, with the nearest one there is; names
    without Hudi's prefix that look like one of its own; and, in one warning, the features of Hudi
    that options ask for and this release does not have.

    Only the names of ``options`` are shown; ``stored`` has further known names, the table's stored
    properties.
    """
    for subjects, message in (*_lacking(options), *_unknown(options, frozenset(stored))):
        warn_once(subjects, message)


def warn_once(subjects: Sequence[str], message: str) -> None:
    """Warn at the nearest line outside the project, only once."""
    if not WARNED.issuperset(subjects):
        warnings.warn(message, UnknownOptionWarning, stacklevel=_callers_level())
        WARNED.update(subjects)  # not before: a filter may make an error of the warning


def _lacking(options: Mapping[str, str]) -> Iterator[tuple[Sequence[str], str]]:
    """The one message on features not built yet, after their names."""
    features = {
        section.title: names
        for section, names in foreign_options().wishes(options)
        if section.title not in WARNED
    }
    if features:
        requested = "; ".join(f"{title} ({_some(names)})" for title, names in features.items())
        yield (
            tuple(features),
            f"Options without effect, as this release does not have it: {requested}.",
        )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _unknown(
    options: Mapping[str, str], stored: frozenset[str]
) -> Iterator[tuple[Sequence[str], str]]:
    """A message for each name that is not known, after the name."""
    begin = options.get(
        CommitConfig.metadata_prefix.key, CommitConfig.metadata_prefix.default
    ).strip()
    for name in options:
        if name in DECLARED_NAMES or name in stored or name in WARNED:
            continue
        if any(point.owns(name) for point in POINTS):
            continue
        if foreign_options().of(name) or (begin and name.startswith(begin)):
            continue  # Hudi has it, or the commit keeps it
        if not name.lower().startswith(_PREFIXES):
            meant = meant_by(name)
            if meant is not None:
                yield (name,), f"{name} is no option and has no effect; did you mean {meant}?"
        elif not name.startswith((FORMAT_PREFIX, STRATEGY_PREFIX)):
            near = difflib.get_close_matches(name, sorted(known_names()), n=1, cutoff=0.8)
            meant = f"; did you mean {near[0]}?" if near else "."
            yield (name,), f"{name} is not a known option and has no effect{meant}"


def _callers_level() -> int:
    """The ``stacklevel`` of the nearest line outside the project."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _package(frame.f_globals) in _OWN:
        frame, level = frame.f_back, level + 1
    return level


def _package(names: Mapping[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]


# --- options without a prefix ---------------------------------------------------------------------

# Spark and its sources have options of their own without a prefix. Only what comes close to the
# words below is taken for a mistake.


_NOT_LETTERS: Final = re.compile(r"[^a-z0-9]+")
_WORDS: Final[Mapping[str, str]] = {
    TableKeys.name.key: "tablename",
    TableKeys.table_type.key: "tabletype",
    TableKeys.version.key: "tableversion",
    TableKeys.table_format.key: "format tableformat",
    TableKeys.record_key_fields.key: "recordkey recordkeys recordkeyfield recordkeyfields "
    "primarykey",
    TableKeys.partition_path.key: "partitionpath partitionpathfield partitionby partitionfields",
    TableKeys.ordering.key: "precombine precombinefield precombinekey orderingfield orderingfields",
    TableKeys.merge_mode.key: "mergemode recordmergemode",
    TableKeys.payload_class.key: "payloadclass",
    TableKeys.key_generator_class.key: "keygenerator keygeneratorclass",
    TableKeys.key_generator.key: "keygeneratortype",
    TableKeys.hive_style.key: "hivestylepartitioning",
    WriteConfig.operation.key: "operation writeoperation",
    CommitConfig.application.key: "idempotency",
    IndexConfig.index_type.key: "indextype",
    LockConfig.concurrency_mode.key: "concurrencymode",
    LockConfig.provider.key: "lockprovider",
    ReadConfig.query_type.key: "querytype",
    # Spark's own words for time travel, which it does not hand to sources in Python
    ReadConfig.as_of.key: "asof asofinstant timestampasof versionasof",
    ReadConfig.begin.key: "begininstanttime",
    ReadConfig.end.key: "endinstanttime",
    "path": "tablepath",
}
_MEANT: Final = {word: key for key, words in _WORDS.items() for word in words.split()}
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
