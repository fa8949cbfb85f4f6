"""A Spark user's options as Hudi's.

Spark hands options over with their names in lower case.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from pyspark.sql.types import StructType

from hudi_core.config.commit_keys import CommitConfig
from hudi_core.config.option_warnings import spellings
from hudi_core.config.read import ReadConfig
from hudi_core.config.sql import options_of_properties
from hudi_core.engine.choice import noted
from hudi_core.errors import InvalidOptionError
from hudi_core.storage.location import parse_location
from hudi_core.storage.options import StorageOptions

SaveMode = Literal["append", "overwrite", "errorifexists", "error", "ignore"]
_PATH: Final = "path"
_PATHS: Final = "paths"
_MODE: Final = "mode"
_COLUMNS: Final = "columns"
_IN_SCHEMA: Final = "hudi.read"
"""What the metadata of a column has the options of a read under."""
_OF_CATALOG_ONLY: Final = "provider"
"""What Spark hands over for tables of its catalog, and for no read by path or temporary view."""
_OF_WRITES: Final = (
    "Write a DataFrame with save('/path') or hudi.write. Sources in Python never know which table "
    "INSERT, CREATE TABLE AS or saveAsTable mean: run them with hudi.sql(spark, '...'), or in "
    "hudi.sql_session(spark)."
)
_OF_CATALOG: Final = (
    "Give it to load(...). A name that CREATE TABLE made with columns, or saveAsTable, has no "
    "place: hudi.sql(spark, 'REFRESH TABLE name') mends it, and makes the table where there is "
    "none. hudi.sql_session(spark) makes whole tables. Without it make names without columns: "
    "CREATE TABLE t USING hudi LOCATION '/path'."
)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options of a read or a write.

    For a read, ``path`` may be the first of several; ``paths`` are the table or paths within it,
    perhaps with wildcards. ``given`` are Hudi's options and the store's, in their own spelling.
    ``mode`` is set by options, as Spark lets sources in Python have only two modes; ``None`` for
    Spark's. ``columns`` are those that a name in a catalog was made with, ``None`` where it does
    not say; ``is_by_name``: such a name was used.
    """

    path: str
    paths: tuple[str, ...]
    given: dict[str, str]
    mode: SaveMode | None
    columns: tuple[str, ...] | None = None
    is_by_name: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str], hint: str = _OF_WRITES) -> SourceOptions:
        """Return the view of what Spark hands over."""
        named = dict(options)
        path, mode = named.pop(_PATH, None), named.pop(_MODE, None)
        several, columns = json.loads(named.pop(_PATHS, "[]")), named.pop(_COLUMNS, None)
        if not path and not several:
            raise InvalidOptionError(_PATH, None, "the table's path is missing", hint)
        given = {spellings().get(name, name): text for name, text in named.items()}
        if _OF_CATALOG_ONLY in named:
            # a name whose properties contradict the table would be no name of it
            of_table = options_of_properties(named)
            given |= {spellings().get(name, name): text for name, text in of_table.items()}
        if CommitConfig.metadata_prefix.key in given:
            # as the names that it is compared with are
            given[CommitConfig.metadata_prefix.key] = given[
                CommitConfig.metadata_prefix.key
            ].lower()
        # tasks may have another working directory
        paths = tuple(parse_location(one).uri for one in ([path] if path else []) + several)
        known = None if columns is None else tuple(json.loads(columns))
        return cls(paths[0], paths, given, _mode(mode), known)

    @classmethod
    def of_read(cls, options: Mapping[str, str], schema: StructType) -> SourceOptions:
        """Return the options of a read, which Spark may have dropped.

        For a table of its catalog Spark hands over the stored columns, and none of the options that
        the table was made with. So these are kept with a column; see :meth:`noted_in`.
        """
        note: dict[str, str] = {}
        for field in schema.fields:
            note |= field.metadata.get(_IN_SCHEMA, {})
        if options.get(_PATH) or options.get(_PATHS):
            return cls.of(options)
        return replace(cls.of({**note, **dict(options)}, _OF_CATALOG), is_by_name=True)

    def noted_in(self, schema: StructType) -> StructType:
        """Return the columns with a note of the options, for a catalog.

        Nothing of it is secret: credentials are not among it.
        """
        query = {
            name.lower(): self.given[name]
            for key in ReadConfig.keys
            for name in (key.key, *key.aliases)
            if name in self.given
        }
        where: dict[str, Any] = {_PATH: self.path}
        if len(self.paths) > 1:
            where = {_PATHS: json.dumps(self.paths)}
        columns = json.dumps(schema.fieldNames())
        return noted(schema, {**where, _COLUMNS: columns, **query})

    def with_options(self, given: Mapping[str, str]) -> SourceOptions:
        """These options with others of Hudi's."""
        return replace(self, given={**self.given, **given})

    @property
    def is_of_catalog(self) -> bool:
        """Whether Spark is creating a table of its catalog.

        Only then may columns carry a note: Spark copies the metadata of a DataFrame's columns into
        every table that is made of it.
        """
        return _OF_CATALOG_ONLY in self.given

    @property
    def store(self) -> StorageOptions:
        """How to reach the table's store."""
        return StorageOptions.from_options(self.given)

    def save_mode(self, overwrite: bool) -> SaveMode:
        """Return the save mode, given whether Spark overwrites."""
        if overwrite and self.mode not in (None, "overwrite"):
            raise InvalidOptionError(
                _MODE,
                self.mode,
                "the DataFrame is written with .mode('overwrite')",
                f"Write with .mode('append') and the option mode={self.mode}.",
            )
        return self.mode or ("overwrite" if overwrite else "append")


def _mode(text: str | None) -> SaveMode | None:
    if text is None:
        return None
    for mode in get_args(SaveMode):
        if text.lower() == mode:
            return mode  # type: ignore[no-any-return]  # get_args does not say
    supported = ", ".join(get_args(SaveMode))
    raise InvalidOptionError(_MODE, text, "there is no such mode", f"Supported: {supported}.")
