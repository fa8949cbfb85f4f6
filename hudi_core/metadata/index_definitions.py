"""Which indexes a table has, and of which columns: ``.hoodie/.index_defs/index.json``.

Hudi's engines look there for the columns of an index. What other writers put there is kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hudi_core.config.table import TableConfig
from hudi_core.errors import CorruptMetadataError, PathNotFoundError
from hudi_core.metadata.table import has_value_types
from hudi_core.model.protocols import Storage

PATH_KEY: Final = "hoodie.table.index.defs.path"
DEFAULT_PATH: Final = ".hoodie/.index_defs/index.json"

_MAX_BYTES: Final = 16 << 20
_LIST: Final = "indexDefinitions"
_NEWER: Final = "V2"
"""Version of an index of the form that Hudi has had since tables of version 9."""
_MAKE_AGAIN: Final = (
    "Run `hudi metadata delete --backup PATH`, then `hudi metadata create PATH`. Of a table with "
    "storage paths delete this file, then run `hudi table repair --metadata PATH`."
)
_OF_TWO_FORMS: Final = ("column_stats", "secondary_index")


@dataclass(frozen=True, slots=True)
class IndexDefinitions:
    """What the file says."""

    path: str
    raw: Mapping[str, Mapping[str, Any]]

    def columns(self, index: str) -> tuple[str, ...]:
        """Return the columns of an index, by their dotted paths.

        Empty when it has none.
        """
        found = self.raw.get(index, {}).get("sourceFields")
        if not isinstance(found, list):
            return ()
        return tuple(name for name in found if isinstance(name, str))

    def is_by_value(self, index: str) -> bool:
        """Whether values alone decide a secondary index's shard."""
        return self.raw.get(index, {}).get("version") == _NEWER

    def has_bound_types(self, index: str, config: TableConfig) -> bool:
        """Whether an index of ranges records bounds' types (version 2).

        Hudi leaves an index as it is when it raises a table to version 9, and merges ranges of one
        form alone.
        """
        if index not in self.raw:
            return has_value_types(config)
        return has_value_types(config) and self.raw[index].get("version") == _NEWER

    def is_partitioned(self, index: str) -> bool:
        """Whether a record index keeps the keys of each partition apart."""
        options = self.raw.get(index, {}).get("indexOptions")
        found = options.get("isPartitioned") if isinstance(options, dict) else None
        return str(found).lower() == "true"

    def options(self, index: str) -> dict[str, str]:
        """Return the further options of an index."""
        found = self.raw.get(index, {}).get("indexOptions")
        known = found if isinstance(found, dict) else {}
        return {str(name): str(value) for name, value in known.items()}

    def function(self, index: str) -> str:
        """Return an index's function; blank when none is named."""
        return str(self.raw.get(index, {}).get("indexFunction") or "")

    def unchanged_in(self, others: IndexDefinitions) -> IndexDefinitions:
        """Those of the indexes that others define alike."""
        kept = {name: one for name, one in self.raw.items() if others.raw.get(name) == one}
        return IndexDefinitions(self.path, kept)


@dataclass(frozen=True, slots=True)
class AskedIndex:
    """What an index of a column is to be.

    ``column`` is ``None`` where a definition is there already, ``kind`` (``column_stats`` or
    ``bloom_filters``) for the default of the index. ``options`` are named as in Hudi: ``expr``,
    ``format``, ...
    """

    column: str | None = None
    kind: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


NOTHING_ASKED: Final = AskedIndex()


def read_definitions(storage: Storage, config: TableConfig) -> IndexDefinitions:
    """Return a table's index definitions; none without the file."""
    path = _checked_path(storage, config)
    try:
        parsed = json.loads(storage.read(path, _MAX_BYTES))
    except PathNotFoundError:
        return IndexDefinitions(path, {})
    except (ValueError, RecursionError) as error:
        raise CorruptMetadataError(
            f"{storage.root}/{path}", "it is not JSON", _MAKE_AGAIN
        ) from error
    found = parsed.get(_LIST) if isinstance(parsed, dict) else None
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise CorruptMetadataError(f"{storage.root}/{path}", "it lists no indexes", _MAKE_AGAIN)
    return IndexDefinitions(path, found)


def discard_damaged(storage: Storage, config: TableConfig, copy_to: str | None = None) -> None:
    """Delete an unreadable definitions file.

    The caller holds the table's lock.
    """
    path = _checked_path(storage, config)
    try:
        read_definitions(storage, config)
    except CorruptMetadataError:
        if copy_to is not None:
            storage.put(f"{copy_to}/{path.rpartition('/')[2]}", storage.read(path))
        storage.delete(path)


def _checked_path(storage: Storage, config: TableConfig) -> str:
    path = config.raw.get(PATH_KEY, "").strip() or DEFAULT_PATH
    if not path.startswith(".hoodie/") or ".." in path.split("/"):
        raise CorruptMetadataError(
            f"{storage.root}/.hoodie/hoodie.properties",
            f"{PATH_KEY} leads out of the table's own folder",
        )
    return path


def put_definitions(storage: Storage, definitions: IndexDefinitions) -> None:
    """Replace the file; the caller holds the table's lock."""
    text = json.dumps({_LIST: definitions.raw}, indent=2)
    storage.put(definitions.path, text.encode())


def with_index(
    definitions: IndexDefinitions,
    config: TableConfig,
    index: str,
    columns: tuple[str, ...] = (),
    options: Mapping[str, str] | None = None,
    *,
    function: str = "",
    version: str = "V1",
) -> IndexDefinitions:
    """Return the definitions with those of a built-in index.

    One of the indexes that need no naming by users.

    ``index`` is name, type and partition in one. ``function`` and ``version`` are those of Hudi's
    ``HoodieIndexDefinition``; tables of version 8 name no version.
    """
    known = definitions.raw.get(index, {})
    made: dict[str, Any] = {
        **known,
        "indexName": index,
        "indexType": index,
        "indexFunction": function,
        "sourceFields": list(columns),
        "indexOptions": dict(options or {}),
    }
    if has_value_types(config):
        made.setdefault("version", version)
    return IndexDefinitions(definitions.path, {**definitions.raw, index: made})


def in_version(definitions: IndexDefinitions, config: TableConfig) -> IndexDefinitions:
    """The definitions for a rebuild of the indexes in another version.

    Statistics and secondary indexes have another form from version 9 on.
    """
    typed = has_value_types(config)
    made: dict[str, Mapping[str, Any]] = {}
    for name, one in definitions.raw.items():
        has_forms = one.get("indexType") in _OF_TWO_FORMS
        version = _NEWER if typed and has_forms else "V1"
        made[name] = {**one, "version": version} if typed or "version" in one else one
    return IndexDefinitions(definitions.path, made)


def without_index(definitions: IndexDefinitions, index: str) -> IndexDefinitions:
    """Return the definitions without one."""
    return IndexDefinitions(
        definitions.path, {name: one for name, one in definitions.raw.items() if name != index}
    )
