"""Names in the catalog of a session.

Spark's Python API gives neither place nor source of a name, so that the JVM is asked; a session
without one, as of Spark Connect, has no names that are known here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException, PySparkTypeError
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.sql_formatter import SQLStringFormatter
from pyspark.sql.types import StructField, StructType

from hudi_core.engine.spark.scan import quoted_name, to_arrow
from hudi_core.errors import SchemaError
from hudi_core.model.catalog_entry import SparkCatalogEntry
from hudi_core.schema.arrow_types import DOC

SOURCES: Final = ("hudi", "org.apache.hudi")
"""Names of the data source."""
NOTE: Final = "hudi.read"
"""Metadata of a column under which the options of its table's reads are."""
_COMMENT: Final = "comment"
_CATALOG: Final = "spark_catalog"
_TEMPORARY: Final = "global_temp"


def noted(columns: StructType, note: Mapping[str, Any]) -> StructType:
    """Columns whose first one carries the options of reads.

    For a table of its catalog Spark hands a source in Python the stored columns, and none of the
    options that the table was made with.
    """
    first, *others = columns.fields
    metadata = {**(first.metadata or {}), NOTE: dict(note)}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


@dataclass(frozen=True, slots=True)
class SessionCatalog:
    """The catalog that Spark calls ``spark_catalog``; names are spelled as in SQL."""

    session: SparkSession

    def entry(self, name: str) -> SparkCatalogEntry | None:
        """The entry of a name; ``None`` for tables of other sources."""
        found = self._metadata(name)
        if found is None or str(_value(found.provider())).lower() not in SOURCES:
            return None
        storage = found.storage()
        options = self._strings(storage.properties())
        path, where = options.pop("path", None), _value(storage.locationUri())
        if path is None and where is None:
            return None
        columns = StructType.fromJson(json.loads(found.schema().json()))
        notes = [field.metadata[NOTE] for field in columns if NOTE in field.metadata]
        return SparkCatalogEntry(
            path=path or str(where.toString()),
            columns=_arrow(columns),
            partition_columns=tuple(self._listed(found.partitionColumnNames())),
            properties={**self._strings(found.properties()), **options},
            is_managed=str(found.tableType().name()) == "MANAGED",
            note=notes[0] if notes else None,
        )

    def can_name(self, name: str) -> bool:
        """Whether a name is, or can be, one of this catalog."""
        return self._identifier(name) is not None

    def is_taken(self, name: str) -> bool:
        """Whether there is a table or a stored view of the name."""
        identifier = self._identifier(name)
        return identifier is not None and bool(self._state.catalog().tableExists(identifier))

    def default_path(self, name: str) -> str:
        """Where Spark puts a table that is made without a place."""
        return str(self._state.catalog().defaultTablePath(self._identifier(name)).toString())

    def register(
        self, name: str, columns: pa.Schema, note: Mapping[str, Any], comment: str | None = None
    ) -> None:
        """Make a name for a table that is there.

        ``note`` holds the options of reads, the path among them.
        """
        self.session.catalog.createTable(
            name,
            path=str(note["path"]),
            source=SOURCES[0],
            schema=noted(_struct(columns), note),
            description=comment,
        )

    def put_columns(self, name: str, columns: pa.Schema, note: Mapping[str, Any]) -> None:
        """Give a name columns of its table, and options of reads."""
        struct = noted(_struct(columns), note).json()
        self._state.catalog().alterTableSchema(
            self._identifier(name), self.session._jsparkSession.parseDataType(struct)
        )
        self.session.catalog.refreshTable(name)

    def options(self, prefix: str) -> dict[str, str]:
        """The settings of the session that begin with a prefix."""
        if getattr(self.session, "_jvm", None) is None:
            found = dict(self.session.conf.getAll)
            return {name: text for name, text in found.items() if name.startswith(prefix)}
        # a call for each of all settings would take longer than a small write
        settings = self._state.conf().settings()
        names = str(settings.keySet().toString())[1:-1].split(", ")
        return {name: str(settings.get(name)) for name in names if name.startswith(prefix)}

    def stated_columns(self, text: str) -> pa.Schema:
        """The columns of a definition in SQL."""
        try:
            columns = StructType.fromDDL(text)
        except (AnalysisException, ParseException) as error:
            lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
            raise SchemaError(
                f"The columns {text!r} are not understood: {lines[0].rstrip('.')}",
                "State names, types, NOT NULL and COMMENT. Generated columns, default values and "
                "constraints are not kept.",
                text=text,
            ) from error
        assert isinstance(columns, StructType)  # noqa: S101 - of columns nothing else is made
        try:
            return _arrow(columns)
        except PySparkTypeError as error:
            raise SchemaError(
                f"The columns {text!r} have a type that tables cannot store: {error}",
                "Use STRING for strings of a limited length.",
                text=text,
            ) from error

    @contextmanager
    def formatted(self, text: str, values: Mapping[str, Any]) -> Iterator[str]:
        """A statement whose braces are filled, as ``spark.sql`` does it."""
        formatter = SQLStringFormatter(self.session)
        try:
            yield formatter.format(text, **values)
        finally:
            formatter.clear()

    def sql_type(self, kind: pa.DataType) -> str:
        """A type as SQL spells it."""
        [field] = from_arrow_schema(pa.schema([pa.field("c", kind)])).fields
        return str(field.dataType.simpleString())

    def _metadata(self, name: str) -> Any:
        """Spark's own description of a table; ``None`` without a table."""
        identifier = self._identifier(name)
        if identifier is None:
            return None
        catalog = self._state.catalog()
        try:
            if catalog.isTempView(identifier) or not catalog.tableExists(identifier):
                return None
            return catalog.getTableMetadata(identifier)
        except (AnalysisException, ParseException):
            return None

    def _identifier(self, name: str) -> Any:
        """A name for the JVM; ``None`` for one of another catalog."""
        if getattr(self.session, "_jvm", None) is None:
            return None
        state = self._state
        try:
            parts = self._listed(state.sqlParser().parseMultipartIdentifier(name))
        except (AnalysisException, ParseException):
            return None
        catalogs = state.catalogManager()
        if len(parts) > 1 and catalogs.isCatalogRegistered(parts[0]):
            if parts[0].lower() != _CATALOG:
                return None
            parts = parts[1:]
        elif catalogs.currentCatalog().name() != _CATALOG:
            return None
        if len(parts) > 2 or (len(parts) == 2 and parts[0].lower() == _TEMPORARY):
            return None
        return state.sqlParser().parseTableIdentifier(quoted_name(parts))

    @property
    def _state(self) -> Any:
        return self.session._jsparkSession.sessionState()

    def _listed(self, found: Any) -> list[str]:
        """A sequence of Scala's."""
        return [str(one) for one in self._converters.asJava(found)]

    def _strings(self, found: Any) -> dict[str, str]:
        """A map of Scala's."""
        java = self._converters.asJava(found)
        return {str(name): str(java[name]) for name in java}

    @property
    def _converters(self) -> Any:
        jvm: Any = self.session._jvm
        return jvm.scala.jdk.javaapi.CollectionConverters


def _arrow(columns: StructType) -> pa.Schema:
    """Columns as Arrow's, with their comments."""
    fields = []
    for field, column in zip(to_arrow(columns), columns, strict=True):
        comment = column.metadata.get(_COMMENT)
        fields.append(field.with_metadata({DOC: comment.encode()} if comment else None))
    return pa.schema(fields)


def _struct(schema: pa.Schema) -> StructType:
    """Columns as Spark's, with their comments."""
    columns = from_arrow_schema(schema)
    for column, field in zip(columns, schema, strict=True):
        comment = (field.metadata or {}).get(DOC)
        column.metadata = {_COMMENT: comment.decode()} if comment else {}
    return columns


def _value(option: Any) -> Any:
    """What an option of Scala's holds."""
    return option.get() if option.isDefined() else None
